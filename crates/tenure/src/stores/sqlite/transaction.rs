//! One transaction: requests are decided one after the other, as if alone, at one time.

use std::collections::BTreeSet;

use rusqlite::Connection;
use tenure_core::{
    Action, Decision, Error, ErrorKind, Inbox, Listing, Outcome, PushedGrant, Reply, Request,
    Timestamp, Waiting, decide,
};

use super::boot::{Boot, Epoch};
use super::clients::Clients;
use super::errors::{self, Failure};
use super::liveness::Sight;
use super::lookout::WATCHERS;
use super::open::Opened;
use super::place::Place;
use super::rows::{self, Stored};
use super::statements;
use super::writer::Apply;

/// A transaction that has begun.
pub(super) struct Transaction<'a> {
    connection: &'a Connection,
    place: &'a Place,
    epoch: Epoch,
    now: Timestamp,
}

/// What follows from a transaction once it is committed.
#[derive(Default)]
pub(super) struct Effects {
    /// One per request, by call.
    pub(super) replies: Vec<Vec<Result<Reply, Error>>>,
    /// Grants to deliver.
    pub(super) pushes: Vec<(Inbox, PushedGrant)>,
    /// Who waits from now on.
    pub(super) queued: BTreeSet<Inbox>,
    /// Who holds what the foremost of them wait for.
    pub(super) in_the_way: BTreeSet<Inbox>,
    /// Who was found dead.
    pub(super) dead: Vec<Inbox>,
}

/// Runs `work` in a transaction that starts with `begin`; all or nothing.
pub(super) fn run<T>(
    opened: &Opened,
    begin: &str,
    boot: &Boot,
    place: &Place,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
) -> Result<T, Error> {
    let connection = &opened.connection;
    let wrong = |failure| match failure {
        Failure::Sqlite(error) => errors::of_sqlite(&error, &place.file),
        Failure::Row(what) => errors::of_row(what, &place.file),
    };
    step(connection, begin).map_err(|error| wrong(error.into()))?;
    let rollback = Rollback(connection);
    let epoch = Epoch::load(connection).map_err(|error| wrong(error.into()))?;
    let epoch = epoch
        .filter(|epoch| boot.is_of(epoch))
        .ok_or_else(|| elsewhere(place))?;
    // Read after the file was locked: whoever was here before us has an earlier time.
    let now = boot.now(&epoch);
    let transaction = Transaction {
        connection,
        place,
        epoch,
        now,
    };
    let result = work(&transaction).map_err(wrong)?;
    step(connection, "COMMIT").map_err(|error| wrong(error.into()))?;
    std::mem::forget(rollback);
    Ok(result)
}

/// Undoes the transaction unless it was committed, also on a panic.
struct Rollback<'a>(&'a Connection);

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // If even this fails, the connection is of no use and every next step says so.
            let _ = step(self.0, "ROLLBACK");
        }
    }
}

fn step(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

#[cold]
pub(super) fn elsewhere(place: &Place) -> Error {
    Error::new(
        ErrorKind::Configuration,
        "another machine (or a sandbox or container with a boot id of its own) uses the same lock \
         file: a SQLite store excludes only processes that see the same kernel and boot id; give \
         each its own file, or use a server",
    )
    .with("file", place.file.display())
}

impl Transaction<'_> {
    /// Decides all requests of all calls.
    pub(super) fn decide(
        &self,
        batch: &[Apply],
        clients: &Clients,
        sight: Sight<'_>,
    ) -> Result<Effects, Failure> {
        let mut effects = Effects::default();
        for apply in batch {
            let mut replies = Vec::with_capacity(apply.requests.len());
            for request in &apply.requests {
                let unwanted = matches!(request.action, Action::Acquire(_) | Action::Inspect);
                if unwanted && apply.is_abandoned() {
                    replies.push(Err(Error::new(ErrorKind::Closed, "the caller is gone")));
                    continue;
                }
                replies.push(
                    match self.decide_one(request, clients, &sight, &mut effects) {
                        Ok(reply) => Ok(reply),
                        Err(Failure::Row(what)) => Err(errors::of_row(what, &self.place.file)),
                        Err(failure) => return Err(failure),
                    },
                );
            }
            effects.replies.push(replies);
        }
        effects.dead = sight.dead();
        Ok(effects)
    }

    fn decide_one(
        &self,
        request: &Request,
        clients: &Clients,
        sight: &Sight<'_>,
        effects: &mut Effects,
    ) -> Result<Reply, Failure> {
        let stored = Stored::load(self.connection, &request.name, self.epoch.fence_floor)?;
        let Decision {
            state,
            outcome,
            handovers,
        } = decide(stored.state.clone(), &request.action, self.now, sight);
        stored.save(self.connection, &request.name, &state)?;
        clients.note(request, &outcome);
        for handover in handovers {
            let grant = PushedGrant {
                name: request.name.clone(),
                owner: handover.owner,
                fence: handover.fence,
                now: self.now,
                expiry: handover.expiry,
            };
            effects.pushes.push((handover.inbox, grant));
        }
        if let (Outcome::Queued { ahead, .. }, Some(inbox)) = (&outcome, inbox_of(request)) {
            effects.queued.insert(inbox.clone());
            if *ahead < WATCHERS {
                let anchors = state
                    .holders
                    .iter()
                    .filter_map(|holder| holder.anchor.clone());
                effects.in_the_way.extend(anchors);
            }
        }
        Ok(Reply {
            now: self.now,
            outcome,
        })
    }

    /// Every name with this prefix that is in use.
    pub(super) fn list(&self, prefix: &str, sight: &Sight<'_>) -> Result<Listing, Failure> {
        let mut statement = self.connection.prepare_cached(statements::NAMES_IN_USE)?;
        let mut found = statement.query([])?;
        let mut locks = Vec::new();
        while let Some(row) = found.next()? {
            let text = row.get_ref(0)?.as_str().unwrap_or_default();
            if !text.starts_with(prefix) {
                continue;
            }
            let name = rows::name(text)?;
            let stored = Stored::load(self.connection, &name, self.epoch.fence_floor)?;
            let decision = decide(stored.state, &Action::Inspect, self.now, sight);
            let Outcome::State(snapshot) = decision.outcome else {
                continue;
            };
            if snapshot.kind.is_some() {
                locks.push((name, snapshot));
            }
        }
        Ok(Listing {
            now: self.now,
            locks,
        })
    }
}

fn inbox_of(request: &Request) -> Option<&Inbox> {
    match &request.action {
        Action::Acquire(acquire) => match &acquire.waiting {
            Waiting::Queue { inbox, .. } => Some(inbox),
            Waiting::No => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    /// A file, and a way to run statements in a transaction on it.
    struct File {
        _folder: tempfile::TempDir,
        place: Place,
        boot: Boot,
        opened: Opened,
    }

    impl File {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let options = Options::new(folder.path().join("locks.db"));
            let place = Place::resolve(&options.path).unwrap();
            let boot = Boot::current().unwrap();
            let opened = Opened::open(&place, &options, &boot).unwrap();
            Self {
                _folder: folder,
                place,
                boot,
                opened,
            }
        }

        fn run(&self, statements: &str) -> Result<(), Error> {
            run(
                &self.opened,
                "BEGIN IMMEDIATE",
                &self.boot,
                &self.place,
                |transaction| Ok(transaction.connection.execute_batch(statements)?),
            )
        }

        fn names(&self) -> i64 {
            let count = "SELECT count(*) FROM lock";
            self.opened
                .connection
                .query_row(count, [], |row| row.get(0))
                .unwrap()
        }

        fn set(&self, pragma: &str, value: i64) {
            let ignore = |_: &rusqlite::Row<'_>| Ok(());
            let _ = self
                .opened
                .connection
                .pragma_update_and_check(None, pragma, value, ignore);
        }
    }

    const ONE: &str = "INSERT INTO lock (name, last_fence) VALUES ('one', 1);";
    const MANY: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 999) \
                        INSERT INTO lock (name, last_fence) SELECT printf('%0100d', i), i FROM n;";

    #[test]
    fn a_full_disk_undoes_everything_and_the_file_goes_on() {
        let file = File::new();
        // SQLite's own limit fails in the same way as a disk without room.
        file.set("max_page_count", 8);
        let error = file.run(&[ONE, MANY].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("make room"), "{error}");
        assert_eq!(file.names(), 0);
        file.run(ONE).unwrap();
        file.set("max_page_count", 1_000_000);
        file.run(MANY).unwrap();
        assert_eq!(file.names(), 1000);
    }

    #[test]
    fn a_read_only_file_is_refused() {
        let file = File::new();
        file.set("query_only", 1);
        let error = file.run(ONE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }

    #[test]
    fn a_panic_undoes_the_transaction() {
        let file = File::new();
        let work = || {
            run(
                &file.opened,
                "BEGIN IMMEDIATE",
                &file.boot,
                &file.place,
                |transaction| {
                    transaction.connection.execute_batch(ONE)?;
                    if transaction.now > Timestamp::from_micros(0) {
                        panic!("on purpose");
                    }
                    Ok(())
                },
            )
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_err();
        assert_eq!(file.names(), 0);
        file.run(ONE).unwrap();
    }
}
