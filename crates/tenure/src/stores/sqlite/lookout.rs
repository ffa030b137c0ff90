//! [`Lookout`]: the net under the doorbell. While somebody here waits, the writer looks now and then
//! whether the file has changed and, if so, reads what became of the waiters. It only reads, so that
//! hundreds of waiting processes do not set each other off.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::{Inbox, LockName, Moment, PushedGrant};

use super::clients::{Asking, Clients};
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
