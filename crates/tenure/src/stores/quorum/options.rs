//! What the URL of a quorum of Redis servers says. No error of this file ever shows a password.

use std::time::Duration;

use tenure_core::{Error, ErrorKind};

use super::{Rule, Settings};
use crate::stores::url_options::duration;

/// What a URL says: the servers, each with a label for people and a URL of its own.
pub(super) struct Options {
    pub(super) servers: Vec<(String, String)>,
    pub(super) settings: Settings,
}

/// A node time-out that makes sense.
const ALLOWED: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Settings::LONGEST_NODE_TIMEOUT;

impl Options {
    /// Reads a URL: `redlock://[user[:password]@]host[:port],host[:port],…[/db][?options]`. What is
    /// said before the first host, after the last and as an option goes for all servers.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] that says what is wrong and what is meant instead.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            wrong("two slashes are missing in the URL: write redlock://host1,host2,host3")
        })?;
        let (rule, server_scheme) = match scheme {
            "redlock" => (Rule::Majority, "redis"),
            "redlocks" => (Rule::Majority, "rediss"),
            "redis+all" => (Rule::All, "redis"),
            "rediss+all" => (Rule::All, "rediss"),
            _ => return Err(wrong("a quorum is written redlock:// or redis+all://")),
        };
        if rest.contains('#') {
            return Err(wrong(
                "a URL of a quorum has no part after `#`: write a `#` in a password as %23",
            ));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (credentials, hosts) = match hosts.rsplit_once('@') {
            Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
            None => (String::new(), hosts),
        };
        if credentials.contains([',', '@']) && credentials.matches('@').count() > 1 {
            return Err(wrong(
                "credentials stand once, before the first host, and go for all servers; in a \
                 password write `@` as %40 and `,` as %2C",
            ));
        }
        let mut settings = Settings::new(rule);
        let mut others = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("node_timeout", value)) => settings.node_timeout = node_timeout(value)?,
                _ => others.push(option),
            }
        }
        let others = others.join("&");
        let mut servers: Vec<(String, String)> = Vec::new();
        for host in hosts.split(',').map(str::trim) {
            if host.is_empty() {
                return Err(wrong(
                    "a host is missing: write redlock://host1,host2,host3, with a comma between two",
                ));
            }
            if servers.iter().any(|(known, _)| known == host) {
                return Err(wrong(format!(
                    "{host} is named twice: one server has one voice, name each once"
                )));
            }
            let url = format!("{server_scheme}://{credentials}{host}{path}?{others}");
            servers.push((host.to_owned(), url));
        }
        Ok(Self { servers, settings })
    }
}

fn node_timeout(text: &str) -> Result<Duration, Error> {
    let given = duration(text).filter(|given| ALLOWED.contains(given));
    given.ok_or_else(|| {
        wrong(format!(
            "`{text}` is not a node_timeout: write a whole number with its unit, from 1ms to 1s, for \
             example 50ms"
        ))
    })
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        let error = Options::parse(url).err().expect(url);
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    }

    #[test]
    fn what_is_said_once_goes_for_all_servers() {
        let options =
            Options::parse("redlocks://u:p%40@a,b:7000,[::1]:1/3?prefix=x&node_timeout=20ms")
                .unwrap();
        assert_eq!(options.settings.rule, Rule::Majority);
        assert_eq!(options.settings.node_timeout, Duration::from_millis(20));
        let urls: Vec<_> = options
            .servers
            .iter()
            .map(|(_, url)| url.as_str())
            .collect();
        assert_eq!(
            urls,
            [
                "rediss://u:p%40@a/3?prefix=x",
                "rediss://u:p%40@b:7000/3?prefix=x",
                "rediss://u:p%40@[::1]:1/3?prefix=x"
            ]
        );
        assert_eq!(options.servers[1].0, "b:7000", "a label without password");
    }

    #[test]
    fn two_primaries_are_enough_if_all_must_agree() {
        let options = Options::parse("redis+all://a,b").unwrap();
        assert_eq!(options.settings.rule, Rule::All);
        assert_eq!(options.settings.node_timeout, Settings::NODE_TIMEOUT);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_advice() {
        assert!(refusal("redlock:a,b,c").contains("redlock://"));
        assert!(refusal("redlock://a,,c").contains("comma"));
        assert!(refusal("redlock://a,b,a").contains("named twice"));
        assert!(refusal("redlock://u:x@a,u:x@b,c").contains("once"));
        assert!(refusal("redlock://a,b,c?node_timeout=50").contains("50ms"));
        assert!(refusal("redlock://a,b,c?node_timeout=1m").contains("to 1s"));
        assert!(refusal("redlock://a,b,c#x").contains("%23"));
    }

    #[test]
    fn no_error_shows_the_password() {
        for url in [
            "redlock://u:hunter2@a,u:hunter2@b",
            "redlock://u:hunter2@a,a",
            "redlock://u:hunter2@a,,b",
            "redlock://u:hunter2@a#b",
        ] {
            assert!(!refusal(url).contains("hunter2"), "{url}");
        }
    }
}
