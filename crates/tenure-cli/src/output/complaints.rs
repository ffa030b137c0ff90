//! The library's errors and outcomes as [`Failure`]s: the one place that maps kinds to codes.

use std::error::Error as _;
use std::time::Duration;

use tenure::core::{Contention, Error, ErrorKind, ForcedRelease, LockName, Mode};
use tenure::{Blocked, CountedRun, Ending};

use super::codes::Code;
use super::failure::Failure;
use super::human;
use super::view::holder_sentence;
use crate::store_choice::{Origin, StoreChoice};

/// An error of the library, with the store's origin and without its password.
pub fn of_error(error: &Error, choice: &StoreChoice) -> Failure {
    let code = code_of(error.kind());
    let mut failure = match code {
        Code::Unreachable => {
            let url = &choice.url;
            Failure::new(code, format!("cannot reach {url}")).fact("because", error.message())
        }
        _ => Failure::new(code, error.message()),
    };
    for (label, text) in error.context() {
        failure = failure.fact(label, text);
    }
    if let Some(cause) = error.source() {
        // Drivers write several lines; a fact is one.
        let lines = cause.to_string();
        let words: Vec<&str> = lines.split_whitespace().collect();
        failure = failure.fact("cause", words.join(" "));
    }
    if matches!(code, Code::Usage | Code::OtherKind | Code::Lost) {
        return failure.without(&choice.url.secrets());
    }
    failure = choice.blame(failure);
    match code {
        Code::Unreachable | Code::StoreTrouble => {
            failure.help(format!("tenure doctor{}", store_option(choice)))
        }
        _ => failure,
    }
}

/// A wait that was over before the store had answered. Nobody knows whether the lock is busy, so this is not
/// what `--if-busy skip` skips.
pub fn wait_over(wait: Duration, choice: &StoreChoice) -> Failure {
    let (wait, url, option) = (human::duration(wait), &choice.url, store_option(choice));
    let what = format!("the wait of {wait} was over before {url} answered");
    choice.blame(Failure::new(Code::WaitOver, what)).help(format!(
        "a longer --wait; --wait 0 asks once, and gives the store five seconds · is it slow? tenure doctor{option}"
    ))
}

/// No number of a sequence, within what time there was for it.
pub fn no_number(
    name: &str,
    error: &Error,
    wait: Option<Duration>,
    choice: &StoreChoice,
) -> Failure {
    let told = |label: &str| error.context().find(|(key, _)| *key == label);
    match (error.kind(), wait) {
        (ErrorKind::Busy, _) => {
            let code = match told("recovering") {
                Some(_) => Code::Recovering,
                None => Code::Busy,
            };
            let failure = Failure::new(code, format!("no number of {name:?} yet"));
            let failure = error
                .context()
                .fold(failure, |failure, (label, text)| failure.fact(label, text));
            failure.help(format!("why: tenure doctor{}", store_option(choice)))
        }
        (ErrorKind::Unavailable, Some(wait)) if !wait.is_zero() => match told("because") {
            Some((_, why)) => {
                let url = &choice.url;
                let failure = Failure::new(Code::Unreachable, format!("cannot reach {url}"))
                    .fact("because", why)
                    .fact("waited", human::duration(wait));
                choice
                    .blame(failure)
                    .help(format!("tenure doctor{}", store_option(choice)))
            }
            None => wait_over(wait, choice),
        },
        _ => of_error(error, choice),
    }
}

/// Somebody else holds the lock; or nobody may, but the store is not sure and lets nobody in, or several got in each other's
/// way. That is not what `--if-busy skip` skips: if all did, nobody would run it.
pub fn busy(name: &LockName, mode: Mode, blocked: &Blocked, choice: &StoreChoice) -> Failure {
    let contention = &blocked.contention;
    let unknown = blocked.recovering().is_some() && !is_in_the_way(contention, mode);
    let quoted = format!("{:?}", name.as_str());
    let (code, what) = if unknown {
        let what = format!("the store is recovering, and whether {quoted} is busy is not known");
        (Code::Recovering, what)
    } else if blocked.nobody_won() {
        let what = format!(
            "nobody is known to hold {quoted}, but others ask for it, too, and none has won"
        );
        (Code::Raced, what)
    } else {
        (Code::Busy, format!("{quoted} is busy"))
    };
    let mut failure = Failure::new(code, what);
    if let Some(left) = blocked.recovering() {
        failure = failure.fact("recovering", recovering(left, contention.restless, choice));
    }
    for holder in &contention.holders {
        failure = failure.fact("held by", holder_sentence(holder, blocked.now));
    }
    let shown = u32::try_from(contention.holders.len()).unwrap_or(u32::MAX);
    if contention.holder_count > shown {
        let more = (contention.holder_count - shown) as usize;
        failure = failure.fact("", human::count(more, "other"));
    }
    // Who had queued up (and gives up now) does not count itself.
    let waiting = contention
        .waiter_count
        .saturating_sub(u32::from(blocked.ahead.is_some()));
    if waiting > 0 {
        failure = failure.fact("waiting", human::count(waiting as usize, "other"));
    }
    let (word, option) = (shell_word(name.as_str()), store_option(choice));
    let wait = match blocked.ahead {
        None => "wait for it: --wait 10m",
        Some(_) => "wait longer: --wait 10m",
    };
    let mut help = format!("{wait} · see it: tenure show {word}{option}");
    if let Some(owner) = contention.holders.first().and_then(|holder| holder.owner) {
        let id = owner.short();
        help += &format!(" · stuck? tenure force-release {word} --lease {id} --reason …{option}");
    }
    failure.help(help)
}

/// Whether those who are known to hold it keep out whoever wants it in this way.
fn is_in_the_way(contention: &Contention, mode: Mode) -> bool {
    let holders = &contention.holders;
    match mode {
        Mode::Exclusive => !holders.is_empty(),
        Mode::Shared => holders.iter().any(|it| it.mode != Mode::Shared),
        Mode::Permits(permits) => contention.holder_count >= permits.capacity(),
    }
}

/// Somebody has run it in this period.
pub fn counted(name: &LockName, run: &CountedRun, record: &str, choice: &StoreChoice) -> Failure {
    let what = format!("{:?} was already run in this period", name.as_str());
    let (ago, left) = (run.started_ago(), run.counts_for());
    let mut by = format!(
        "{}, started {} ({} ago)",
        run.by,
        human::since(ago),
        human::duration(ago)
    );
    by += &match (&run.ending, run.took()) {
        (Ending::Unknown, _) => ", has not said how it ended".to_owned(),
        (ending, Some(took)) => format!(", took {}, {ending}", human::duration(took)),
        (ending, None) => format!(", {ending}"),
    };
    let mut help = "run it all the same: without --once-per".to_owned();
    if let Some(lease) = run.lease {
        let (word, id, option) = (
            shell_word(record),
            lease.owner.short(),
            store_option(choice),
        );
        help += &format!(
            " · count it no more: tenure force-release {word} --lease {id} --reason …{option}"
        );
    }
    Failure::new(Code::Counted, what)
        .fact("run by", by)
        .fact("counts", format!("for another {}", human::duration(left)))
        .help(help)
}

/// Why nobody gets in although nobody may hold it.
fn recovering(left: Duration, restless: bool, choice: &StoreChoice) -> String {
    let (left, option) = (human::duration(left), store_option(choice));
    if restless {
        return format!(
            "{left} left, but again and again: the store restarts, is replaced or loses its data so often \
             that it may never let anybody in (see tenure doctor{option})"
        );
    }
    format!(
        "{left} left: the store has just started, or lost data, and lets nobody in before all that it \
         may have forgotten has ended (why: tenure doctor{option})"
    )
}

/// The lease is not ours any more.
pub fn lost(name: &LockName, forced: Option<&ForcedRelease>) -> Failure {
    let failure = Failure::new(
        Code::Lost,
        format!("the lease of {:?} is lost", name.as_str()),
    );
    match forced {
        Some(forced) => failure.fact(
            "because",
            format!("released by {}: {}", forced.by, forced.reason),
        ),
        None => failure.fact(
            "because",
            "it has expired, was released already, or never was",
        ),
    }
}

fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidInput => Code::Usage,
        ErrorKind::Configuration => Code::StoreUrl,
        ErrorKind::Unavailable => Code::Unreachable,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => Code::AccessRefused,
        ErrorKind::Conflict => Code::OtherKind,
        ErrorKind::Busy => Code::Busy,
        ErrorKind::Lost => Code::Lost,
        ErrorKind::Closed => Code::Bug,
        // Refused, unsupported, senseless answers, and what later versions of the library add.
        _ => Code::StoreTrouble,
    }
}

// So that the commands we suggest ask the same store.
fn store_option(choice: &StoreChoice) -> String {
    match choice.origin {
        Origin::Flag if choice.url.has_password() => " --store …".into(),
        Origin::Flag => {
            format!(" --store {}", shell_word(&choice.url.to_string()))
        }
        _ => String::new(),
    }
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use tenure::core::Timestamp;

    use crate::output::secret::StoreUrl;

    use super::*;

    #[test]
    fn a_race_that_nobody_won_is_not_called_busy_and_so_not_skipped() {
        let name = LockName::new("x").unwrap();
        let choice = StoreChoice {
            url: StoreUrl::new("redlock://a,b,c"),
            origin: Origin::Flag,
        };
        let blocked = Blocked {
            now: Timestamp::from_micros(1),
            ahead: None,
            contention: Contention::default(),
        };
        let failure = busy(&name, Mode::Exclusive, &blocked, &choice);
        assert_eq!(failure.code, Code::Raced);
        assert!(failure.what().starts_with("nobody is known to hold \"x\""));
    }

    #[test]
    fn suggested_commands_survive_the_shell() {
        assert_eq!(shell_word("app/x:1"), "app/x:1");
        assert_eq!(shell_word("it's mine"), r"'it'\''s mine'");
        assert_eq!(shell_word("$(rm)"), "'$(rm)'");
    }
}
