//! The `key=value` words of the command line, read into types.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use crate::Fault;

/// What was said; which keys make sense is each scenario's business.
#[derive(Debug, Default)]
pub(crate) struct Arguments(HashMap<String, String>);

impl Arguments {
    /// # Errors
    /// If a word is not `key=value`.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, Fault> {
        words
            .map(|word| match word.split_once('=') {
                Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
                None => Err(format!("`{word}` is not key=value").into()),
            })
            .collect::<Result<_, Fault>>()
            .map(Self)
    }

    pub(crate) fn text(&self, key: &str) -> Result<String, Fault> {
        let value = self.0.get(key).cloned();
        value.ok_or_else(|| format!("missing argument {key}=").into())
    }

    pub(crate) fn number<T: FromStr>(&self, key: &str) -> Result<T, Fault> {
        let text = self.text(key)?;
        text.parse()
            .map_err(|_| format!("{key}={text} is not such a number").into())
    }

    /// `seconds=`, with a fraction if need be.
    pub(crate) fn seconds(&self) -> Result<Duration, Fault> {
        Duration::try_from_secs_f64(self.number("seconds")?)
            .map_err(|_| "seconds= is not a length of time".into())
    }

    pub(crate) fn micros(&self, key: &str) -> Result<Duration, Fault> {
        self.number(key).map(Duration::from_micros)
    }

    pub(crate) fn millis(&self, key: &str) -> Result<Duration, Fault> {
        self.number(key).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Arguments, Fault> {
        Arguments::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn values_may_contain_the_sign() {
        let arguments = read("url=redis://h/?a=b seconds=0.5").unwrap();
        assert_eq!(arguments.text("url").unwrap(), "redis://h/?a=b");
        assert_eq!(arguments.seconds().unwrap(), Duration::from_millis(500));
    }

    #[test]
    fn nonsense_is_refused_with_its_name() {
        assert!(read("serial").unwrap_err().to_string().contains("serial"));
        let arguments = read("n=many seconds=-1").unwrap();
        let error = arguments.number::<usize>("n").unwrap_err();
        assert!(error.to_string().contains("n=many"));
        assert!(arguments.seconds().is_err());
        let error = arguments.text("url").unwrap_err();
        assert!(error.to_string().contains("url="));
    }
}
