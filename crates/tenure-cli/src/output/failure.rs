//! An error as the user reads it: what, why, what to do; and the exit code that goes with it.

use std::fmt;

use anstyle::{AnsiColor, Style};

use super::codes::Code;
use crate::exit::Exit;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    /// The row of the table that this belongs to.
    pub code: Code,
    /// How the process ends because of it.
    pub exit: Exit,
    what: String,
    facts: Vec<(&'static str, String)>,
}

/// What every command returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure of this kind; `what` is one line without a full stop.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self {
            code,
            exit: code.exit(),
            what: what.into(),
            facts: Vec::new(),
        }
    }

    /// Adds a line such as `from      TENURE_STORE in the environment`.
    #[must_use]
    pub fn fact(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.facts.push((label, text.into()));
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(self, text: impl Into<String>) -> Self {
        self.fact("help", text)
    }

    /// Takes the advice away, for a command that is itself what it advises.
    #[must_use]
    pub fn without_help(mut self) -> Self {
        self.facts.retain(|(label, _)| *label != "help");
        self
    }

    /// Ends with another exit code than the table's.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The first line without code and exit code.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The lines below the first.
    pub fn facts(&self) -> &[(&'static str, String)] {
        &self.facts
    }

    /// Removes a secret from every text, in case a driver quoted it.
    #[must_use]
    pub fn without(mut self, secrets: &[String]) -> Self {
        for secret in secrets {
            self.what = self.what.replace(secret.as_str(), "***");
            for (_, text) in &mut self.facts {
                *text = text.replace(secret.as_str(), "***");
            }
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let dim = Style::new().dimmed();
        let (code, exit) = (self.code.text(), self.exit.code());
        write!(
            f,
            "{red}error[{code}]{red:#}: {} {dim}(exit {exit}){dim:#}",
            self.what
        )?;
        for (label, text) in &self.facts {
            write!(f, "\n  {dim}{label:<9}{dim:#} {text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let failure = Failure::new(Code::Unreachable, "cannot reach redis://cache:6379")
            .fact("from", "TENURE_STORE in the environment")
            .help("tenure doctor");
        let plain = anstream::adapter::strip_str(&failure.to_string()).to_string();
        assert_eq!(
            plain,
            "error[T0101]: cannot reach redis://cache:6379 (exit 69)\n  \
             from      TENURE_STORE in the environment\n  help      tenure doctor"
        );
    }

    #[test]
    fn a_secret_quoted_by_a_driver_is_removed() {
        let failure = Failure::new(Code::AccessRefused, "bad password hunter22")
            .fact("from", "redis://:hunter22@cache")
            .without(&["hunter22".into()]);
        assert!(!failure.to_string().contains("hunter22"));
    }
}
