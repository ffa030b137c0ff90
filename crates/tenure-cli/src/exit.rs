//! The exit codes of `tenure`, each with its meaning; nothing else decides about numbers.

use std::process::ExitCode;

use crate::job::Signal;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: did what was asked.
    Success,
    /// 64: the command line cannot be understood.
    Usage,
    /// 69: the store cannot be reached or answers wrongly, and the lock was not held.
    StoreUnavailable,
    /// 70: a bug in tenure.
    Bug,
    /// 75: the lock is busy, or the wait for it ran out.
    Busy,
    /// 77: the store refused our user or password.
    AccessRefused,
    /// 78: the config file is wrong.
    Config,
    /// 79: the lease was lost; outside sysexits (64–78), below 124 and 128.
    Lost,
    /// 124: `--hold-at-most` ended the command, as GNU timeout says it.
    HeldTooLong,
    /// 126: the command exists but cannot be executed.
    NotExecutable,
    /// 127: there is no such command.
    NotFound,
    /// 128 + n: ended by signal n.
    Signal(u8),
    /// What the command returned, or what the user asked for with `--exit-busy`, `--exit-lost`.
    Code(u8),
}

impl Exit {
    /// Ended by `signal`.
    pub fn of_signal(signal: Signal) -> Self {
        Self::Signal(u8::try_from(signal.as_raw()).unwrap_or(0))
    }

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Usage => 64,
            Self::StoreUnavailable => 69,
            Self::Bug => 70,
            Self::Busy => 75,
            Self::AccessRefused => 77,
            Self::Config => 78,
            Self::Lost => 79,
            Self::HeldTooLong => 124,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Signal(number) => number.saturating_add(128),
            Self::Code(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table that `tenure run --help` ends with.
pub const HELP: &str = "\
Exit codes:
  (the command's)  it ran and ended by itself, and the lock was held all the time
  128+n            it died of signal n (130 after ^C, 137 after KILL)
  64               the command line cannot be understood
  69               the store cannot be reached, or answers wrongly; the command did not run
  70               a bug in tenure
  75               busy, the wait ran out, or --once-per and it was run; the command did not run
                   (--exit-busy, --if-busy skip)
  77               the store refused our user or password
  78               the config file is wrong
  79               the lease was lost, and the command was ended because of it (--exit-lost)
  124              --hold-at-most was reached
  126, 127         the command cannot be executed, does not exist; the lock was not touched
  130, 143         interrupted (INT, TERM) while waiting; the place in the queue was given up";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_code() {
        let exits = [
            Exit::Usage,
            Exit::StoreUnavailable,
            Exit::Bug,
            Exit::Busy,
            Exit::AccessRefused,
            Exit::Config,
            Exit::Lost,
            Exit::HeldTooLong,
            Exit::NotExecutable,
            Exit::NotFound,
            Exit::Signal(2),
            Exit::Signal(15),
        ];
        for exit in exits {
            assert!(
                HELP.contains(&exit.code().to_string()),
                "{exit:?} is missing"
            );
        }
    }
}
