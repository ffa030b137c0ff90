//! An interactive shell on a real terminal, as a person at the keyboard sees it.

use crate::support::signals::as_from_a_shell;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use tempfile::TempDir;

use super::world::eventually;

/// ^C
pub(crate) const INTERRUPT: &str = "\x03";
/// ^D
pub(crate) const END: &str = "\x04";
/// ^Z
const SUSPEND: &str = "\x1a";

/// A shell with job control, a terminal, and a folder `$D` of its own. What is typed may be echoed,
/// so tests wait for what only a program can have printed: `echo two-$((1+1))` prints `two-2`.
pub(crate) struct Shell {
    shell: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    /// How much of the screen has been read.
    read: usize,
    pub(crate) folder: TempDir,
}

impl Shell {
    /// A shell in which `$T` is `tenure run` on a lock of this test's own.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = ioctl_tiocgptpeer(&master, flags).unwrap();
        let stdio = || Stdio::from(terminal.try_clone().unwrap());
        as_from_a_shell();
        let tenure = format!(
            "{} run lock --store sqlite:{}/locks.db",
            env!("CARGO_BIN_EXE_tenure"),
            folder.path().display()
        );
        let mut command = Command::new("/bin/sh");
        command
            .arg("-i")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder.path())
            .env("PS1", "@ ")
            .env("D", folder.path())
            .env("T", tenure)
            .current_dir(folder.path())
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio());
        take_terminal(&mut command);
        let shell = command.spawn().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let mut output = File::from(master.try_clone().unwrap());
        let copy = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Fails when the last process has closed the terminal.
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                copy.lock().unwrap().push_str(&text);
            }
        });
        Self {
            shell,
            keyboard: File::from(master),
            screen,
            read: 0,
            folder,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Waits until `text` appears after what was waited for before.
    pub(crate) fn expect(&mut self, text: &str) {
        let found = eventually(&format!("{text:?} on the screen"), || {
            let screen = self.screen.lock().unwrap();
            let found = screen[self.read..].find(text);
            found.map(|at| self.read + at + text.len())
        });
        self.read = found;
    }

    /// Waits until the shell has the terminal and answers.
    pub(crate) fn expect_shell(&mut self) {
        self.line("echo shell-$((20+22))");
        self.expect("shell-42");
    }

    /// Stops the job by the key and waits for the shell.
    pub(crate) fn suspend(&mut self) {
        self.press(SUSPEND);
        self.expect("while stopped");
        self.expect_shell();
    }

    /// Brings the job back into the foreground.
    pub(crate) fn bring_back(&mut self) {
        self.line("fg");
        // The shell says what it brings back. What is typed after that is for the job.
        self.expect("sed");
    }

    /// A pipe `$D/pipe` and its other end. Dropping that ends the input.
    pub(crate) fn pipe(&self) -> File {
        let path = self.folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        // For reading, too, so that this does not wait for a reader.
        File::options().read(true).write(true).open(&path).unwrap()
    }

    /// Waits for the end of the command that runs, and for its exit code.
    pub(crate) fn expect_code(&mut self, code: i32) {
        // A shell that a key has just interrupted may lose what is typed before it prompts.
        self.expect("@ ");
        self.line("echo code-$?-$((20+22))");
        self.expect(&format!("code-{code}-42"));
    }

    /// The process ids of the job, which it has written to `$D/job`, and of its parent.
    pub(super) fn job_and_tenure(&self) -> [Pid; 2] {
        let job = std::fs::read_to_string(self.folder.path().join("job")).unwrap();
        let job = job.trim();
        let stat = std::fs::read_to_string(format!("/proc/{job}/stat")).unwrap();
        let parent = stat.split_ascii_whitespace().nth(3).unwrap();
        [job, parent].map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap())
    }

    /// Ends the shell as a window that is closed does: it is told, and the kernel tells the rest.
    pub(super) fn hang_up(&self) {
        kill_process(Pid::from_child(&self.shell), Signal::HUP).unwrap();
    }

    /// Everything that was ever on the screen.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen was:\n{}", self.screen());
        }
        // Before the shell, whose number could be another's when it has been waited for.
        for left in in_session_of(Pid::from_child(&self.shell)) {
            let _ = kill_process(left, Signal::KILL);
        }
        let _ = self.shell.wait();
    }
}

#[allow(
    unsafe_code,
    reason = "a terminal can only be taken by the new session's own leader"
)]
fn take_terminal(command: &mut Command) {
    // SAFETY: two system calls on plain values between fork and exec; nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        });
    }
}

/// Everything that lives in the session of this process: jobs of a shell are in process groups of their own.
fn in_session_of(leader: Pid) -> Vec<Pid> {
    let leader = leader.as_raw_nonzero().to_string();
    let session = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // A name may have spaces and brackets. After it: state, parent, group, session.
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split(' ').nth(3).map(str::to_owned)
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|pid| session(pid).is_some_and(|it| it == leader))
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
