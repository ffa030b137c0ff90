//! A driver process with its job, seen from a test: started, told, watched, and gone afterwards.

use crate::support::signals::as_from_a_shell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::driver::{SCRIPT, Script};

/// Longer than anything takes on the slowest machine, shorter than anybody's patience.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// A lease that no test outlives.
const LONG: u64 = 3_600_000;

/// A run to be: defaults, and what a test wants different.
pub(super) struct Setup {
    pub(super) folder: TempDir,
    pub(super) script: Script,
    pub(super) ignore_hangup: bool,
}

impl Setup {
    /// Runs `line` with `sh -c`, in which `$D` is a folder of this test's own.
    pub(super) fn new(line: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Script {
            control: folder.path().join("control"),
            line: line.to_owned(),
            lease_millis: LONG,
            grace_millis: 10_000,
            on_lost: "kill".to_owned(),
            hold_at_most_millis: None,
            orphans: "kill".to_owned(),
            foreground: false,
            lock_file: None,
            guard_program: TENURE.into(),
        };
        Self {
            folder,
            script,
            ignore_hangup: false,
        }
    }

    pub(super) fn lease(mut self, lease_millis: u64, grace_millis: u64) -> Self {
        self.script.lease_millis = lease_millis;
        self.script.grace_millis = grace_millis;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Script)) -> Self {
        change(&mut self.script);
        self
    }

    pub(super) fn start(self) -> Run {
        as_from_a_shell();
        let listener = UnixListener::bind(&self.script.control).unwrap();
        let driver = std::env::current_exe().unwrap();
        let mut command = if self.ignore_hangup {
            let mut shell = Command::new("/bin/sh");
            shell
                .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
                .arg(driver);
            shell
        } else {
            Command::new(driver)
        };
        let child = command
            .args(["--exact", "job::driver::driver", "--nocapture"])
            .env(SCRIPT, serde_json::to_string(&self.script).unwrap())
            .env("D", self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (control, _) = listener.accept().unwrap();
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        Run {
            child,
            events: BufReader::new(control.try_clone().unwrap()),
            control,
            seen: Vec::new(),
            folder: self.folder,
        }
    }
}

/// A running driver. Dropped, it and its job are killed.
pub(super) struct Run {
    child: Child,
    control: UnixStream,
    events: BufReader<UnixStream>,
    /// Events read so far.
    pub(super) seen: Vec<String>,
    folder: TempDir,
}

impl Run {
    pub(super) fn tenure(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the job has written a process id to a file of this name.
    pub(super) fn pid_in(&self, name: &str) -> Pid {
        let path = self.path(name);
        eventually(name, || {
            let text = std::fs::read_to_string(&path).ok()?;
            // Complete only with its line end.
            Pid::from_raw(text.strip_suffix('\n')?.trim().parse().ok()?)
        })
    }

    pub(super) fn wait_for_file(&self, name: &str) {
        let path = self.path(name);
        eventually(name, || path.exists().then_some(()));
    }

    pub(super) fn send(&self, signal: Signal) {
        kill_process(self.tenure(), signal).unwrap();
    }

    pub(super) fn tell(&mut self, command: &str) {
        writeln!(self.control, "{command}").unwrap();
    }

    /// Waits for an event that contains `text`.
    pub(super) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.events.read_line(&mut line).unwrap();
            assert!(length > 0, "ended without {text:?}: {:?}", self.seen);
            self.seen.push(line.trim_end().to_owned());
            if line.contains(text) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Waits for the end; what the job came to and the exit code.
    pub(super) fn end(&mut self) -> (String, i32) {
        let line = self.wait_for("end ");
        let status = self.child.wait().unwrap();
        (
            line.trim_start_matches("end ").to_owned(),
            status.code().unwrap_or(-1),
        )
    }

    /// Waits for tenure to be gone, however it goes.
    pub(super) fn wait_dead(&mut self) {
        self.child.wait().unwrap();
    }

    /// The process id of the guard.
    pub(super) fn guard(&self) -> Pid {
        let tenure = self.tenure();
        eventually("a guard", || guard_of(tenure))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The guard sees to the job.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Unless a test broke just that.
        for name in ["pid", "child", "grandchild"] {
            if let Ok(text) = std::fs::read_to_string(self.path(name))
                && let Some(pid) = text.trim().parse().ok().and_then(Pid::from_raw)
                && belongs_here(pid, self.folder.path())
            {
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Whether a process has our folder in its environment: numbers are given again to others.
fn belongs_here(pid: Pid, folder: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", raw(pid))).unwrap_or_default();
    let wanted = format!("D={}", folder.display());
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry == wanted.as_bytes())
}

/// The guard process among the children of `tenure`, once it has taken its name.
pub(super) fn guard_of(tenure: Pid) -> Option<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", raw(tenure))).ok()?;
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let all: String = lists.collect();
    all.split_ascii_whitespace()
        .find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim_end() == "tenure-guard")
        })
        .and_then(|pid| Pid::from_raw(pid.parse().ok()?))
}

/// Whether a process lives: it is there and no zombie.
pub(super) fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", raw(pid))).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    !matches!(state, None | Some(b'Z' | b'X'))
}

pub(super) fn gone(pid: Pid) {
    eventually("the end of a process", || (!lives(pid)).then_some(()));
}

pub(super) fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Polls until `condition` gives something, for as long as patience lasts.
#[allow(
    clippy::disallowed_methods,
    reason = "a bounded wait for a condition outside of this process needs real time"
)]
pub(super) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = std::time::Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
