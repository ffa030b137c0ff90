//! [`Crew`]: the worker processes, which are killed, stopped and replaced.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::plan::Plan;
use super::world::World;
use crate::Program;
use crate::servers::wait;

/// All workers of a run.
pub(crate) struct Crew {
    program: Program,
    history: PathBuf,
    /// Where the protected resource listens.
    resource: PathBuf,
    seed: u64,
    tasks: u32,
    urls: Vec<String>,
    permits: bool,
    patience_ms: u64,
    members: Vec<Member>,
    /// The number of the next process.
    next: u32,
}

/// How long workers try to reach the store at first. A server without a record of its past is waited for.
const REACHED_WITHIN: Duration = Duration::from_secs(60);

struct Member {
    process: u32,
    child: Child,
}

impl Crew {
    /// Starts all workers and waits until each has reached the store.
    pub(crate) fn start(
        program: &Program,
        plan: &Plan,
        world: &World,
        history: &Path,
        resource: &Path,
    ) -> io::Result<Self> {
        let mut crew = Self {
            program: program.clone(),
            history: history.to_owned(),
            resource: resource.to_owned(),
            seed: plan.seed,
            tasks: plan.tasks,
            urls: (0..plan.workers)
                .map(|worker| world.url_for(worker))
                .collect(),
            permits: plan.shape.permits(),
            patience_ms: world.recovery_ms(),
            members: Vec::new(),
            next: 1,
        };
        for worker in 0..plan.workers {
            let member = crew.spawn(worker)?;
            crew.members.push(member);
        }
        let (ready, heard) = mpsc::channel();
        for member in &mut crew.members {
            if let Some(out) = member.child.stdout.take() {
                let ready = ready.clone();
                std::thread::spawn(move || {
                    let mut line = String::new();
                    let _ = BufReader::new(out).read_line(&mut line);
                    let _ = ready.send(line.trim() == "ready");
                });
            }
        }
        for _ in &crew.members {
            let is_ready = wait::until(REACHED_WITHIN, || heard.try_recv().ok());
            if is_ready != Some(true) {
                return Err(io::Error::other("a worker did not reach the store"));
            }
        }
        Ok(crew)
    }

    /// The number of the process that is at this place now.
    pub(crate) fn process(&self, worker: usize) -> u32 {
        self.members[worker].process
    }

    /// As the system knows it.
    pub(crate) fn pid(&self, worker: usize) -> u32 {
        self.members[worker].child.id()
    }

    pub(crate) fn kill(&mut self, worker: usize) {
        let child = &mut self.members[worker].child;
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Puts a new process where one was killed.
    pub(crate) fn replace(&mut self, worker: usize) -> io::Result<()> {
        self.members[worker] = self.spawn(worker)?;
        Ok(())
    }

    pub(crate) fn signal(&self, worker: usize, signal: Signal) {
        // It may have been killed meanwhile.
        let pid = Pid::from_child(&self.members[worker].child);
        let _ = kill_process(pid, signal);
    }

    /// Tells everybody to come to an end: each task takes each lock once more.
    pub(crate) fn drain(&mut self) {
        for member in &mut self.members {
            if let Some(mut input) = member.child.stdin.take() {
                let _ = input.write_all(b"drain\n");
            }
        }
    }

    /// Waits until all have ended by themselves; otherwise they are killed, and the history shows what
    /// they were waiting for.
    pub(crate) fn wait(&mut self, limit: Duration) -> bool {
        let ended = wait::until(limit, || {
            let mut members = self.members.iter_mut();
            let ended = members.all(|it| matches!(it.child.try_wait(), Ok(Some(_))));
            ended.then_some(())
        });
        ended.is_some()
    }

    fn spawn(&mut self, worker: usize) -> io::Result<Member> {
        let process = self.next;
        self.next += 1;
        let number = |number: u64| number.to_string();
        let mut command = self.program.again([
            "chaos-worker",
            "--parent",
            &number(u64::from(std::process::id())),
            "--process",
            &number(u64::from(process)),
            "--url",
            &self.urls[worker],
            "--seed",
            &number(self.seed.wrapping_add(u64::from(process) << 32)),
            "--tasks",
            &number(u64::from(self.tasks)),
            "--patience-ms",
            &number(self.patience_ms),
        ]);
        command.arg("--history").arg(&self.history);
        command.arg("--resource").arg(&self.resource);
        if self.permits {
            command.arg("--permits");
        }
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Member { process, child })
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}
