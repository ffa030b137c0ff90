//! Signs of life: each client holds `flock` on a file of its own in the side folder, for as long as
//! its process lives, or any other process that it gave the descriptor to (the command line's guard,
//! which outlives it until the job is gone).
//!
//! A file that is missing says nothing: its process is taken to be alive. So a sign of life is
//! removed only when no hold refers to it any more.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use rustix::io::Errno;
use tenure_core::{Error, Inbox, Liveness};

use super::clients::Clients;
use super::doorbell::Ringer;
use super::errors;
use super::place::{ALIVE, BELL, Folder};
use super::shared::Shared;
use super::writer::Job;

/// Gives a sign of life for `inbox`: whoever keeps the descriptor open keeps it up.
pub(super) fn begin(folder: &Folder, inbox: &Inbox) -> Result<OwnedFd, Error> {
    let name = file_name(inbox);
    let wrong = |cause| errors::of_system(cause, "give a sign of life", &folder.path().join(&name));
    loop {
        let file = folder
            .open(&name, OFlags::CREATE | OFlags::RDWR)
            .map_err(wrong)?;
        retry(|| flock(&file, FlockOperation::LockExclusive)).map_err(wrong)?;
        // Somebody who tidies up may have removed the file before we had locked it.
        if fstat(&file).map_err(wrong)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// Whether the process behind `inbox` may be alive.
pub(super) fn may_live(folder: &Folder, inbox: &Inbox) -> bool {
    let Ok(file) = folder.open(&file_name(inbox), OFlags::RDONLY) else {
        return true;
    };
    retry(|| flock(&file, FlockOperation::NonBlockingLockShared)).is_err()
}

/// Whether any process of this kernel surely lives that uses the folder.
pub(super) fn anybody_lives(folder: &Folder) -> bool {
    let lives = |inbox: &Inbox| {
        let file = folder.open(&file_name(inbox), OFlags::RDONLY);
        file.is_ok_and(|file| {
            let locked = retry(|| flock(&file, FlockOperation::NonBlockingLockShared));
            locked == Err(Errno::WOULDBLOCK)
        })
    };
    folder.inboxes(ALIVE).iter().any(lives)
}

/// Removes what a dead process left in the folder. Harmless if it lives after all.
pub(super) fn tidy(folder: &Folder, inbox: &Inbox) {
    let name = file_name(inbox);
    let Ok(file) = folder.open(&name, OFlags::RDWR) else {
        return;
    };
    // Removed under the lock: `begin` looks afterwards whether its file is still there.
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        folder.remove(&name);
        folder.remove(&format!("{inbox}{BELL}"));
    }
}

fn file_name(inbox: &Inbox) -> String {
    format!("{inbox}{ALIVE}")
}

fn retry(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => (),
            result => return result,
        }
    }
}

/// What one transaction sees of the processes; asks about each only once.
pub(super) struct Sight<'a> {
    clients: &'a Clients,
    folder: &'a Folder,
    ringer: &'a Ringer,
    reachable: RefCell<HashMap<Inbox, bool>>,
    alive: RefCell<HashMap<Inbox, bool>>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(clients: &'a Clients, folder: &'a Folder, ringer: &'a Ringer) -> Self {
        Self {
            clients,
            folder,
            ringer,
            reachable: RefCell::default(),
            alive: RefCell::default(),
        }
    }

    /// Those who were found dead.
    pub(super) fn dead(self) -> Vec<Inbox> {
        let alive = self.alive.into_inner();
        alive
            .into_iter()
            .filter(|(_, alive)| !alive)
            .map(|(inbox, _)| inbox)
            .collect()
    }
}

impl Liveness for Sight<'_> {
    fn reachable(&self, inbox: &Inbox) -> bool {
        let look = || match self.clients.is_listening(inbox) {
            Some(listening) => listening,
            None => self.ringer.answers(self.folder, inbox),
        };
        *self
            .reachable
            .borrow_mut()
            .entry(inbox.clone())
            .or_insert_with(look)
    }

    fn alive(&self, anchor: &Inbox) -> bool {
        let look = || self.clients.is_listening(anchor).is_some() || may_live(self.folder, anchor);
        *self
            .alive
            .borrow_mut()
            .entry(anchor.clone())
            .or_insert_with(look)
    }
}

/// Threads that wait for the death of holders whom somebody here waits for.
///
/// One per process that is watched. A thread ends when that process does; it cannot be called off,
/// but it keeps nothing alive and does not hold up the end of this process.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    watched: Arc<Mutex<HashSet<Inbox>>>,
}

/// A semaphore may have thousands of holders; whoever is not watched is found dead by the next
/// request of any waiter.
const MOST_WATCHED: usize = 64;
/// The thread only waits.
const STACK: usize = 128 * 1024;

impl Watch {
    /// Tells the writer when `inbox` dies, unless somebody waits for that already.
    pub(super) fn start(&self, inbox: &Inbox, folder: &Arc<Folder>, shared: &Weak<Shared>) {
        let mut watched = self.watched();
        if watched.len() >= MOST_WATCHED || !watched.insert(inbox.clone()) {
            return;
        }
        drop(watched);
        let (watch, inbox, folder) = (self.clone(), inbox.clone(), folder.clone());
        let shared = shared.clone();
        let thread = std::thread::Builder::new()
            .name("tenure-watch".to_owned())
            .stack_size(STACK);
        let end = (self.clone(), inbox.clone());
        let started = thread.spawn(move || {
            let died = wait_for_death(&folder, &inbox);
            watch.watched().remove(&inbox);
            if let Some(shared) = shared.upgrade().filter(|_| died) {
                shared.send(Job::Dead(inbox));
            }
        });
        if started.is_err() {
            // Out of threads: the waiters' own requests find the holder dead, only later.
            end.0.watched().remove(&end.1);
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashSet<Inbox>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait_for_death(folder: &Folder, inbox: &Inbox) -> bool {
    let Ok(file) = folder.open(&file_name(inbox), OFlags::RDONLY) else {
        return false;
    };
    retry(|| flock(&file, FlockOperation::LockShared)).is_ok()
}
