//! A client as small as can be: requests with defaults, and a mailbox for pushes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tenure::core::{
    Acquire, Action, Cancel, Error, Fence, Grant, Inbox, Listener, LockName, Mode, Outcome,
    OwnerId, Party, Push, PushedGrant, Release, Renew, Reply, Store, Ttl, Waiting,
};
use tenure::stores::sqlite::{Options, SqliteStore};

use crate::support::wait::PATIENCE;

/// A folder that is deleted at the end, and a file in it.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn side_folder(&self) -> PathBuf {
        self.folder.path().join("locks.db.d")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("locks.db")
    }
}

/// A store with a client of its own.
pub(crate) struct Client {
    pub(crate) store: SqliteStore,
    pub(crate) inbox: Inbox,
    mailbox: Arc<Mailbox>,
}

#[derive(Default)]
struct Mailbox {
    pushes: Mutex<Vec<Push>>,
    arrived: Condvar,
}

impl Listener for Mailbox {
    fn pushed(&self, push: Push) {
        self.pushes.lock().expect("no panic").push(push);
        self.arrived.notify_all();
    }
}

impl Client {
    pub(crate) async fn new(file: impl Into<Options>) -> Self {
        let store = SqliteStore::connect(file).await.expect("the file opens");
        let inbox = Inbox::from_bytes(random());
        let mailbox = Arc::new(Mailbox::default());
        let listener: Arc<dyn Listener> = mailbox.clone();
        store
            .listen(&inbox, Arc::downgrade(&listener))
            .await
            .expect("listens");
        Self {
            store,
            inbox,
            mailbox,
        }
    }

    pub(crate) async fn reply(&self, name: &str, action: Action) -> Result<Reply, Error> {
        let batch = [action.on(LockName::new(name).expect("a name"))];
        self.store
            .apply(&batch)
            .await
            .pop()
            .expect("one reply for one request")
    }

    pub(crate) async fn ask(&self, name: &str, action: Action) -> Outcome {
        self.reply(name, action)
            .await
            .expect("the store answers")
            .outcome
    }

    /// Tries without waiting; tied to this process.
    pub(crate) fn attempt(&self, owner: OwnerId) -> Acquire {
        Acquire {
            owner,
            mode: Mode::Exclusive,
            ttl: minute(),
            party: Party::new("tester@here", "", "here", std::process::id()),
            waiting: Waiting::No,
            anchor: Some(self.inbox.clone()),
            not_after: None,
        }
    }

    /// Waits in the queue for up to a minute without a sign of life.
    pub(crate) fn waiting(&self, owner: OwnerId) -> Acquire {
        Acquire {
            waiting: Waiting::Queue {
                inbox: self.inbox.clone(),
                alive_for: Duration::from_secs(60),
            },
            ..self.attempt(owner)
        }
    }

    pub(crate) async fn acquire(&self, name: &str, owner: OwnerId) -> Outcome {
        self.ask(name, Action::Acquire(self.attempt(owner))).await
    }

    pub(crate) async fn take(&self, name: &str, owner: OwnerId) -> Grant {
        granted(self.acquire(name, owner).await)
    }

    pub(crate) async fn queue(&self, name: &str, owner: OwnerId) -> Outcome {
        self.ask(name, Action::Acquire(self.waiting(owner))).await
    }

    pub(crate) async fn release(&self, name: &str, owner: OwnerId, fence: Fence) -> Outcome {
        self.ask(name, Action::Release(Release { owner, fence }))
            .await
    }

    pub(crate) async fn renew(&self, name: &str, owner: OwnerId, fence: Fence) -> Outcome {
        let renew = Renew {
            owner,
            fence,
            ttl: minute(),
            detach: false,
            terms: None,
        };
        self.ask(name, Action::Renew(renew)).await
    }

    pub(crate) async fn cancel(&self, name: &str, owner: OwnerId) -> Outcome {
        self.ask(name, Action::Cancel(Cancel { owner })).await
    }

    /// The pushed grant of `owner`, when it arrives; panics after `patience`.
    pub(crate) fn pushed_within(&self, owner: OwnerId, patience: Duration) -> PushedGrant {
        let find = |pushes: &Vec<Push>| {
            pushes.iter().find_map(|push| match push {
                Push::Granted(grant) if grant.owner == owner => Some(grant.clone()),
                _ => None,
            })
        };
        let pushes = self.mailbox.pushes.lock().expect("no panic");
        let absent = |pushes: &mut Vec<Push>| find(pushes).is_none();
        let (pushes, _) = self
            .mailbox
            .arrived
            .wait_timeout_while(pushes, patience, absent)
            .expect("no panic");
        find(&pushes).unwrap_or_else(|| panic!("no grant for {owner}, only {pushes:?}"))
    }

    /// The pushed grant of `owner`, when it arrives.
    pub(crate) fn pushed(&self, owner: OwnerId) -> PushedGrant {
        self.pushed_within(owner, PATIENCE)
    }
}

fn minute() -> Ttl {
    Ttl::new(Duration::from_secs(60)).expect("in range")
}

pub(crate) fn granted(outcome: Outcome) -> Grant {
    match outcome {
        Outcome::Granted(grant) => grant,
        other => panic!("granted expected, not {other:?}"),
    }
}

/// An owner that no other test or process has.
pub(crate) fn owner() -> OwnerId {
    OwnerId::from_bytes(random())
}

pub(crate) fn random() -> [u8; 16] {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
    bytes[8..].copy_from_slice(&COUNTER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    bytes
}
