//! [`Steps`]: a program that stops between its steps, so that the harness can look at it and at the
//! server.

use crate::arguments::Arguments;
use crate::{Fault, complain};

/// Whether somebody looks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Nobody: the scenario runs through.
    Unwatched,
    /// `steps=stdin`: each step is told, and a line on standard input lets the next one begin.
    Watched,
}

impl Steps {
    /// # Errors
    /// If `steps=` says anything but `stdin`.
    pub(crate) fn read(arguments: &Arguments) -> Result<Self, Fault> {
        match arguments.text("steps").as_deref() {
            Err(_) => Ok(Self::Unwatched),
            Ok("stdin") => Ok(Self::Watched),
            Ok(other) => Err(format!("steps={other}: only stdin can be asked").into()),
        }
    }

    /// Says that a step is done, and goes on when whoever looks on has seen enough. The end of the
    /// input counts as a line: a harness that died keeps nobody waiting.
    pub(crate) async fn done(self, step: &str) -> Result<(), Fault> {
        if self == Self::Watched {
            complain(step);
            let read = || std::io::stdin().read_line(&mut String::new());
            tokio::task::spawn_blocking(read).await??;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_on_unless_it_is_said_how() {
        let read = |line: &str| {
            let words = line.split_whitespace().map(str::to_owned);
            Steps::read(&Arguments::read(words).unwrap())
        };
        assert_eq!(read("n=1").unwrap(), Steps::Unwatched);
        assert_eq!(read("steps=stdin").unwrap(), Steps::Watched);
        let error = read("steps=often").unwrap_err().to_string();
        assert!(error.contains("steps=often"));
    }
}
