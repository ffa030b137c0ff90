//! From measured durations to the figures that are printed.

use std::time::Duration;

use serde_json::{Value, json};

/// Measured durations, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Durations(Vec<u64>);

impl Durations {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    pub(crate) fn add(&mut self, duration: Duration) {
        self.0
            .push(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The quantiles of what was measured so far.
    pub(crate) fn ranked(mut self) -> Ranked {
        self.0.sort_unstable();
        Ranked(self.0)
    }
}

/// Sorted durations.
#[derive(Debug)]
pub(crate) struct Ranked(Vec<u64>);

impl Ranked {
    /// In microseconds; null if nothing was measured.
    pub(crate) fn quantile(&self, quantile: f64) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank between 0 and the number of values"
        )]
        let rank = (quantile * self.0.len() as f64).ceil() as usize;
        json!(micros(self.0[rank.clamp(1, self.0.len()) - 1]))
    }

    /// In microseconds; null if nothing was measured.
    pub(crate) fn mean(&self) -> Value {
        let sum: u64 = self.0.iter().sum();
        let count = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        sum.checked_div(count)
            .map_or(Value::Null, |mean| json!(micros(mean)))
    }
}

/// With `digits` behind the point.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(millis: impl IntoIterator<Item = u64>) -> Ranked {
        let mut durations = Durations::default();
        millis
            .into_iter()
            .for_each(|millis| durations.add(Duration::from_millis(millis)));
        durations.ranked()
    }

    #[test]
    fn a_quantile_is_a_value_that_was_measured() {
        let ranked = ranked((1..=100).rev());
        assert_eq!(ranked.quantile(0.5), json!(50_000.0));
        assert_eq!(ranked.quantile(0.99), json!(99_000.0));
        assert_eq!(ranked.quantile(1.0), json!(100_000.0));
        assert_eq!(ranked.mean(), json!(50_500.0));
    }

    #[test]
    fn nothing_measured_is_no_figure() {
        assert_eq!(ranked([]).quantile(0.5), Value::Null);
        assert_eq!(ranked([]).mean(), Value::Null);
    }
}
