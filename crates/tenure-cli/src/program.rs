//! The command to run: found before the lock is taken, so that a typo costs nobody a wait.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::job::{ProgramError, ProgramErrorKind, resolve_program};
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};

/// A command that exists and may be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What to execute.
    pub path: PathBuf,
    /// What the command calls itself: what was typed.
    pub name: OsString,
    /// What it is called with.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// The command as typed: searched in PATH as the shell would.
    ///
    /// # Errors
    /// 127 if there is no such file, 126 if it may not be executed.
    pub fn find(command: &[OsString]) -> Result<Self> {
        let Some((name, arguments)) = command.split_first() else {
            return Err(Failure::new(Code::Usage, "no command to run"));
        };
        let path = resolve_program(name).map_err(|error| refusal(&error))?;
        Ok(Self {
            path,
            name: name.clone(),
            arguments: arguments.to_vec(),
        })
    }

    /// `/bin/sh -c STRING`.
    pub fn shell(string: OsString) -> Self {
        Self {
            path: "/bin/sh".into(),
            name: "sh".into(),
            arguments: vec!["-c".into(), string],
        }
    }
}

fn refusal(error: &ProgramError) -> Failure {
    let name = error.name.to_string_lossy();
    match &error.kind {
        ProgramErrorKind::NotFound => {
            let failure =
                Failure::new(Code::CommandNotFound, format!("no program called '{name}'"));
            if error.looks_like_shell {
                return failure
                    .help("did you mean -c? a shell is used only then: tenure run NAME -c '…'");
            }
            if name.contains('/') {
                return failure.help("there is no such file");
            }
            if Path::new(&error.name).exists() {
                return failure.help(format!("did you mean ./{name}? only PATH is searched"));
            }
            failure.help("it is not in PATH")
        }
        ProgramErrorKind::NotExecutable(path) => {
            let path = path.display();
            Failure::new(
                Code::CommandNotExecutable,
                format!("'{path}' may not be executed"),
            )
            .help(format!("chmod +x {path}"))
        }
        ProgramErrorKind::IsFolder(path) => Failure::new(
            Code::CommandNotExecutable,
            format!("'{}' is a folder", path.display()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_that_looks_like_a_script_is_asked_about() {
        let failure = Program::find(&["a | b > c".into()]).expect_err("no such program");
        assert_eq!(failure.exit.code(), 127);
        assert_eq!(failure.what(), "no program called 'a | b > c'");
        assert!(failure.facts()[0].1.starts_with("did you mean -c?"));
    }

    #[test]
    fn a_folder_and_a_plain_file_cannot_be_executed() {
        for name in ["/tmp", "/etc/passwd"] {
            let failure = Program::find(&[name.into()]).expect_err(name);
            assert_eq!(failure.exit.code(), 126, "{name}");
        }
    }
}
