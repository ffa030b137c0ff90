//! [`Worker`]: one process on the stage, and what can be told it or done to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::ask::Got;
use super::log::Log;
use super::{Played, Upset};
use crate::servers::Proxy;
use crate::servers::wait::pass;
use crate::timeline::{Event, What};
use crate::worker::{Ask, BEFORE_WRITE, Order};

/// A process. Dropping it kills it.
pub(crate) struct Worker {
    name: String,
    log: Log,
    child: Mutex<(Child, ChildStdin)>,
    /// The network between it and the servers, if it has one of its own.
    pub(crate) links: Vec<Proxy>,
    /// What it says after this is an answer to the last order.
    since: Mutex<usize>,
}

/// How long work takes, so that one can see it.
pub(super) const BEAT: Duration = Duration::from_millis(120);

impl Worker {
    pub(super) fn start(
        name: &str,
        mut command: Command,
        links: Vec<Proxy>,
        log: &Log,
    ) -> Played<Self> {
        let since = Mutex::new(log.len());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Upset::Broken("a worker without pipes".to_owned()));
        };
        let heard = log.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(event) = serde_json::from_str::<Event>(&line) {
                    heard.add(event);
                }
            }
        });
        let (name, child) = (name.to_owned(), Mutex::new((child, stdin)));
        let worker = Self {
            name,
            log: log.clone(),
            child,
            links,
            since,
        };
        worker.hears("starts", |what| (*what == What::Ready).then_some(()))?;
        Ok(worker)
    }

    /// Asks for the lock and tells what came of it. Who gets something works for a moment.
    pub(crate) fn acquire(&self, ask: Ask) -> Played<Got> {
        self.begin_acquire(ask)?;
        let got = self.got()?;
        if got != Got::Nothing {
            pass(BEAT);
        }
        Ok(got)
    }

    /// Asks for the lock, and does not wait for what comes of it.
    pub(crate) fn begin_acquire(&self, ask: Ask) -> Played<()> {
        self.tell(&Order::Acquire(ask))
    }

    /// Asks for the lock and must get it, or nothing can be said.
    pub(crate) fn takes(&self, ask: Ask) -> Played<()> {
        match self.acquire(ask)? {
            Got::It => Ok(()),
            Got::Unwilling => Err(Upset::Broken(format!("{} refuses to work", self.name))),
            _ => Err(Upset::Inconclusive(format!(
                "{} did not get the lock",
                self.name
            ))),
        }
    }

    /// What came of asking.
    pub(crate) fn got(&self) -> Played<Got> {
        self.hears("gets the lock or not", Got::from)
    }

    /// What came of asking, if that is known.
    pub(crate) fn got_already(&self) -> Option<Got> {
        self.log.find(&self.name, self.since(), Got::from)
    }

    /// Goes on from the point where it stands, and tells what came of asking.
    pub(crate) fn go_on(&self) -> Played<Got> {
        pass(BEAT);
        self.tell(&Order::Go)?;
        self.got()
    }

    /// Goes on from the point where it stands, and does not wait for what comes of it.
    pub(crate) fn leave_point(&self) -> Played<()> {
        self.tell(&Order::Go)
    }

    /// Takes the lock that it has once more.
    pub(crate) fn reenter(&self) -> Played<()> {
        self.tell(&Order::Reenter)?;
        self.is_done()
    }

    /// Turns from a writer into a reader.
    pub(crate) fn downgrade(&self) -> Played<()> {
        self.tell(&Order::Downgrade)?;
        self.is_done()
    }

    /// Gives the lock back.
    pub(crate) fn release(&self) -> Played<()> {
        self.begin_release()?;
        self.is_done()
    }

    /// Gives the lock back; stands still at the point where it was told to, if there is such a point.
    pub(crate) fn release_up_to_point(&self) -> Played<Got> {
        self.begin_release()?;
        self.hears("gives the lock back", |what| match what {
            What::Done { .. } => Some(Got::It),
            What::At { .. } => Some(Got::Stopped),
            _ => None,
        })
    }

    /// Goes on from the point where it stands with giving the lock back.
    pub(crate) fn finish_release(&self) -> Played<()> {
        pass(BEAT);
        self.tell(&Order::Go)?;
        self.is_done()
    }

    /// Gives the lock back, and does not wait until that has arrived.
    pub(crate) fn begin_release(&self) -> Played<()> {
        self.tell(&Order::Release)
    }

    /// Works for a moment and writes to the resource, unless it knows that it does not hold the lock.
    pub(crate) fn write(&self) -> Played<()> {
        pass(BEAT);
        self.tell(&Order::Write { stop: false })?;
        self.is_done()
    }

    /// Looks whether it holds the lock, and stands still just before the write.
    pub(crate) fn begin_write(&self) -> Played<()> {
        self.tell(&Order::Write { stop: true })?;
        self.hears("is about to write", |what| match what {
            What::At { point } if point == BEFORE_WRITE => Some(()),
            What::Declined { .. } => Some(()),
            _ => None,
        })?;
        pass(BEAT);
        Ok(())
    }

    /// Does the write before which it stands.
    pub(crate) fn finish_write(&self) -> Played<()> {
        pass(BEAT);
        self.tell(&Order::Go)?;
        self.is_done()
    }

    /// Makes an owner id at a given moment, and tells which.
    pub(crate) fn begin_draw(&self, at: u64) -> Played<()> {
        self.tell(&Order::Draw { at })
    }

    /// The owner id that it made.
    pub(crate) fn drawn(&self) -> Played<String> {
        self.hears("makes an id", |what| match what {
            What::Done { word } => Some(word.clone()),
            _ => None,
        })
    }

    /// SIGSTOP: a long garbage collection, a laptop that sleeps.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        self.log.note(&self.name, What::Paused);
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) {
        self.log.note(&self.name, What::Resumed);
        self.signal(Signal::CONT);
    }

    /// SIGKILL.
    pub(crate) fn kill(&self) {
        let (child, _) = &mut *self.child();
        let _ = child.kill();
        let _ = child.wait();
        self.log.note(&self.name, What::Killed);
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn is_done(&self) -> Played<()> {
        self.hears("does it", |what| {
            matches!(what, What::Done { .. }).then_some(())
        })
    }

    fn hears<T>(&self, what: &str, wanted: impl FnMut(&What) -> Option<T>) -> Played<T> {
        let heard = self.log.wait(&self.name, self.since(), wanted);
        heard.ok_or_else(|| Upset::Broken(format!("{} never {what}", self.name)))
    }

    fn since(&self) -> usize {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, order: &Order) -> Played<()> {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = self.log.len();
        let mut line =
            serde_json::to_vec(order).map_err(|error| Upset::Broken(error.to_string()))?;
        line.push(b'\n');
        let (_, stdin) = &mut *self.child();
        Ok(stdin.write_all(&line)?)
    }

    fn signal(&self, signal: Signal) {
        let (child, _) = &*self.child();
        let _ = kill_process(Pid::from_child(child), signal);
    }

    fn child(&self) -> std::sync::MutexGuard<'_, (Child, ChildStdin)> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let (child, _) = &mut *self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}
