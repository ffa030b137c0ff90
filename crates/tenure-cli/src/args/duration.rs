//! Durations as people type them: `30s`, `1m30s`, `500ms`, `1.5h`, `2d`, ISO `PT15M`.
//!
//! A bare number is refused, because some tools mean seconds by it and others milliseconds.

use std::time::Duration;

use tenure::core::Ttl;

/// Reads a duration.
///
/// # Errors
/// Says in one line what is wrong and what to write instead.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("empty: say 30s, 5m or 500ms".into());
    }
    if text.starts_with('-') {
        return Err("a duration cannot be negative".into());
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(format!("no unit: say {text}s or {text}ms"));
    }
    match text.strip_prefix(['P', 'p']) {
        Some(iso) => parse_iso(iso),
        None => sum(text, unit),
    }
}

/// How long to wait for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// This long; zero means: not at all.
    AtMost(Duration),
}

impl Wait {
    /// How long at most; `None` for ever.
    #[must_use]
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::Forever => None,
            Self::AtMost(limit) => Some(limit),
        }
    }

    /// What is left of it after `elapsed`.
    #[must_use]
    pub fn less(self, elapsed: Duration) -> Self {
        match self {
            Self::Forever => Self::Forever,
            Self::AtMost(limit) => Self::AtMost(limit.saturating_sub(elapsed)),
        }
    }
}

/// Reads `--wait`: a duration, a plain `0`, or `forever`.
///
/// # Errors
/// As [`parse`].
pub fn parse_wait(text: &str) -> Result<Wait, String> {
    match text.trim() {
        "0" => Ok(Wait::AtMost(Duration::ZERO)),
        "forever" => Ok(Wait::Forever),
        text => parse(text).map(Wait::AtMost),
    }
}

/// Reads `--ttl`: a duration of at least one second.
///
/// # Errors
/// As [`parse`], and if the lease would be too short to be renewed in time.
pub fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse(text)?;
    if ttl < Duration::from_secs(1) {
        return Err("too short: a lease lasts at least 1s".into());
    }
    if ttl > Ttl::MAX.duration() {
        let days = Ttl::MAX.duration().as_secs() / 86_400;
        return Err(format!("too long: a lease lasts at most {days}d"));
    }
    Ok(ttl)
}

fn parse_iso(text: &str) -> Result<Duration, String> {
    let wrong = || "not an ISO 8601 duration: say PT15M, PT1H30M or P1D".to_owned();
    let (days, time) = text.split_once(['T', 't']).unwrap_or((text, ""));
    if days.is_empty() && time.is_empty() {
        return Err(wrong());
    }
    let days = sum(days, |unit| matches!(unit, "D" | "d").then_some(86_400.0));
    let time = sum(time, |unit| match unit {
        "H" | "h" => Some(3_600.0),
        "M" | "m" => Some(60.0),
        "S" | "s" => Some(1.0),
        _ => None,
    });
    days.ok()
        .zip(time.ok())
        .and_then(|(days, time)| days.checked_add(time))
        .ok_or_else(wrong)
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "ms" | "msec" | "millis" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

// Number, unit, number, unit ... added up.
fn sum(text: &str, seconds_of: impl Fn(&str) -> Option<f64>) -> Result<Duration, String> {
    let mut rest = text.trim_start();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let after = after.trim_start();
        let unit_end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (name, after) = after.split_at(unit_end);
        let value: f64 = number
            .parse()
            .map_err(|_| format!("'{rest}' is not a number and a unit"))?;
        if name.is_empty() {
            return Err(format!(
                "no unit after {number}: say {number}s or {number}ms"
            ));
        }
        let seconds = seconds_of(name)
            .ok_or_else(|| format!("unknown unit '{name}': known are ms, s, m, h, d"))?;
        total = Duration::try_from_secs_f64(value * seconds)
            .ok()
            .map(|part| Duration::from_millis(part.as_secs_f64().mul_add(1_000.0, 0.5) as u64))
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| "too long".to_owned())?;
        rest = after.trim_start();
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(text: &str) -> u64 {
        u64::try_from(parse(text).expect(text).as_millis()).expect("fits")
    }

    #[test]
    fn people_and_machines_write_durations_in_many_ways() {
        let cases = [
            ("30s", 30_000),
            ("500ms", 500),
            ("1m30s", 90_000),
            ("1m 30s", 90_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
            ("PT15M", 900_000),
            ("PT1H30M", 5_400_000),
            ("P1DT1S", 86_401_000),
            ("PT0.5S", 500),
        ];
        for (text, expected) in cases {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bare_number_gets_the_hint() {
        assert_eq!(parse("30"), Err("no unit: say 30s or 30ms".into()));
        assert_eq!(
            parse("1m30"),
            Err("no unit after 30: say 30s or 30ms".into())
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "-5s",
            "s",
            "5 parsecs",
            "PT",
            "P",
            "PTM",
            "P1M",
            "1..5s",
            "99999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn waiting_may_be_nothing_or_endless() {
        assert_eq!(parse_wait("0"), Ok(Wait::AtMost(Duration::ZERO)));
        assert_eq!(parse_wait("0s"), Ok(Wait::AtMost(Duration::ZERO)));
        assert_eq!(parse_wait("forever"), Ok(Wait::Forever));
        assert!(parse_wait("10").is_err());
    }

    #[test]
    fn a_lease_lasts_from_a_second_to_a_year() {
        assert!(parse_ttl("999ms").is_err());
        assert_eq!(parse_ttl("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(
            parse_ttl("367d"),
            Err("too long: a lease lasts at most 366d".into())
        );
    }
}
