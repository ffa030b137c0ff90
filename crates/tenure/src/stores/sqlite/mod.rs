#![doc = include_str!("docs.md")]

mod boot;
mod clients;
mod diagnose;
mod doorbell;
mod errors;
mod filesystem;
mod guarantees;
mod liveness;
mod lookout;
mod open;
mod options;
mod place;
mod rows;
mod shared;
mod statements;
mod tidying;
mod transaction;
mod writer;

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use tenure_core::{
    BoxFuture, Error, ErrorKind, Finding, Guarantees, Inbox, Listener, Listing, LockName,
    Recovering, Reply, Request, Shard, Store,
};
use tokio::sync::oneshot;

use boot::Boot;
use shared::Shared;
use writer::{Apply, Job};

pub use guarantees::GUARANTEES;
pub use options::Options;

/// Locks in a file, for the processes of one machine.
///
/// All stores of one process on one file share a connection and a thread; the last one to be
/// dropped ends them.
#[derive(Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    inboxes: Mutex<Vec<Inbox>>,
}

impl SqliteStore {
    /// Opens the file, creating it if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the path cannot be a lock file (network file system, another
    /// program's database, made by a newer tenure), [`ErrorKind::Forbidden`] if it belongs to
    /// somebody else, [`ErrorKind::Refused`] if the disk is full, [`ErrorKind::Unavailable`] if it
    /// cannot be read or written for another reason.
    ///
    /// # Cancel safety
    /// Nothing is left behind but, perhaps, the empty file. It waits for as long as a process that
    /// was stopped while it opened the same file does not go on: bound it.
    pub async fn connect(options: impl Into<Options>) -> Result<Self, Error> {
        let (opened, answer) = oneshot::channel();
        let store = Self::begin(&options.into(), move |result| {
            // A caller that has given up does not want to know.
            let _ = opened.send(result);
        })?;
        answer
            .await
            .unwrap_or_else(|_| Err(errors::of_ended_thread()))?;
        Ok(store)
    }

    /// [`connect`](Self::connect) for code that does not run on an async runtime: blocks for as
    /// long as that takes, usually a millisecond.
    ///
    /// # Errors
    /// As `connect`; also [`ErrorKind::Unavailable`] after 5 s, if another process was stopped
    /// while it opened the same file.
    pub fn open(options: impl Into<Options>) -> Result<Self, Error> {
        let (opened, answer) = mpsc::channel();
        let store = Self::begin(&options.into(), move |result| {
            let _ = opened.send(result);
        })?;
        match answer.recv_timeout(OPEN_TIMEOUT) {
            Ok(result) => result.map(|()| store),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(errors::of_ended_thread()),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Error::new(
                ErrorKind::Unavailable,
                "the lock file cannot be opened: another process was stopped while it opened it; \
                 let that one go on, or end it",
            )
            .with("file", store.shared.place.file.display())),
        }
    }

    /// A second descriptor of the file by which others see that the process behind `inbox` is
    /// alive. Holds that are tied to `inbox` live for as long as any process keeps it open: give it
    /// to a process that is to outlive this one and still counts as the holder. It is closed on
    /// `exec` unless that is changed.
    ///
    /// `None` unless `inbox` listens on this file in this process.
    #[must_use]
    pub fn liveness_descriptor(&self, inbox: &Inbox) -> Option<OwnedFd> {
        self.shared.clients.sign_of_life(inbox)
    }

    fn begin(
        options: &Options,
        opened: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<Self, Error> {
        let boot = Boot::current().map_err(|cause| {
            Error::new(
                ErrorKind::Configuration,
                "cannot tell which boot of the machine this is, and for how long it has run: /proc \
                 must be mounted",
            )
            .because(cause)
        })?;
        let shared = Shared::get(options, boot)?;
        shared.send(Job::Open(Box::new(opened)));
        Ok(Self {
            shared,
            inboxes: Mutex::default(),
        })
    }

    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Job,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.shared.send(job(reply));
        answer
            .await
            .unwrap_or_else(|_| Err(errors::of_ended_thread()))
    }

    fn inboxes(&self) -> MutexGuard<'_, Vec<Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

impl Store for SqliteStore {
    fn guarantees(&self) -> Guarantees {
        GUARANTEES
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Vec<Result<Reply, Error>>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.shared.send(Job::Apply(Apply {
                requests: batch.to_vec(),
                reply: Some(reply),
            }));
            match answer.await {
                Ok(replies) => replies,
                Err(_) => batch
                    .iter()
                    .map(|_| Err(errors::of_ended_thread()))
                    .collect(),
            }
        })
    }

    fn shard(&self, _name: &LockName) -> Shard {
        Shard::WHOLE
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        Box::pin(self.ask(|reply| Job::List(prefix.to_owned(), reply)))
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.shared
                .clients
                .register(&self.shared.folder()?, inbox, listener)?;
            self.inboxes().push(inbox.clone());
            Ok(())
        })
    }

    fn recovering<'a>(
        &'a self,
        _name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        Box::pin(self.ask(Job::Diagnose))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        let inboxes = std::mem::take(&mut *self.inboxes());
        for inbox in inboxes {
            if !self.shared.clients.retire(&inbox) {
                self.shared.send(Job::Dead(inbox));
            }
        }
    }
}
