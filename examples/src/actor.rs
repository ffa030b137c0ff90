//! [`Actor`]: one of the processes of an example, which can be killed, paused and resumed.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::Outcome;

/// A process of this same program. Killed if it still runs when this is dropped.
#[derive(Debug)]
pub struct Actor {
    /// Its standard input ends when this process does, however it does.
    child: Child,
    number: usize,
    killed: bool,
}

impl Actor {
    /// Starts this program again, with the same arguments and a number.
    pub(crate) fn start(number: usize, folder: &Path, store: &str, run: &str) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(own_arguments()).stdin(Stdio::piped());
        command.args(["--store", store, "--run", run, "--actor"]);
        command.arg(number.to_string()).arg("--folder").arg(folder);
        Ok(Self {
            child: command.spawn()?,
            number,
            killed: false,
        })
    }

    /// Ends it where it stands: no destructor, no release, no goodbye.
    pub fn kill(&mut self) {
        self.killed = true;
        self.signal(Signal::KILL);
    }

    /// Freezes it where it stands, as a long garbage collection or a suspended machine would.
    /// It stands still when this answers, or has ended.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let Some(id) = self.pid() else { return };
        // Left to be waited for again: whoever asks how it ended must still hear that.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(id), options).is_err_and(|error| error == Errno::INTR) {}
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

    /// Whether it has ended, by itself or because we killed it.
    pub(crate) fn has_ended(&mut self) -> Outcome<bool> {
        match self.child.try_wait()? {
            None => Ok(false),
            Some(status) if status.success() || self.killed => Ok(true),
            Some(status) => {
                let number = self.number;
                Err(format!("process {number} failed ({status}); what it said is above").into())
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.pid() {
            // It may have ended meanwhile; it is not reaped yet, so the id is still its own.
            let _ = kill_process(id, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What this process was told, but for the store: each is told its own.
fn own_arguments() -> Vec<OsString> {
    let mut own = std::env::args_os().skip(1);
    let mut kept = Vec::new();
    while let Some(argument) = own.next() {
        if argument == "--store" {
            own.next();
        } else if !argument.as_encoded_bytes().starts_with(b"--store=") {
            kept.push(argument);
        }
    }
    kept
}

/// Ends this process when its standard input does.
pub(crate) fn end_with_the_director() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}
