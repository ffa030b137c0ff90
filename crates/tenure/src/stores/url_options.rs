//! What the options of store URLs have in common: times with a unit, and advice after a typo.

use std::time::Duration;

/// A whole number with its unit: `250ms`, `5s` or `10m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let milliseconds: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    let number: u32 = digits.parse().ok()?;
    Some(Duration::from_millis(u64::from(number) * milliseconds))
}

/// Which of the `known` options was probably meant.
pub(super) fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = known
        .iter()
        .map(|known| (strsim::jaro_winkler(typed, known), *known));
    likeness
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("5s"), Some(Duration::from_secs(5)));
        assert_eq!(duration("10m"), Some(Duration::from_secs(600)));
        for wrong in ["", "5", "s", "-5s", "1.5s", "5h", "99999999999s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_typo_finds_what_was_meant() {
        assert_eq!(nearest("pol", &["fuse", "poll"]), Some("poll"));
        assert_eq!(nearest("colour", &["fuse", "poll"]), None);
    }
}
