//! Tidying up: what dead processes have left, and names that nobody uses any more.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tenure_core::{Action, Cancel, Fence, Inbox, LockName, OwnerId, Release, Request};

use super::boot::{Boot, Epoch};
use super::errors::Failure;
use super::open::Opened;
use super::place::{ALIVE, BELL};
use super::writer::{Apply, Writer};
use super::{liveness, rows, statements};

/// Names that nobody has used for a day are forgotten, some at a time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Writer {
    /// Ends what dead processes have left: their holds (the next waiter gets in), their places in
    /// queues, and their files.
    pub(super) fn bury_all(&mut self, mut dead: Vec<Inbox>) {
        let mut buried = HashSet::new();
        while let Some(inbox) = dead.pop() {
            if buried.insert(inbox.clone()) {
                dead.extend(self.bury(&inbox));
            }
        }
    }

    fn bury(&mut self, inbox: &Inbox) -> Vec<Inbox> {
        let Ok(opened) = self.open().and_then(|()| self.opened()) else {
            return Vec::new();
        };
        let folder = opened.folder.clone();
        if self.clients.is_listening(inbox).is_some() || liveness::may_live(&folder, inbox) {
            return Vec::new();
        }
        let Ok((held, awaited)) = left_by(&opened.connection, inbox) else {
            return Vec::new();
        };
        // A release of nothing: like every step it lets go of what is dead and admits who is next.
        let nothing = Release {
            owner: OwnerId::from_bytes([0; 16]),
            fence: Fence::NONE,
        };
        let mut requests: Vec<Request> = held
            .into_iter()
            .map(|name| Action::Release(nothing.clone()).on(name))
            .collect();
        let cancel = |(name, owner)| Action::Cancel(Cancel { owner }).on(name);
        requests.extend(awaited.into_iter().map(cancel));
        let mut dead = Vec::new();
        if !requests.is_empty() {
            let reply = None;
            match self.apply(Apply { requests, reply }) {
                Some(others) => dead = others,
                // Its sign of life must stay for as long as a hold refers to it.
                None => return Vec::new(),
            }
        }
        liveness::tidy(&folder, inbox);
        dead
    }

    /// Tidies up after processes that were killed, and forgets names that nobody uses.
    pub(super) fn sweep(&mut self) {
        for inbox in self.clients.abandoned() {
            if !self.clients.retire(&inbox) {
                self.bury_all(vec![inbox]);
            }
        }
        let Ok(opened) = self.open().and_then(|()| self.opened()) else {
            return;
        };
        let folder = opened.folder.clone();
        // In this order: a client gives its sign of life before it hangs up its bell.
        let bells = folder.inboxes(BELL);
        let left = folder.inboxes(ALIVE);
        for inbox in bells.iter().filter(|inbox| !left.contains(inbox)) {
            folder.remove(&format!("{inbox}{BELL}"));
        }
        self.bury_all(left);
        if let Ok(opened) = self.opened() {
            let _ = forget_names(opened, &self.boot);
        }
    }
}

type Left = (Vec<LockName>, Vec<(LockName, OwnerId)>);

/// What a process holds and waits for.
fn left_by(connection: &Connection, inbox: &Inbox) -> Result<Left, Failure> {
    let (mut held, mut awaited) = (Vec::new(), Vec::new());
    let mut statement = connection.prepare_cached(statements::HELD_BY)?;
    let mut found = statement.query([inbox.as_str()])?;
    while let Some(row) = found.next()? {
        held.push(rows::name(&row.get::<_, String>(0)?)?);
    }
    let mut statement = connection.prepare_cached(statements::AWAITED_BY)?;
    let mut found = statement.query([inbox.as_str()])?;
    while let Some(row) = found.next()? {
        let name = rows::name(&row.get::<_, String>(0)?)?;
        awaited.push((name, rows::owner(&row.get::<_, Vec<u8>>(1)?)?));
    }
    Ok((held, awaited))
}

/// Forgets names that nobody has used for a day, but not how high their fences were.
fn forget_names(opened: &Opened, boot: &Boot) -> rusqlite::Result<()> {
    let connection = &opened.connection;
    let Some(epoch) = Epoch::load(connection)? else {
        return Ok(());
    };
    let now = boot.now(&epoch).as_micros();
    let age = u64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(u64::MAX);
    let before = Fence::from_u64(now.saturating_sub(age)).as_u64();
    let before = i64::try_from(before).unwrap_or(0);
    let highest = |connection: &Connection| -> rusqlite::Result<Option<i64>> {
        connection.query_row(statements::HIGHEST_FORGOTTEN, [before], |row| row.get(0))
    };
    if highest(connection)?.is_none() {
        return Ok(());
    }
    let Ok(_turn) = opened.pass_gate() else {
        return Ok(());
    };
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Asked again: others may have used a name, or tidied up, while we waited for our turn.
    if let Some(floor) = highest(&transaction)? {
        transaction.execute(statements::RAISE_FLOOR, [floor])?;
        transaction.execute(statements::FORGET_NAMES, [before])?;
    }
    transaction.commit()
}
