//! Opening the file: checks, journal mode, schema and boot, one process at a time.
//!
//! All of it happens under a lock on a side file: among hundreds of simultaneous first opens, some
//! would otherwise meet SQLite while it changes the journal mode, and fail.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tenure_core::{Error, ErrorKind};

use super::boot::{Boot, Epoch};
use super::place::{Folder, Identity, OPEN_LOCK, Place};
use super::{Options, errors, liveness, transaction};

/// A file that is ready for use.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) folder: Arc<Folder>,
    pub(super) identity: Option<Identity>,
    gate: OwnedFd,
    /// How many pages the write-ahead log had after our last commit.
    log_pages: Arc<AtomicI32>,
    /// When to shorten it.
    longest_log: Cell<i32>,
}

/// `tenu`, so that a file can be told from other programs' databases.
const APPLICATION_ID: i32 = 0x7465_6e75;
/// Changes whenever `schema.sql` does.
pub(super) const SCHEMA_VERSION: i32 = 1;
/// Before 3.51.3, a race while the write-ahead log is reset could damage the file.
const OLDEST_SQLITE: i32 = 3_051_003;
/// When the write-ahead log is this long it is moved into the file. Whoever opens the file first
/// reads the log from end to end, so a long one delays every start.
const LONGEST_LOG: i32 = 200;

impl Opened {
    /// Opens or creates the file, and enters the current boot.
    pub(super) fn open(place: &Place, options: &Options, boot: &Boot) -> Result<Self, Error> {
        check_version(rusqlite::version_number())?;
        place.check()?;
        let folder = place.open_folder(options)?;
        let alone = folder.open_lock(OPEN_LOCK)?;
        lock(&alone, &folder)?;
        // Let go of by name, not by closing: a process forked meanwhile has a copy.
        let _turn = Turn(&alone);
        let mut connection = connected(place, &folder, options, boot).inspect_err(|error| {
            if error.kind() == ErrorKind::Configuration {
                folder.remove_if_new();
            }
        })?;
        let log_pages = Arc::new(AtomicI32::new(0));
        let pages = log_pages.clone();
        connection
            .wal_hook(Some(move |_: &mut Wal, count| {
                pages.store(count, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| errors::of_sqlite(&error, &place.file))?;
        Ok(Self {
            connection,
            gate: folder.open_lock("gate.lock")?,
            folder: Arc::new(folder),
            identity: place.identity(),
            log_pages,
            longest_log: Cell::new(LONGEST_LOG),
        })
    }

    /// Waits for this process's turn to write. SQLite's own way to wait is to sleep and try again,
    /// which lets some processes starve among hundreds.
    pub(super) fn pass_gate(&self) -> Result<Turn<'_>, Error> {
        lock(&self.gate, &self.folder)?;
        Ok(Turn(&self.gate))
    }

    /// Moves the write-ahead log into the file if it has grown long.
    pub(super) fn shorten_log(&self) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages < self.longest_log.get() {
            return;
        }
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        let moved = self.connection.query_row(checkpoint, [], |row| {
            Ok(row.get::<_, i32>(1)? == row.get::<_, i32>(2)?)
        });
        // If somebody reads the log just now, it waits for the disk in vain: not again so soon.
        let next = match moved {
            Ok(true) => LONGEST_LOG,
            _ => pages.saturating_add(LONGEST_LOG),
        };
        self.longest_log.set(next);
    }
}

fn connected(
    place: &Place,
    folder: &Folder,
    options: &Options,
    boot: &Boot,
) -> Result<Connection, Error> {
    let wrong = |error: &rusqlite::Error| errors::of_sqlite(error, &place.file);
    place.create_file()?;
    let connection = connect(place, options).map_err(|error| wrong(&error))?;
    prepare(&connection, &place.file)?;
    match Epoch::load(&connection).map_err(|error| wrong(&error))? {
        Some(epoch) if boot.is_of(&epoch) => (),
        // Nobody outlives a boot, so this is no new one: their leases are in force.
        Some(_) if liveness::anybody_lives(folder) => {
            return Err(transaction::elsewhere(place));
        }
        _ => enter(&connection, boot).map_err(|error| wrong(&error))?,
    }
    Ok(connection)
}

/// This process's turn to write; ends when dropped.
pub(super) struct Turn<'a>(&'a OwnedFd);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Cannot fail: the descriptor is open and locked by us.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

fn lock(file: &OwnedFd, folder: &Folder) -> Result<(), Error> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => (),
            Err(cause) => return Err(errors::of_system(cause, "lock a side file", folder.path())),
        }
    }
}

fn check_version(version: i32) -> Result<(), Error> {
    if version >= OLDEST_SQLITE {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Configuration,
        "this program was built with a SQLite older than 3.51.3, which can damage files in WAL \
         mode: build it with a newer one (rusqlite's feature \"bundled\")",
    )
    .with("version", rusqlite::version()))
}

fn connect(place: &Place, options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&place.file, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Otherwise the last process to close the file waits for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Turns an empty file into a lock file; refuses any other program's, and that of a newer tenure.
fn prepare(connection: &Connection, file: &Path) -> Result<(), Error> {
    let wrong = |error: rusqlite::Error| errors::of_sqlite(&error, file);
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    let application: i32 = pragma("application_id").map_err(wrong)?;
    let version: i32 = pragma("user_version").map_err(wrong)?;
    let new = application == 0 && version == 0 && is_empty(connection).map_err(wrong)?;
    if !new && application != APPLICATION_ID {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the file is the database of another program: name another file",
        )
        .with("file", file.display()));
    }
    if version > SCHEMA_VERSION {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!(
                "the lock file was made by a newer tenure (its layout is version {version}, this \
                 program knows {SCHEMA_VERSION}): update this program, or use another file"
            ),
        )
        .with("file", file.display()));
    }
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(wrong)?;
    if mode != "wal" {
        return Err(Error::new(
            ErrorKind::Configuration,
            "the file system of the lock file does not support shared memory, which SQLite's WAL \
             mode needs: put the file on a local disk",
        )
        .with("file", file.display()));
    }
    // Nothing has to survive a power failure, which ends all leases; and fences follow the clock.
    connection
        .execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;")
        .map_err(wrong)?;
    if new {
        create(connection).map_err(wrong)?;
    }
    Ok(())
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {} ; PRAGMA application_id = {APPLICATION_ID}; \
         PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;",
        include_str!("schema.sql"),
    ))
}

fn enter(connection: &Connection, boot: &Boot) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    boot.enter(connection)?;
    connection.execute_batch("COMMIT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_sqlite_is_refused() {
        assert!(check_version(3_051_003).is_ok());
        let error = check_version(3_051_002).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
    }
}
