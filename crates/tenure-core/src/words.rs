//! [`Spelled`]: lengths of time as people write them, in every message.

use std::fmt;
use std::time::Duration;

/// A length of time for people: `0.2ms`, `450ms`, `1.5s`, `22s`, `4m12s`, `2d3h`. Two units at most, because nobody needs
/// more; rounded down.
///
/// ```
/// # use std::time::Duration;
/// # use tenure_core::Spelled;
/// assert_eq!(Spelled(Duration::from_micros(189_671)).to_string(), "189ms");
/// assert_eq!(Spelled(Duration::from_secs(252)).to_string(), "4m12s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelled(pub Duration);

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (micros, seconds) = (self.0.as_micros(), self.0.as_secs());
        let ((large, unit), (small, smaller)) = match seconds {
            0 if micros == 0 => return f.write_str("0s"),
            0 if micros / 1_000 < 10 => return with_a_tenth(f, micros, 1_000, "ms"),
            0 => return write!(f, "{}ms", micros / 1_000),
            1..10 => return with_a_tenth(f, micros, 1_000_000, "s"),
            10..60 => return write!(f, "{seconds}s"),
            60..3_600 => ((seconds / 60, "m"), (seconds % 60, "s")),
            3_600..86_400 => ((seconds / 3_600, "h"), (seconds % 3_600 / 60, "m")),
            _ => ((seconds / 86_400, "d"), (seconds % 86_400 / 3_600, "h")),
        };
        write!(f, "{large}{unit}")?;
        if small > 0 {
            write!(f, "{small}{smaller}")?;
        }
        Ok(())
    }
}

/// `3.4ms`, but `3ms`.
fn with_a_tenth(f: &mut fmt::Formatter<'_>, micros: u128, one: u128, unit: &str) -> fmt::Result {
    let (whole, tenth) = (micros / one, micros % one * 10 / one);
    if tenth == 0 && whole > 0 {
        return write!(f, "{whole}{unit}");
    }
    // What is there is never said to be nothing.
    let tenth = if whole == 0 { tenth.max(1) } else { tenth };
    write!(f, "{whole}.{tenth}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_at_most_and_never_nanoseconds() {
        let cases = [
            (0, "0s"),
            (7, "0.1ms"),
            (189, "0.1ms"),
            (3_000, "3ms"),
            (3_450, "3.4ms"),
            (9_950, "9.9ms"),
            (10_950, "10ms"),
            (189_671, "189ms"),
            (999_999, "999ms"),
            (1_000_000, "1s"),
            (1_500_000, "1.5s"),
            (22_900_000, "22s"),
            (60_000_000, "1m"),
            (252_000_000, "4m12s"),
            (7_260_000_000, "2h1m"),
            (183_600_000_000, "2d3h"),
        ];
        for (micros, text) in cases {
            assert_eq!(Spelled(Duration::from_micros(micros)).to_string(), text);
        }
        assert_eq!(Spelled(Duration::from_nanos(1)).to_string(), "0s");
    }
}
