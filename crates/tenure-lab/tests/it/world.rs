//! Running the lab's own program.

use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_lab::servers::wait::until;

/// Generous, because test machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a run of the lab ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The lab with these arguments, to be started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure-lab"));
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the lab to its end.
pub(crate) fn lab(arguments: &[&str]) -> Done {
    let done = command(arguments).output().expect("the lab starts");
    Done {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

impl Done {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// Asks again and again until `condition` answers something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    until(PATIENCE, condition).unwrap_or_else(|| panic!("still not so: {what}"))
}
