//! The real binary in a world of its own: temporary home and folders, nothing of the real user's.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::signals::as_from_a_shell;
use crate::support::wait::eventually;

/// Temporary folders for one test.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["home", "config", "state", "work"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, creating folders as needed.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Writes a shell script that can be executed.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
        path
    }

    /// `tenure` with these arguments, in this world.
    pub(crate) fn tenure<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        as_from_a_shell();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("USER", "tester")
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Done {
        Done::of(&mut self.tenure(arguments))
    }

    /// Starts it.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Running {
        Running(Some(self.tenure(arguments).spawn().expect("tenure starts")))
    }

    /// Starts `tenure run NAME` with a command that holds the lock until the world ends or
    /// [`Running::signal`]; returns once it holds.
    pub(crate) fn hold(&self, name: &str, options: &[&str]) -> Running {
        let marker = self.path(&format!("held-{}", name.replace('/', "-")));
        let _ = fs::remove_file(&marker);
        let script = format!("touch '{}'; exec sleep 300", marker.display());
        let mut arguments = vec!["run", name];
        arguments.extend(options);
        arguments.extend(["-c", &script]);
        let running = self.start(&arguments);
        eventually("the lock is held", || marker.exists().then_some(()));
        running
    }

    /// Waits until this many wait for a name.
    pub(crate) fn until_waiting(&self, name: &str, waiters: usize) {
        self.until_waiting_in(&[], name, waiters);
    }

    /// The same with further options, a store for example.
    pub(crate) fn until_waiting_in(&self, options: &[&str], name: &str, waiters: usize) {
        let arguments = [&["show", name, "--json"], options].concat();
        eventually("somebody waits", || {
            let shown = self.json(&arguments);
            (shown["waiters"].as_array().map(Vec::len) == Some(waiters)).then_some(())
        });
    }

    /// Runs a command that prints JSON and succeeds.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.stderr);
        serde_json::from_str(&done.stdout).expect("valid JSON")
    }
}

/// How a process ended and what it said.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("it runs");
        Self {
            code: output.status.code(),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing what was said if it is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Asserts that stderr contains this.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in: {}",
            self.stderr
        );
        self
    }

    /// Asserts that nothing was said on stderr.
    #[track_caller]
    pub(crate) fn silently(self) -> Self {
        assert_eq!(self.stderr, "");
        self
    }
}

/// A process that is killed when the test ends, however it ends.
pub(crate) struct Running(pub(crate) Option<Child>);

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.0.as_ref().expect("runs"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a child of ours");
    }

    /// Waits for its end (with a bound) and takes what it said.
    pub(crate) fn finish(mut self) -> Done {
        let mut child = self.0.take().expect("runs");
        let status = eventually("the process ends", || child.try_wait().expect("ours"));
        let mut done = Done {
            code: status.code(),
            status,
            stdout: String::new(),
            stderr: String::new(),
        };
        if let Some(mut pipe) = child.stdout.take() {
            let _ = pipe.read_to_string(&mut done.stdout);
        }
        if let Some(mut pipe) = child.stderr.take() {
            let _ = pipe.read_to_string(&mut done.stderr);
        }
        done
    }

    /// Ends it with TERM and waits.
    pub(crate) fn end(self) -> Done {
        self.signal(Signal::TERM);
        self.finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The text of a file, or nothing if there is none.
pub(crate) fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Who runs these tests, as the system knows it.
pub(crate) fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
