//! What `tenure doctor` is told about a file.

use rusqlite::Connection;
use tenure_core::{Error, Finding, Severity};

use super::boot::Boot;
use super::open::Opened;
use super::place::Place;
use super::{errors, filesystem};

/// Looks at an open file.
pub(super) fn look(opened: &Opened, place: &Place, boot: &Boot) -> Result<Vec<Finding>, Error> {
    let wrong = |error: rusqlite::Error| errors::of_sqlite(&error, &place.file);
    let connection = &opened.connection;
    let size = pragma(connection, "page_count").map_err(wrong)?
        * pragma(connection, "page_size").map_err(wrong)?;
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(wrong)?;
    let (names, holders, waiters) = counts(connection).map_err(wrong)?;
    let kind = place.filesystem()?;
    Ok(vec![
        fine(
            "scope",
            "excludes processes of this machine that use the same file".to_owned(),
        ),
        fine("file", format!("{} ({size} bytes)", place.file.display())),
        fine("side folder", opened.folder.path().display().to_string()),
        Finding {
            severity: match filesystem::check(kind, false) {
                Ok(()) => Severity::Fine,
                Err(_) => Severity::Warning,
            },
            subject: "file system".to_owned(),
            detail: match filesystem::check(kind, false) {
                Ok(()) => filesystem::name_of(kind),
                Err(error) => format!("{}: {}", filesystem::name_of(kind), error.message()),
            },
        },
        fine(
            "SQLite",
            format!("{}, journal mode {mode}", rusqlite::version()),
        ),
        damage(connection).map_err(wrong)?,
        fine("boot", format!("{} (leases end with it)", boot.id())),
        fine(
            "in use",
            format!("holds: {holders}, waiters: {waiters}, names known: {names}"),
        ),
    ])
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn counts(connection: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let sql = "SELECT (SELECT count(*) FROM lock), (SELECT count(*) FROM holder), \
               (SELECT count(*) FROM waiter)";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

fn damage(connection: &Connection) -> rusqlite::Result<Finding> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if answer == "ok" {
        return Ok(fine("integrity", "SQLite finds no damage".to_owned()));
    }
    Ok(Finding {
        severity: Severity::Danger,
        subject: "integrity".to_owned(),
        detail: format!(
            "{answer}: when nothing runs that uses the file, delete it together with its -wal and \
             -shm files"
        ),
    })
}

fn fine(subject: &str, detail: String) -> Finding {
    Finding {
        severity: Severity::Fine,
        subject: subject.to_owned(),
        detail,
    }
}
