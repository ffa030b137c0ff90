//! [`Clients`]: the clients of this process that use one file, by inbox: where to deliver to, and
//! what they wait for and hold.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tenure_core::{
    Action, Error, Inbox, Listener, LockName, Outcome, OwnerId, Push, PushedGrant, Request, Waiting,
};

use super::doorbell::{self, decode};
use super::place::{BELL, Folder};
use super::{errors, liveness};

/// One acquire call on one name.
pub(super) type Asking = (LockName, OwnerId);

/// The clients of this process that use one file.
#[derive(Default)]
pub(super) struct Clients {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    registered: HashMap<Inbox, Registered>,
    /// Who waits, and where its grant is delivered to.
    waiting: HashMap<Asking, Inbox>,
    /// Who holds something that is tied to an inbox of this process.
    holding: HashMap<Asking, Inbox>,
}

struct Registered {
    listener: Weak<dyn Listener>,
    bell: Arc<UnixDatagram>,
    answered: bool,
    alive: OwnedFd,
    folder: Arc<Folder>,
}

impl Clients {
    /// From now on `inbox` can be reached and gives a sign of life.
    pub(super) fn register(
        &self,
        folder: &Arc<Folder>,
        inbox: &Inbox,
        listener: Weak<dyn Listener>,
    ) -> Result<(), Error> {
        let mut inner = self.inner();
        if let Some(known) = inner.registered.get_mut(inbox) {
            known.listener = listener;
            return Ok(());
        }
        let alive = liveness::begin(folder, inbox)?;
        let path = folder.bell(inbox);
        let bell = UnixDatagram::bind(&path).map_err(|cause| {
            let cause = rustix::io::Errno::from_io_error(&cause).unwrap_or(rustix::io::Errno::IO);
            errors::of_system(cause, "hang up the doorbell", &path)
        })?;
        let registered = Registered {
            listener,
            bell: Arc::new(bell),
            answered: false,
            alive,
            folder: folder.clone(),
        };
        inner.registered.insert(inbox.clone(), registered);
        Ok(())
    }

    /// `inbox` can no longer be reached, and dies unless somebody else keeps its descriptor open.
    /// Answers whether nothing of it is left to be ended by the writer.
    pub(super) fn retire(&self, inbox: &Inbox) -> bool {
        let mut inner = self.inner();
        let Some(registered) = inner.registered.remove(inbox) else {
            return true;
        };
        let engaged = inner
            .waiting
            .values()
            .chain(inner.holding.values())
            .any(|of| of == inbox);
        inner.waiting.retain(|_, of| of != inbox);
        inner.holding.retain(|_, of| of != inbox);
        drop(inner);
        // Ends the thread that answers the bell.
        let _ = registered.bell.shutdown(Shutdown::Both);
        registered.folder.remove(&format!("{inbox}{BELL}"));
        let folder = registered.folder.clone();
        drop(registered);
        if !engaged {
            liveness::tidy(&folder, inbox);
        }
        !engaged
    }

    /// Those whose client is gone although they were never retired.
    pub(super) fn abandoned(&self) -> Vec<Inbox> {
        let inner = self.inner();
        let gone = |registered: &Registered| registered.listener.strong_count() == 0;
        let abandoned = inner
            .registered
            .iter()
            .filter(|(_, registered)| gone(registered));
        abandoned.map(|(inbox, _)| inbox.clone()).collect()
    }

    /// Whether `inbox` has a listener; `None` if it is not of this process.
    pub(super) fn is_listening(&self, inbox: &Inbox) -> Option<bool> {
        let inner = self.inner();
        let registered = inner.registered.get(inbox)?;
        Some(registered.listener.strong_count() > 0)
    }

    /// A second descriptor of the sign of life of `inbox`.
    pub(super) fn sign_of_life(&self, inbox: &Inbox) -> Option<OwnedFd> {
        self.inner().registered.get(inbox)?.alive.try_clone().ok()
    }

    /// Delivers a grant to a client of this process; `false` if it is not one.
    pub(super) fn deliver(&self, inbox: &Inbox, grant: PushedGrant) -> bool {
        let listener = {
            let mut inner = self.inner();
            let Some(registered) = inner.registered.get(inbox) else {
                return false;
            };
            let listener = registered.listener.clone();
            let asking = (grant.name.clone(), grant.owner);
            if inner.waiting.remove(&asking).is_some() {
                inner.holding.insert(asking, inbox.clone());
            }
            listener
        };
        if let Some(listener) = listener.upgrade() {
            listener.pushed(Push::Granted(grant));
        }
        true
    }

    /// Tells the client of `asking` to ask again.
    pub(super) fn missed(&self, asking: &Asking) {
        let listener = {
            let mut inner = self.inner();
            let inbox = inner.waiting.remove(asking);
            inbox.and_then(|inbox| Some(inner.registered.get(&inbox)?.listener.clone()))
        };
        if let Some(listener) = listener.and_then(|listener| listener.upgrade()) {
            listener.pushed(Push::Missed);
        }
    }

    /// Everybody who waits.
    pub(super) fn waiting(&self) -> Vec<(Asking, Inbox)> {
        let inner = self.inner();
        inner
            .waiting
            .iter()
            .map(|(asking, inbox)| (asking.clone(), inbox.clone()))
            .collect()
    }

    /// Whether anybody waits.
    pub(super) fn anybody_waits(&self) -> bool {
        !self.inner().waiting.is_empty()
    }

    /// Keeps account of who waits and holds. Called before the commit: once others can see a waiter
    /// they may ring for it.
    pub(super) fn note(&self, request: &Request, outcome: &Outcome) {
        let (owner, inbox, anchor) = match &request.action {
            Action::Acquire(acquire) => {
                let inbox = match &acquire.waiting {
                    Waiting::Queue { inbox, .. } => Some(inbox),
                    Waiting::No => None,
                };
                (acquire.owner, inbox, acquire.anchor.as_ref())
            }
            Action::Renew(renew) => (renew.owner, None, None),
            Action::Release(release) => (release.owner, None, None),
            Action::Cancel(cancel) => (cancel.owner, None, None),
            Action::ForceRelease(release) => (release.owner, None, None),
            Action::Convert(_) | Action::Vote(_) | Action::Inspect => return,
        };
        let asking = (request.name.clone(), owner);
        let mut inner = self.inner();
        match (outcome, inbox, anchor) {
            (Outcome::Queued { .. }, Some(inbox), _) => {
                inner.waiting.insert(asking, inbox.clone());
            }
            (Outcome::Granted(_), _, Some(anchor)) => {
                inner.waiting.remove(&asking);
                inner.holding.insert(asking, anchor.clone());
            }
            (Outcome::Renewed { .. }, ..) => (),
            _ => {
                inner.waiting.remove(&asking);
                inner.holding.remove(&asking);
            }
        }
    }

    /// Starts to answer the bell of `inbox`, unless somebody does already. Until then, what is sent
    /// to it waits in its socket, so that a client which never has to wait needs no thread.
    pub(super) fn answer(self: &Arc<Self>, inbox: &Inbox) {
        let mut inner = self.inner();
        let Some(registered) = inner.registered.get_mut(inbox) else {
            return;
        };
        if registered.answered {
            return;
        }
        let (clients, bell, inbox) = (self.clone(), registered.bell.clone(), inbox.clone());
        let thread = std::thread::Builder::new().name("tenure-doorbell".to_owned());
        // Out of threads: the poll finds the grants, only later.
        registered.answered = thread.spawn(move || clients.listen(&bell, &inbox)).is_ok();
    }

    /// Delivers until the inbox is retired.
    fn listen(&self, bell: &UnixDatagram, inbox: &Inbox) {
        let mut buffer = [0; doorbell::LONGEST];
        loop {
            match bell.recv(&mut buffer) {
                Ok(length) => {
                    let known = match decode(&buffer[..length]) {
                        Some(grant) => self.deliver(inbox, grant),
                        None => self.is_listening(inbox).is_some(),
                    };
                    if !known {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
                Err(_) => return,
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Listeners are called without the lock; a panic elsewhere leaves the maps usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.inner().registered.keys())
            .finish()
    }
}
