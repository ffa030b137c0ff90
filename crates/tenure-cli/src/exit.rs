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

/// Whose help it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// `tenure run`.
    Run,
    /// `tenure elect`, which waits for ever, and again after a loss.
    Elect,
}

/// The table that the help of a command ends with: what it can exit with, and nothing else.
pub fn help(of: Of) -> String {
    let mut text = String::from("Exit codes:");
    for (codes, run, elect) in ROWS {
        let meaning = match of {
            Of::Run => run,
            Of::Elect => elect,
        };
        let mut codes = codes;
        for line in meaning.lines() {
            text += &format!("\n  {codes:<16} {line}");
            codes = "";
        }
    }
    text
}

/// Codes, what they mean for `run`, and for `elect`.
const ROWS: [(&str, &str, &str); 12] = [
    (
        "(the command's)",
        "it ran and ended by itself, and the lock was held all the time",
        "it ran and ended by itself, and we led all the time",
    ),
    same(
        "128+n",
        "it died of signal n (130 after ^C, 137 after KILL)",
    ),
    same("64", "the command line cannot be understood"),
    (
        "69",
        "the store cannot be reached, answers wrongly, or has not answered when the wait was over;\n\
         the command did not run",
        "the store cannot be reached, or answers wrongly; the command did not run",
    ),
    same("70", "a bug in tenure"),
    (
        "75",
        "busy, the wait ran out, or --once-per and it was run; the command did not run\n\
         (--exit-busy, --if-busy skip; neither while the store recovers, or several race for it)",
        "",
    ),
    same("77", "the store refused our user or password"),
    same("78", "the config file is wrong"),
    (
        "79",
        "the lease was lost, and the command was ended because of it (--exit-lost)",
        "the lease was lost just when we were asked to end (otherwise we stand by, and lead again)",
    ),
    ("124", "--hold-at-most was reached", ""),
    same(
        "126, 127",
        "the command cannot be executed, does not exist; the lock was not touched",
    ),
    same(
        "130, 143",
        "interrupted (INT, TERM) while waiting; the place in the queue was given up",
    ),
];

const fn same(
    codes: &'static str,
    meaning: &'static str,
) -> (&'static str, &'static str, &'static str) {
    (codes, meaning, meaning)
}

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
                help(Of::Run).contains(&exit.code().to_string()),
                "{exit:?} is missing"
            );
        }
    }
}
