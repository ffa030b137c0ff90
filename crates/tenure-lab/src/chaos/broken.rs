//! [`Broken`]: what is broken now, and so what must not be broken just then.

use std::collections::HashSet;

use super::fault::Fault;
use super::inflict::Repair;
use super::world::World;

/// What is broken now: nothing is broken twice at the same time, and of several servers always a
/// majority works.
#[derive(Default)]
pub(crate) struct Broken {
    workers: HashSet<usize>,
    servers: HashSet<usize>,
    links: HashSet<usize>,
    sentinels: HashSet<usize>,
    /// The network fell into two parts.
    is_divided: bool,
}

impl Broken {
    /// Whether this may be broken as well.
    pub(crate) fn allows(&self, fault: &Fault, world: &World) -> bool {
        match fault {
            Fault::Kill { worker } | Fault::Pause { worker, .. } => !self.workers.contains(worker),
            Fault::Restart { .. } | Fault::Forget { .. } | Fault::Freeze { .. } => {
                let bearable = world.shape.bearable_losses();
                self.servers.len() < bearable && !(self.is_divided && world.shape.fails_over())
            }
            Fault::ScriptFlush { server }
            | Fault::ClientKill { server }
            | Fault::FlushAll { server }
            | Fault::ClockStep { server, .. } => !self.servers.contains(server),
            Fault::Cut { link }
            | Fault::Refuse { link, .. }
            | Fault::Delay { link, .. }
            | Fault::Partition { link, .. }
            | Fault::Swallow { link, .. }
            | Fault::Repeat { link, .. } => !self.links.contains(link),
            Fault::CutOff { .. } => !self.is_divided,
            Fault::Split { .. } => !self.is_divided && self.servers.is_empty(),
            Fault::FreezeSentinel { .. } => self.sentinels.is_empty(),
        }
    }

    pub(crate) fn add(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill { worker } | Fault::Pause { worker, .. } => self.workers.insert(*worker),
            Fault::Restart { server, .. }
            | Fault::Forget { server, .. }
            | Fault::Freeze { server, .. } => self.servers.insert(*server),
            Fault::Refuse { link, .. }
            | Fault::Delay { link, .. }
            | Fault::Partition { link, .. } => self.links.insert(*link),
            Fault::CutOff { .. } | Fault::Split { .. } => {
                self.is_divided = true;
                true
            }
            Fault::FreezeSentinel { sentinel, .. } => self.sentinels.insert(*sentinel),
            _ => false,
        };
    }

    pub(crate) fn remove(&mut self, repair: &Repair) {
        match repair {
            Repair::Replace { worker } | Repair::Resume { worker } => self.workers.remove(worker),
            Repair::Start { server, .. } | Repair::Thaw { server } => self.servers.remove(server),
            Repair::ThawSentinel { sentinel } => self.sentinels.remove(sentinel),
            Repair::Join => std::mem::take(&mut self.is_divided),
            Repair::Accept { link } | Repair::Pass { link, .. } => self.links.remove(link),
        };
    }
}
