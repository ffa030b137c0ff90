//! [`Lookout`]: the net under the doorbell. While somebody here waits, the writer looks now and then
//! whether the file has changed and, if so, reads what became of the waiters. It only reads, so that
//! hundreds of waiting processes do not set each other off.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::{Fence, Inbox, LockName, Moment, OwnerId, PushedGrant};

use super::boot::{Boot, Epoch};
use super::clients::{Asking, Clients};
use super::errors::Failure;
use super::open::Opened;
use super::{rows, statements};

/// When the writer looks, and what it saw last.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    at: Option<Moment>,
    version: Option<i64>,
}

/// So many at the head of a queue watch over the holder's life. All of them would be a herd; one
/// alone might be stopped.
pub(super) const WATCHERS: u32 = 2;

/// Names that nobody has used for a day are forgotten, some at a time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Lookout {
    /// When to look next; `None` while nobody waits.
    pub(super) fn due(&mut self, waiting: bool, now: Moment, every: Duration) -> Option<Moment> {
        if !waiting {
            self.at = None;
            return None;
        }
        Some(*self.at.get_or_insert(now.plus(every)))
    }

    /// Has looked.
    pub(super) fn done(&mut self) {
        self.at = None;
    }

    /// Takes the file to have changed.
    pub(super) fn look_again(&mut self) {
        self.version = None;
    }

    /// If the file has changed: delivers grants that nobody told us of, and answers who holds what
    /// the foremost waiters wait for.
    pub(super) fn look(
        &mut self,
        connection: &Connection,
        clients: &Clients,
    ) -> rusqlite::Result<BTreeSet<Inbox>> {
        let mut holders = BTreeSet::new();
        // Counts the commits of other connections, without touching the disk.
        let version = connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if self.version.replace(version) == Some(version) {
            return Ok(holders);
        }
        for (asking, inbox) in clients.waiting() {
            if let Some((fence, now, expiry)) = rows::find_grant(connection, &asking.0, asking.1)? {
                let (name, owner) = asking;
                let grant = PushedGrant {
                    name,
                    owner,
                    fence,
                    now,
                    expiry,
                };
                clients.deliver(&inbox, grant);
                continue;
            }
            match place(connection, &asking)? {
                None => clients.missed(&asking),
                Some(ahead) if ahead < WATCHERS => {
                    holders.extend(anchors(connection, &asking.0)?);
                }
                Some(_) => (),
            }
        }
        Ok(holders)
    }
}

/// How many wait before `asking`; `None` if it does not wait.
fn place(connection: &Connection, (name, owner): &Asking) -> rusqlite::Result<Option<u32>> {
    connection
        .prepare_cached(statements::PLACE)?
        .query_row(params![name.as_str(), owner.as_bytes()], |row| row.get(0))
        .optional()
}

/// The processes that the holds of a name are tied to.
fn anchors(connection: &Connection, name: &LockName) -> rusqlite::Result<Vec<Inbox>> {
    let mut statement = connection.prepare_cached(statements::ANCHORS_OF)?;
    let anchors = statement.query_map([name.as_str()], |row| row.get::<_, String>(0))?;
    let anchors = anchors.filter_map(|anchor| anchor.map(|text| Inbox::parse(&text)).transpose());
    anchors.collect()
}

type Left = (Vec<LockName>, Vec<(LockName, OwnerId)>);

/// What a process holds and waits for.
pub(super) fn left_by(connection: &Connection, inbox: &Inbox) -> Result<Left, Failure> {
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
pub(super) fn forget_names(opened: &Opened, boot: &Boot) -> rusqlite::Result<()> {
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
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    // Asked again: others may have used a name, or tidied up, while we waited for our turn.
    if let Some(floor) = highest(&transaction)? {
        transaction.execute(statements::RAISE_FLOOR, [floor])?;
        transaction.execute(statements::FORGET_NAMES, [before])?;
    }
    transaction.commit()
}
