//! [`Program`]: how the lab starts processes that never outlive it, whatever becomes of it.
//!
//! The kernel can kill a process when the thread that started it ends, but a process must ask for that
//! itself. So everything is started as this very program, which asks and then becomes the other one.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Exit code when a program cannot be started: there is no such program.
const NOT_FOUND: u8 = 127;

/// This program: the file, and the words before the lab's own.
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    words: Vec<OsString>,
}

impl Program {
    /// The running program, in which the lab is reached by `words` (`["lab"]` in `tenure`).
    #[must_use]
    pub fn this(words: &[&str]) -> Self {
        // The name that was typed is found in PATH by `Command`, should the system not know the file.
        let typed = || std::env::args_os().next().unwrap_or_default().into();
        Self::at(std::env::current_exe().unwrap_or_else(|_| typed()), words)
    }

    /// The program in `file`.
    #[must_use]
    pub fn at(file: PathBuf, words: &[&str]) -> Self {
        let words = words.iter().map(OsString::from).collect();
        Self { file, words }
    }

    /// What a person types to get here: `tenure lab`.
    pub(crate) fn spoken(&self) -> String {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str());
        let words = std::iter::once(name).chain(self.words.iter().map(OsString::as_os_str));
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        words.join(" ")
    }

    /// This program with the lab's arguments `arguments`. It must call [`die_with_parent`] itself.
    #[must_use]
    pub fn again<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.file);
        command.args(&self.words).args(arguments);
        // ^C is for us alone: what we started ends when we have done with it.
        command.process_group(0);
        command
    }

    /// Another program, which is killed when the *thread* that spawns it ends, or when we are killed.
    /// A program that cannot be started exits with 127.
    #[must_use]
    pub fn mortal(&self, program: impl AsRef<OsStr>) -> Command {
        let pid = std::process::id().to_string();
        let words = ["launch", "--parent", &pid, "--"].map(OsString::from);
        self.again(words.into_iter().chain([program.as_ref().to_owned()]))
    }
}

/// From now on this process is killed when the thread that started it ends. If the parent is not
/// `parent` any more, it has ended already, and so do we.
pub fn die_with_parent(parent: u32) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let is_ours = getppid().is_some_and(|pid| i64::from(pid.as_raw_pid()) == i64::from(parent));
    if !is_ours {
        std::process::exit(0);
    }
}

/// Becomes another program that dies with our parent; returns only if that fails.
pub(crate) fn launch(parent: u32, command: &[OsString]) -> u8 {
    die_with_parent(parent);
    if let Some((program, arguments)) = command.split_first() {
        let error = Command::new(program).args(arguments).exec();
        anstream::eprintln!("cannot start {}: {error}", program.display());
    }
    NOT_FOUND
}
