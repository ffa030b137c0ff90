//! [`Writer`]: the one thread of this process that uses a file. Requests come by channel; what has
//! arrived while the file was busy shares one transaction.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::{Action, Error, Finding, Inbox, Listing, Moment, Reply, Request};
use tokio::sync::oneshot;

use super::boot::Boot;
use super::clients::Clients;
use super::doorbell::Ringer;
use super::liveness::{Sight, Watch};
use super::open::Opened;
use super::place::Place;
use super::shared::{CurrentFolder, Shared};
use super::transaction::{self, Effects};
use super::{Options, diagnose, errors, lookout};
use crate::clock::SystemClock;

/// What the writer is asked to do.
pub(super) enum Job {
    /// Open the file, if it is not open yet.
    Open(Box<dyn FnOnce(Result<(), Error>) + Send>),
    /// Decide requests.
    Apply(Apply),
    /// List what is in use.
    List(String, oneshot::Sender<Result<Listing, Error>>),
    /// Look at the file.
    Diagnose(oneshot::Sender<Result<Vec<Finding>, Error>>),
    /// End what a dead process has left.
    Dead(Inbox),
}

/// Requests, and who wants to know.
pub(super) struct Apply {
    pub(super) requests: Vec<Request>,
    /// `None`: nobody; the writer asks itself.
    pub(super) reply: Option<oneshot::Sender<Vec<Result<Reply, Error>>>>,
}

impl Apply {
    /// Nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    fn only_looks(&self) -> bool {
        self.requests
            .iter()
            .all(|request| matches!(request.action, Action::Inspect))
    }

    fn answer(self, replies: Vec<Result<Reply, Error>>) {
        if let Some(reply) = self.reply {
            // A caller that has gone away does not want to know.
            let _ = reply.send(replies);
        }
    }
}

/// The one thread of this process that uses a file.
pub(super) struct Writer {
    place: Place,
    options: Options,
    pub(super) boot: Boot,
    inbound: Receiver<Job>,
    /// Came in while requests were collected for one transaction.
    postponed: Option<Job>,
    pub(super) clients: Arc<Clients>,
    folder: CurrentFolder,
    shared: Weak<Shared>,
    opened: Option<Opened>,
    ringer: Ringer,
    watch: Watch,
    lookout: lookout::Lookout,
    sweep_at: Moment,
}

/// So many calls share a transaction at most, to bound how long other processes wait.
const LARGEST_BATCH: usize = 64;
/// A process that lives this long tidies up after others: short-lived ones should not pay for it.
const FIRST_SWEEP: Duration = Duration::from_secs(1);
const NEXT_SWEEP: Duration = Duration::from_secs(600);

impl Writer {
    pub(super) fn new(
        place: Place,
        options: Options,
        boot: Boot,
        inbound: Receiver<Job>,
        clients: Arc<Clients>,
        folder: CurrentFolder,
        shared: &Arc<Shared>,
    ) -> Result<Self, Error> {
        let ringer = Ringer::new().map_err(|cause| {
            Error::new(tenure_core::ErrorKind::Refused, "cannot open a socket").because(cause)
        })?;
        Ok(Self {
            place,
            options,
            boot,
            inbound,
            postponed: None,
            clients,
            folder,
            shared: Arc::downgrade(shared),
            opened: None,
            ringer,
            watch: Watch::default(),
            lookout: lookout::Lookout::default(),
            sweep_at: SystemClock::read().plus(FIRST_SWEEP),
        })
    }

    /// Works until the last store on this file is dropped.
    pub(super) fn run(mut self) {
        loop {
            let now = SystemClock::read();
            let poll_at = self
                .lookout
                .due(self.clients.anybody_waits(), now, self.options.poll);
            if poll_at.is_some_and(|at| at <= now) {
                self.poll();
                self.lookout.done();
                continue;
            }
            if self.sweep_at <= now {
                self.sweep();
                self.sweep_at = now.plus(NEXT_SWEEP);
                continue;
            }
            let wake_at = poll_at.map_or(self.sweep_at, |at| at.min(self.sweep_at));
            let job = match self.postponed.take() {
                Some(job) => job,
                None => match self.inbound.recv_timeout(wake_at.since(now)) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
            };
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(job)));
            if served.is_err() {
                // A bug. Its caller sees its reply dropped; the others go on with a new connection.
                self.opened = None;
            }
        }
    }

    fn serve(&mut self, job: Job) {
        match job {
            Job::Open(reply) => {
                let result = self.open();
                reply(result);
            }
            Job::Apply(apply) => {
                let dead = self.apply(apply);
                self.bury_all(dead.unwrap_or_default());
                if let Some(opened) = &self.opened {
                    opened.shorten_log();
                }
            }
            Job::List(prefix, reply) => {
                let result = self.list(&prefix);
                let _ = reply.send(result);
            }
            Job::Diagnose(reply) => {
                let result = self.diagnose();
                let _ = reply.send(result);
            }
            Job::Dead(inbox) => {
                self.bury_all(vec![inbox]);
                self.lookout.look_again();
                self.poll();
            }
        }
    }

    /// Opens the file if it is not open yet, and anew if it was replaced.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        let replaced = |opened: &Opened| opened.identity != self.place.identity();
        if self.opened.as_ref().is_some_and(replaced) {
            // Deleted or moved away: whoever comes now uses the new file, and so must we.
            self.opened = None;
            // The folder may be gone, too.
            self.place = self.place.resolve_again()?;
        }
        if self.opened.is_none() {
            let opened = Opened::open(&self.place, &self.options, &self.boot)?;
            self.folder.set(opened.folder.clone());
            self.lookout = lookout::Lookout::default();
            self.opened = Some(opened);
        }
        Ok(())
    }

    /// The open file.
    pub(super) fn opened(&self) -> Result<&Opened, Error> {
        self.opened.as_ref().ok_or_else(errors::of_ended_thread)
    }

    /// Decides `first` and whatever else has arrived meanwhile; answers who was found dead, or
    /// `None` if it failed.
    pub(super) fn apply(&mut self, first: Apply) -> Option<Vec<Inbox>> {
        let mut batch = vec![first];
        let result = if batch[0].only_looks() {
            self.look(&batch)
        } else {
            self.write(&mut batch)
        };
        match result {
            Ok(effects) => Some(self.spread(batch, effects)),
            Err(error) => {
                for apply in batch {
                    let replies = apply.requests.iter().map(|_| Err(errors::again(&error)));
                    let replies = replies.collect();
                    apply.answer(replies);
                }
                None
            }
        }
    }

    fn look(&mut self, batch: &[Apply]) -> Result<Effects, Error> {
        self.open()?;
        let opened = self.opened()?;
        let sight = Sight::new(&self.clients, &opened.folder, &self.ringer);
        transaction::run(opened, "BEGIN", &self.boot, &self.place, |transaction| {
            transaction.decide(batch, &self.clients, sight)
        })
    }

    fn write(&mut self, batch: &mut Vec<Apply>) -> Result<Effects, Error> {
        self.open()?;
        let Some(opened) = &self.opened else {
            return Err(errors::of_ended_thread());
        };
        let turn = opened.pass_gate()?;
        if opened.identity != self.place.identity() {
            // Replaced while we waited for our turn.
            drop(turn);
            return self.write_anew(batch);
        }
        while batch.len() < LARGEST_BATCH && self.postponed.is_none() {
            match self.inbound.try_recv() {
                Ok(Job::Apply(apply)) => batch.push(apply),
                Ok(other) => self.postponed = Some(other),
                Err(_) => break,
            }
        }
        let sight = Sight::new(&self.clients, &opened.folder, &self.ringer);
        let effects = transaction::run(
            opened,
            "BEGIN IMMEDIATE",
            &self.boot,
            &self.place,
            |transaction| transaction.decide(batch, &self.clients, sight),
        )?;
        // First of all, so that the next holder can begin.
        for (inbox, grant) in &effects.pushes {
            if !self.clients.deliver(inbox, grant.clone()) {
                self.ringer.ring(&opened.folder, inbox, grant);
            }
        }
        if !effects.pushes.is_empty() {
            // Our own commits do not count as changes, but there are new holders to watch.
            self.lookout.look_again();
        }
        Ok(effects)
    }

    #[cold]
    fn write_anew(&mut self, batch: &mut Vec<Apply>) -> Result<Effects, Error> {
        self.opened = None;
        self.write(batch)
    }

    /// Answers the callers and sees to it that their waiters are woken.
    fn spread(&mut self, batch: Vec<Apply>, effects: Effects) -> Vec<Inbox> {
        for inbox in &effects.queued {
            self.clients.answer(inbox);
        }
        for (apply, replies) in batch.into_iter().zip(effects.replies) {
            apply.answer(replies);
        }
        self.watch_over(&effects.in_the_way);
        effects.dead
    }

    /// Waits for the death of those who hold what somebody here waits for.
    fn watch_over(&self, holders: &BTreeSet<Inbox>) {
        let Some(opened) = &self.opened else {
            return;
        };
        for inbox in holders {
            if self.clients.is_listening(inbox).is_none() {
                self.watch.start(inbox, &opened.folder, &self.shared);
            }
        }
    }

    fn list(&mut self, prefix: &str) -> Result<Listing, Error> {
        self.open()?;
        let opened = self.opened()?;
        let sight = Sight::new(&self.clients, &opened.folder, &self.ringer);
        transaction::run(opened, "BEGIN", &self.boot, &self.place, |transaction| {
            transaction.list(prefix, &sight)
        })
    }

    fn diagnose(&mut self) -> Result<Vec<Finding>, Error> {
        self.open()?;
        let opened = self.opened()?;
        diagnose::look(opened, &self.place, &self.boot)
    }

    /// Looks for grants whose doorbell did not reach us, and for holders to watch.
    fn poll(&mut self) {
        if !self.clients.anybody_waits() || self.open().is_err() {
            return;
        }
        let Some(opened) = &self.opened else {
            return;
        };
        // If the file cannot be read now, the waiters' own requests will say so.
        if let Ok(holders) = self.lookout.look(&opened.connection, &self.clients) {
            self.watch_over(&holders);
        }
    }
}
