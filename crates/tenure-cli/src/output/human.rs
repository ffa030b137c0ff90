//! Durations, counts and moments as people write them.

use std::time::Duration;

/// `4m12s`, `22s`, `450ms`, `2d3h`: as everywhere.
pub fn duration(duration: Duration) -> String {
    tenure::core::Spelled(duration).to_string()
}

/// `0:08`, `10:00`, `1:02:03`: a stopwatch.
pub fn stopwatch(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds % 3_600 / 60, seconds % 60);
    if hours > 0 {
        return format!("{hours}:{minutes:02}:{seconds:02}");
    }
    format!("{minutes}:{seconds:02}")
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// `1 other`, `2 others`.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// When something began that has lasted for `ago`, as a local time of day; with the date if it was
/// not today. Wall time is only for the reader: no decision is made with it.
pub fn since(ago: Duration) -> String {
    let now = jiff::Zoned::now();
    let Ok(start) = now.checked_sub(ago) else {
        return "long ago".into();
    };
    let format = if start.date() == now.date() {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M:%S"
    };
    start.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopwatch_counts_minutes_and_hours() {
        assert_eq!(stopwatch(Duration::from_secs(8)), "0:08");
        assert_eq!(stopwatch(Duration::from_secs(600)), "10:00");
        assert_eq!(stopwatch(Duration::from_secs(3_723)), "1:02:03");
    }

    #[test]
    fn ordinals_know_the_teens() {
        let texts: Vec<String> = [1, 2, 3, 4, 11, 12, 21].map(ordinal).into();
        assert_eq!(texts, ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st"]);
    }

    #[test]
    fn a_moment_of_today_has_no_date() {
        assert_eq!(since(Duration::ZERO).len(), "03:00:02".len());
        assert_eq!(
            since(Duration::from_secs(200_000)).len(),
            "2026-11-15 03:00:02".len()
        );
    }
}
