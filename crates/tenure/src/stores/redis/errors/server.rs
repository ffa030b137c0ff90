//! Error replies of the server: a code word, then words.

use redis::ServerError;
use tenure_core::ErrorKind;

use super::super::cluster::Redirect;
use super::{Failure, unauthorized, without_arguments};

/// An error reply to a whole call.
pub(in super::super) fn from_server(error: &ServerError) -> Failure {
    from_text(&format!(
        "{} {}",
        error.code(),
        error.details().unwrap_or_default()
    ))
}

/// An error text of the server: a code word, then words. Inside scripts, older servers put other
/// words before the code.
pub(in super::super) fn from_text(text: &str) -> Failure {
    // Redis 7 adds where in the script it happened, which helps nobody.
    let place = text
        .find(" script: ")
        .filter(|_| text.contains(", on @user_script"));
    let text = without_arguments(place.map_or(text, |place| &text[..place])).trim();
    let known = text.split_whitespace().find_map(|word| {
        let code = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        by_code(code, text)
    });
    let failure = known.unwrap_or_else(|| by_words(text));
    Failure {
        redirect: Redirect::read(text),
        ..failure.caused_by(&text)
    }
}

fn by_code(code: &str, text: &str) -> Option<Failure> {
    use ErrorKind::{Configuration, Conflict, Forbidden, Refused, Unsupported};
    let (kind, message) = match code {
        "WRONGTYPE" => (
            Conflict,
            "a key that this lock needs holds another type of value, so something else uses the \
             same keys: rename or delete that key, or choose another ?prefix=",
        ),
        "READONLY" => {
            return Some(demoted(
                "the server is a read-only replica: connect to the primary",
            ));
        }
        "OOM" => (
            Refused,
            "the server is out of memory (maxmemory) and takes no new data: free memory or raise \
             the limit",
        ),
        "LOADING" => (
            Refused,
            "the server has just started and is still loading its data: try again in a moment",
        ),
        "NOAUTH" | "WRONGPASS" => return Some(unauthorized()),
        "NOPERM" => (Forbidden, permission_advice(text)),
        "MISCONF" => (
            Refused,
            "the server cannot save its data to disk and so refuses to write: look at its log and \
             its free disk space",
        ),
        "BUSY" => (
            Refused,
            "the server is busy with somebody's long-running script: wait, or end it with SCRIPT KILL",
        ),
        "MASTERDOWN" => {
            return Some(demoted(
                "the server is a replica that has lost its primary: connect to the primary",
            ));
        }
        "NOREPLICAS" => (
            Refused,
            "the server has too few replicas to accept a write (min-replicas-to-write)",
        ),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => (
            Unsupported,
            "the server belongs to a Redis Cluster: use redis+cluster:// with the same address",
        ),
        "NOPROTO" => (
            Unsupported,
            "the server does not speak RESP3: use ?protocol=resp2",
        ),
        "DENIED" => (
            Configuration,
            "the server runs in protected mode and refuses connections from other machines: \
             configure a password or protected-mode on the server",
        ),
        _ => return None,
    };
    Some(Failure::new(kind, message))
}

/// The next connection may lead to the primary: a name or a sentinel tells where it is.
fn demoted(message: &str) -> Failure {
    Failure {
        fatal: true,
        ..Failure::new(ErrorKind::Refused, message)
    }
}

fn by_words(text: &str) -> Failure {
    let lower = text.to_ascii_lowercase();
    if lower.contains("unknown command") && lower.contains("hello") {
        Failure::new(
            ErrorKind::Unsupported,
            "the server does not speak RESP3: use ?protocol=resp2",
        )
    } else if lower.contains("unknown command 'sentinel'")
        || lower.contains("unknown command `sentinel`")
    {
        Failure::new(
            ErrorKind::Configuration,
            "this is not a sentinel: redis+sentinel:// wants the addresses of the sentinels (port 26379 as a \
             rule), redis:// that of a server",
        )
    } else if lower.contains("unknown command") || lower.contains("unknown subcommand") {
        Failure::new(
            ErrorKind::Unsupported,
            "the server lacks a command that tenure needs (EVAL, EVALSHA, TIME, PUBLISH, SUBSCRIBE \
             and the commands of strings, hashes and sorted sets): it was disabled or renamed, or \
             this is a sentinel (use redis+sentinel://) or not Redis",
        )
    } else if lower.contains("cluster support disabled") {
        Failure::new(
            ErrorKind::Configuration,
            "the server is not a node of a Redis Cluster: use redis:// with the same address",
        )
    } else if lower.contains("max number of clients") {
        Failure::new(
            ErrorKind::Refused,
            "the server has as many clients as it allows (maxclients)",
        )
    } else if lower.contains("db index is out of range") || lower.contains("select is not allowed")
    {
        Failure::new(
            ErrorKind::Configuration,
            "the server has no database of this number",
        )
    } else if lower.contains("without any password configured")
        || lower.contains("invalid password")
    {
        unauthorized()
    } else {
        Failure::new(
            ErrorKind::Protocol,
            "the server answered with an error that tenure does not know",
        )
    }
}

fn permission_advice(text: &str) -> &'static str {
    if text.contains("channel") {
        "the Redis user may not use tenure's channels: allow them with ACL SETUSER <user> \
         &<prefix>in:* (with the default prefix &tenure:in:*)"
    } else if text.contains("key") {
        "the Redis user may not use tenure's keys: allow them with ACL SETUSER <user> ~<prefix>* \
         ~~tenure:* (with the default prefix ~tenure:*)"
    } else {
        "the Redis user lacks a command: allow them with ACL SETUSER <user> +@read +@write \
         +@scripting +@pubsub +@connection +time"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_server_has_its_kind() {
        for (text, kind) in [
            ("WRONGTYPE Operation against a key", ErrorKind::Conflict),
            (
                "READONLY You can't write against a read only replica. script: abc, on @user_script:9.",
                ErrorKind::Refused,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                ErrorKind::Refused,
            ),
            (
                "ERR Error running script: @user_script: 3: -OOM command not allowed",
                ErrorKind::Refused,
            ),
            (
                "LOADING Redis is loading the dataset in memory",
                ErrorKind::Refused,
            ),
            ("NOAUTH Authentication required.", ErrorKind::Unauthorized),
            (
                "NOPERM this user has no permissions to run the 'eval' command",
                ErrorKind::Forbidden,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                ErrorKind::Refused,
            ),
            ("BUSY Redis is busy running a script.", ErrorKind::Refused),
            ("MASTERDOWN Link with MASTER is down", ErrorKind::Refused),
            ("MOVED 866 127.0.0.1:7001", ErrorKind::Unsupported),
            (
                "ERR unknown command 'EVALSHA', with args beginning with:",
                ErrorKind::Unsupported,
            ),
            ("ERR max number of clients reached", ErrorKind::Refused),
            ("ERR something new", ErrorKind::Protocol),
        ] {
            assert_eq!(from_text(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn the_arguments_of_an_unknown_command_are_left_out() {
        for text in [
            "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'OOM-pw' ",
            "ERR unknown command `AUTH`, with args beginning with: `OOM-pw`, ",
        ] {
            let failure = from_text(text);
            assert_eq!(failure.kind, ErrorKind::Unsupported);
            assert!(!format!("{failure:?} {}", failure.error()).contains("OOM-pw"));
        }
    }

    #[test]
    fn the_place_in_the_script_is_left_out() {
        let error = from_text("READONLY You can't write. script: abc, on @user_script:9.").error();
        assert!(!error.to_string().contains("user_script"), "{error}");
    }
}
