//! The stage: what the story of an anomaly is told with. Workers are processes, servers are servers,
//! faults are real; the story says who does what, in which order, and waits for conditions.

mod ask;
mod log;
mod resource;
mod servers;
mod truth;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use ask::Got;
use log::Log;
pub(crate) use worker::Worker;

use crate::program::Program;
use crate::servers::wait::{PATIENCE, pass, until};
use crate::servers::{Proxy, RedisServer, SetClock};
use crate::timeline::{Event, What};
use crate::worker::How;

pub(crate) use crate::worker::Ask;

/// How long a lease lasts in the lab, unless a story says otherwise.
pub(crate) const TTL: Duration = Duration::from_millis(800);

/// Why a play could not be played to its end.
#[derive(Debug)]
pub(crate) enum Upset {
    /// The fault did not take effect, so that nothing can be said.
    Inconclusive(String),
    /// What our lock had to do, it did not.
    Failed(String),
    /// The lab itself: a server or a worker did not do what it must.
    Broken(String),
}

impl From<std::io::Error> for Upset {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// What comes of a step of a play.
pub(crate) type Played<T> = Result<T, Upset>;

/// Where one play is played: one algorithm, its servers and workers.
pub(crate) struct Stage {
    program: Program,
    anomaly: &'static str,
    /// With which lock.
    pub(crate) how: How,
    log: Log,
    resource: u16,
    names: Arc<Mutex<Vec<String>>>,
    truth: truth::Truth,
    /// The servers that the workers use.
    pub(crate) servers: Vec<RedisServer>,
    /// An address that stays the same when another server takes over, if there is one.
    front: Option<Proxy>,
    /// The first server's wall clock, if it can be set.
    clock: Option<SetClock>,
    /// The longest lease that anybody asks for.
    pub(crate) longest: Duration,
}

impl Stage {
    pub(crate) fn new(program: &Program, anomaly: &'static str, how: How) -> Played<Self> {
        let log = Log::default();
        let names = Arc::<Mutex<Vec<String>>>::default();
        Ok(Self {
            program: program.clone(),
            anomaly,
            how,
            resource: resource::start(log.clone())?,
            truth: truth::Truth::start(log.clone(), names.clone()),
            names,
            log,
            servers: Vec::new(),
            front: None,
            clock: None,
            longest: Duration::from_secs(1),
        })
    }

    /// A worker. It is called by its name in the story, so that a reader can follow.
    pub(crate) fn worker(&self, name: &str) -> Played<Worker> {
        let front = self.front.as_ref().map(Proxy::port);
        let ports = front.map_or_else(|| self.ports(), |port| vec![port]);
        self.start_worker(name, &ports, Vec::new())
    }

    /// A worker with a network of its own.
    pub(crate) fn worker_far_away(&self, name: &str) -> Played<Worker> {
        let ports = self.ports();
        let links: Vec<_> = ports.into_iter().map(Proxy::to).collect::<Result<_, _>>()?;
        let ports: Vec<_> = links.iter().map(Proxy::port).collect();
        self.start_worker(name, &ports, links)
    }

    /// A fault, done now.
    pub(crate) fn fault(&self, text: impl Into<String>) {
        let text = text.into();
        self.log.note("fault", What::Fault { text });
    }

    /// Something worth saying.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let text = text.into();
        self.log.note("note", What::Note { text });
    }

    /// Waits until the store does not name this worker as a holder any more; `false` if it still does
    /// after `limit`. Of the naive lock that is expected, however slow the machine is.
    pub(crate) fn until_not_held_by(&self, worker: &Worker, limit: Duration) -> bool {
        let limit = if self.is_ours() { limit } else { PATIENCE };
        let is_gone = || (!self.holders().iter().any(|name| name == worker.name())).then_some(());
        until(limit, is_gone).is_some()
    }

    /// Waits until the store names this worker as a holder.
    pub(crate) fn until_held_by(&self, worker: &Worker) -> Played<()> {
        let holds = || {
            self.holders()
                .iter()
                .any(|name| name == worker.name())
                .then_some(())
        };
        let name = worker.name();
        until(PATIENCE, holds).ok_or_else(|| Upset::Inconclusive(format!("{name} never held it")))
    }

    /// Lets real time pass, because work takes time.
    pub(crate) fn work_for(&self, duration: Duration) {
        pass(duration);
    }

    /// Who of these gets an answer first, and which.
    pub(crate) fn first_of<'a>(&self, workers: &[&'a Worker]) -> Played<(&'a Worker, Got)> {
        let answered = || {
            workers
                .iter()
                .find_map(|worker| Some((*worker, worker.got_already()?)))
        };
        until(PATIENCE, answered).ok_or_else(|| Upset::Broken("nobody gets an answer".to_owned()))
    }

    /// Who holds it according to the store.
    pub(crate) fn holders(&self) -> Vec<String> {
        self.truth.holders()
    }

    /// The fault must have had its effect, or nothing can be said.
    pub(crate) fn require(&self, is_so: bool, what: &str) -> Played<()> {
        let otherwise = || Upset::Inconclusive(what.to_owned());
        is_so.then_some(()).ok_or_else(otherwise)
    }

    /// Our lock must do this; nobody asks it of the naive one.
    pub(crate) fn demand(&self, is_so: bool, what: &str) -> Played<()> {
        let is_fine = is_so || self.how == How::Naive;
        is_fine
            .then_some(())
            .ok_or_else(|| Upset::Failed(what.to_owned()))
    }

    /// Whether something was said about anybody.
    pub(crate) fn saw(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.log.in_order().iter().any(wanted)
    }

    /// Whether the resource refused a write.
    pub(crate) fn saw_refused_write(&self) -> bool {
        self.saw(|event| {
            matches!(
                event.what,
                What::Wrote {
                    accepted: false,
                    ..
                }
            )
        })
    }

    /// Whether this is played with our lock.
    pub(crate) fn is_ours(&self) -> bool {
        self.how == How::Ours
    }

    /// Lets the end of the story be seen.
    pub(crate) fn end(&self) {
        pass(worker::BEAT);
        self.log.note("end", What::End);
    }

    /// Everything that happened, in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.log.in_order()
    }

    /// A worker that uses these servers, the same one several times perhaps.
    pub(crate) fn start_worker(
        &self,
        name: &str,
        ports: &[u16],
        links: Vec<Proxy>,
    ) -> Played<Worker> {
        self.names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(name.to_owned());
        let command = self.worker_command(name, ports, &self.url(ports));
        Worker::start(name, command, links, &self.log)
    }

    fn worker_command(&self, name: &str, ports: &[u16], url: &str) -> std::process::Command {
        let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
        let (ports, resource) = (ports.join(","), self.resource.to_string());
        let (how, parent) = (
            if self.how == How::Ours {
                "ours"
            } else {
                "naive"
            },
            std::process::id(),
        );
        let mut command =
            self.program
                .again(["worker", "--parent", &parent.to_string(), "--name", name]);
        command.args(["--anomaly", self.anomaly, "--how", how, "--url", url]);
        command.args(["--ports", &ports, "--resource", &resource]);
        command
    }
}
