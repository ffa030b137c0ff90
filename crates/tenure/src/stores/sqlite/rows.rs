//! A [`LockState`] as rows: loaded by name, and saved by writing only what changed.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use tenure_core::{
    Fence, ForcedRelease, Holder, Inbox, LockName, LockState, Mode, OwnerId, Party, Timestamp, Ttl,
    Waiter,
};

use super::errors::Failure;
use super::statements;

/// The state of one name as it is in the file.
pub(super) struct Stored {
    /// What `decide` works on.
    pub(super) state: LockState,
    /// The place of each waiter in the queue, as numbered in the file.
    places: HashMap<OwnerId, i64>,
}

impl Stored {
    /// Loads the state of a name; a name that is not in the file was forgotten, at the latest, with
    /// a last fence of `floor`.
    pub(super) fn load(
        connection: &Connection,
        name: &LockName,
        floor: Fence,
    ) -> Result<Self, Failure> {
        let name = name.as_str();
        let (last_fence, forced) = load_lock(connection, name)?.unwrap_or((floor, None));
        let mut holders = load_holders(connection, name)?;
        holders.sort_by_key(|holder| holder.fence);
        let mut waiters = load_waiters(connection, name)?;
        waiters.sort_by_key(|(place, _)| *place);
        let places = waiters
            .iter()
            .map(|(place, waiter)| (waiter.owner, *place))
            .collect();
        let state = LockState {
            last_fence,
            holders,
            queue: waiters.into_iter().map(|(_, waiter)| waiter).collect(),
            forced,
        };
        Ok(Self { state, places })
    }

    /// Writes what differs between this and `next`.
    pub(super) fn save(
        &self,
        connection: &Connection,
        name: &LockName,
        next: &LockState,
    ) -> rusqlite::Result<()> {
        let name = name.as_str();
        if next.last_fence != self.state.last_fence || next.forced != self.state.forced {
            save_lock(connection, name, next)?;
        }
        self.save_holders(connection, name, next)?;
        self.save_waiters(connection, name, next)
    }

    fn save_holders(
        &self,
        connection: &Connection,
        name: &str,
        next: &LockState,
    ) -> rusqlite::Result<()> {
        for old in &self.state.holders {
            if next.holder(old.owner).is_none() {
                let mut statement = connection.prepare_cached(statements::DROP_HOLDER)?;
                statement.execute(params![name, old.owner.as_bytes()])?;
            }
        }
        for holder in &next.holders {
            if self.state.holder(holder.owner) != Some(holder) {
                save_holder(connection, name, holder)?;
            }
        }
        Ok(())
    }

    fn save_waiters(
        &self,
        connection: &Connection,
        name: &str,
        next: &LockState,
    ) -> rusqlite::Result<()> {
        let old: HashMap<OwnerId, &Waiter> = self
            .state
            .queue
            .iter()
            .map(|waiter| (waiter.owner, waiter))
            .collect();
        let mut gone = old.clone();
        let mut last = self.places.values().copied().max().unwrap_or(0);
        let mut before = 0;
        for waiter in &next.queue {
            gone.remove(&waiter.owner);
            // Nobody changes places, but whoever fell silent and came back is new, and whoever is
            // new came last.
            let kept = self.places.get(&waiter.owner).copied();
            let place = kept.filter(|place| *place > before).unwrap_or_else(|| {
                last += 1;
                last
            });
            before = place;
            if old.get(&waiter.owner) != Some(&waiter) {
                save_waiter(connection, name, place, waiter)?;
            }
        }
        for owner in gone.keys() {
            let mut statement = connection.prepare_cached(statements::DROP_WAITER)?;
            statement.execute(params![name, owner.as_bytes()])?;
        }
        Ok(())
    }
}

type LockRow = (Fence, Option<ForcedRelease>);

fn load_lock(connection: &Connection, name: &str) -> Result<Option<LockRow>, Failure> {
    let mut statement = connection.prepare_cached(statements::LOAD_LOCK)?;
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let last_fence = fence(row.get(0)?)?;
    let forced = match row.get::<_, Option<Vec<u8>>>(1)? {
        None => None,
        Some(bytes) => Some(ForcedRelease {
            owner: owner(&bytes)?,
            fence: fence(row.get(2)?)?,
            at: timestamp(row.get(3)?)?,
            reason: row.get(4)?,
            by: party(row, 5)?,
        }),
    };
    Ok(Some((last_fence, forced)))
}

fn save_lock(connection: &Connection, name: &str, state: &LockState) -> rusqlite::Result<()> {
    let forced = state.forced.as_ref();
    let by = forced.map(|forced| &forced.by);
    connection
        .prepare_cached(statements::SAVE_LOCK)?
        .execute(params![
            name,
            whole(state.last_fence.as_u64()),
            forced.map(|forced| forced.owner.as_bytes()),
            forced.map(|forced| whole(forced.fence.as_u64())),
            forced.map(|forced| whole(forced.at.as_micros())),
            forced.map(|forced| &forced.reason),
            by.map(Party::who),
            by.map(Party::label),
            by.map(Party::host),
            by.map(Party::pid),
        ])?;
    Ok(())
}

fn load_holders(connection: &Connection, name: &str) -> Result<Vec<Holder>, Failure> {
    let mut statement = connection.prepare_cached(statements::LOAD_HOLDERS)?;
    let mut rows = statement.query([name])?;
    let mut holders = Vec::new();
    while let Some(row) = rows.next()? {
        holders.push(Holder {
            owner: owner(row.get_ref(0)?.as_blob().unwrap_or_default())?,
            mode: mode(row.get(1)?, row.get(2)?, row.get(3)?)?,
            fence: fence(row.get(4)?)?,
            since: timestamp(row.get(5)?)?,
            expiry: timestamp(row.get(6)?)?,
            anchor: anchor(row.get(7)?)?,
            party: party(row, 8)?,
        });
    }
    Ok(holders)
}

fn save_holder(connection: &Connection, name: &str, holder: &Holder) -> rusqlite::Result<()> {
    let (mode, permits, capacity) = numbers(holder.mode);
    connection
        .prepare_cached(statements::SAVE_HOLDER)?
        .execute(params![
            name,
            holder.owner.as_bytes(),
            mode,
            permits,
            capacity,
            whole(holder.fence.as_u64()),
            whole(holder.since.as_micros()),
            whole(holder.expiry.as_micros()),
            holder.anchor.as_ref().map(Inbox::as_str),
            holder.party.who(),
            holder.party.label(),
            holder.party.host(),
            holder.party.pid(),
        ])?;
    Ok(())
}

fn load_waiters(connection: &Connection, name: &str) -> Result<Vec<(i64, Waiter)>, Failure> {
    let mut statement = connection.prepare_cached(statements::LOAD_WAITERS)?;
    let mut rows = statement.query([name])?;
    let mut waiters = Vec::new();
    while let Some(row) = rows.next()? {
        let waiter = Waiter {
            owner: owner(row.get_ref(1)?.as_blob().unwrap_or_default())?,
            mode: mode(row.get(2)?, row.get(3)?, row.get(4)?)?,
            ttl: Ttl::new(Duration::from_millis(positive(row.get(5)?)?))
                .map_err(|_| Failure::Row("a ttl out of range"))?,
            since: timestamp(row.get(6)?)?,
            alive_for: Duration::from_nanos(positive(row.get(7)?)?),
            alive_until: timestamp(row.get(8)?)?,
            inbox: anchor(row.get(9)?)?.ok_or(Failure::Row("a waiter without inbox"))?,
            anchor: anchor(row.get(10)?)?,
            party: party(row, 11)?,
        };
        waiters.push((row.get(0)?, waiter));
    }
    Ok(waiters)
}

fn save_waiter(
    connection: &Connection,
    name: &str,
    place: i64,
    waiter: &Waiter,
) -> rusqlite::Result<()> {
    let (mode, permits, capacity) = numbers(waiter.mode);
    connection
        .prepare_cached(statements::SAVE_WAITER)?
        .execute(params![
            name,
            waiter.owner.as_bytes(),
            place,
            mode,
            permits,
            capacity,
            whole(waiter.ttl.as_millis()),
            whole(waiter.since.as_micros()),
            i64::try_from(waiter.alive_for.as_nanos()).unwrap_or(i64::MAX),
            whole(waiter.alive_until.as_micros()),
            waiter.inbox.as_str(),
            waiter.anchor.as_ref().map(Inbox::as_str),
            waiter.party.who(),
            waiter.party.label(),
            waiter.party.host(),
            waiter.party.pid(),
        ])?;
    Ok(())
}

/// The grant that a waiter has got meanwhile: fence, since, expiry.
pub(super) fn find_grant(
    connection: &Connection,
    name: &LockName,
    owner: OwnerId,
) -> rusqlite::Result<Option<(Fence, Timestamp, Timestamp)>> {
    connection
        .prepare_cached(statements::FIND_GRANT)?
        .query_row(params![name.as_str(), owner.as_bytes()], |row| {
            let number = |index| {
                row.get(index)
                    .map(|value: i64| u64::try_from(value).unwrap_or(0))
            };
            let fence = Fence::from_u64(number(0)?);
            Ok((
                fence,
                Timestamp::from_micros(number(1)?),
                Timestamp::from_micros(number(2)?),
            ))
        })
        .optional()
}

/// A name that was read back.
pub(super) fn name(text: &str) -> Result<LockName, Failure> {
    LockName::new(text).map_err(|_| Failure::Row("a name that is not allowed"))
}

/// An owner that was read back.
pub(super) fn owner(bytes: &[u8]) -> Result<OwnerId, Failure> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Failure::Row("an owner that is not 16 bytes long"))?;
    Ok(OwnerId::from_bytes(bytes))
}

fn numbers(mode: Mode) -> (u32, u32, u32) {
    match mode {
        Mode::Exclusive => (0, 0, 0),
        Mode::Shared => (1, 0, 0),
        Mode::Permits(permits) => (2, permits.count(), permits.capacity()),
    }
}

fn mode(mode: u32, permits: u32, capacity: u32) -> Result<Mode, Failure> {
    match mode {
        0 => Ok(Mode::Exclusive),
        1 => Ok(Mode::Shared),
        2 => Mode::permits(permits, capacity).map_err(|_| Failure::Row("permits out of range")),
        _ => Err(Failure::Row("an unknown mode")),
    }
}

fn party(row: &Row<'_>, first: usize) -> Result<Party, Failure> {
    let text = |index| -> Result<&str, Failure> {
        row.get_ref(index)?
            .as_str()
            .map_err(|_| Failure::Row("a party that is not text"))
    };
    let pid = row.get(first + 3)?;
    Ok(Party::new(
        text(first)?,
        text(first + 1)?,
        text(first + 2)?,
        pid,
    ))
}

fn anchor(text: Option<String>) -> Result<Option<Inbox>, Failure> {
    text.map(|text| Inbox::parse(&text).ok_or(Failure::Row("a malformed inbox")))
        .transpose()
}

fn fence(value: i64) -> Result<Fence, Failure> {
    positive(value).map(Fence::from_u64)
}

fn timestamp(value: i64) -> Result<Timestamp, Failure> {
    positive(value).map(Timestamp::from_micros)
}

fn positive(value: i64) -> Result<u64, Failure> {
    u64::try_from(value).map_err(|_| Failure::Row("a negative number"))
}

/// SQLite's numbers end at 2^63: in microseconds, that is 292,000 years.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
