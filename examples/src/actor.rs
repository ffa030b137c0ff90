//! [`Actor`]: one of the processes of an example, which can be killed, paused and resumed.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;

/// A process of this same program. Killed if it still runs when this is dropped.
#[derive(Debug)]
pub struct Actor {
    /// Its standard input ends when this process does, however it does.
    child: Child,
    killed: bool,
}

impl Actor {
    /// Starts this program again, with the same arguments and a number.
    pub(crate) fn start(number: usize, folder: &Path, store: &str) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let own = std::env::args_os().skip(1);
        command.args(own).stdin(Stdio::piped());
        if !std::env::args().any(|argument| argument.starts_with("--store")) {
            command.args(["--store", store]);
        }
        command.arg("--actor").arg(number.to_string());
        let child = command.arg("--folder").arg(folder).spawn()?;
        Ok(Self {
            child,
            killed: false,
        })
    }

    /// Ends it where it stands: no destructor, no release, no goodbye.
    pub fn kill(&mut self) {
        self.killed = true;
        self.signal(Signal::KILL);
    }

    /// Freezes it where it stands, as a long garbage collection or a suspended machine would.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on, as if no time had passed.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it has ended by itself or was killed by us.
    pub(crate) fn wait(&mut self, limit: Duration) -> Outcome {
        let step = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        while waited < limit {
            match self.child.try_wait()? {
                Some(status) if status.success() || self.killed => return Ok(()),
                Some(status) => return Err(failed(status).into()),
                None => crate::pass_time(step),
            }
            waited += step;
        }
        Err(format!("a process has not ended after {limit:?}").into())
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok();
        if let Some(id) = id.and_then(Pid::from_raw) {
            // It may have ended meanwhile; it is not reaped yet, so the id is still its own.
            let _ = kill_process(id, signal);
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(status: ExitStatus) -> String {
    format!("a process failed: {status}")
}

/// Ends this process when its standard input does.
pub(crate) fn end_with_the_director() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}
