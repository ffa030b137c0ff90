//! [`Shelf`]: a cache that the processes of an example share, and [`tally`], which counts among them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::{Outcome, database};

/// Texts by key, each with the fence of whoever wrote it: an older writer comes too late.
#[derive(Debug)]
pub struct Shelf(Mutex<Connection>);

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS shelf (key TEXT PRIMARY KEY, value TEXT, fence INTEGER)";
const READ: &str = "SELECT value FROM shelf WHERE key = ?";
const WRITE: &str = "INSERT INTO shelf VALUES (?1, ?2, ?3)
    ON CONFLICT (key) DO UPDATE SET value = ?2, fence = ?3 WHERE fence <= ?3";

impl Shelf {
    /// The shelf of this folder.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(folder: &Path) -> Outcome<Self> {
        let connection = database(folder)?;
        connection.execute_batch(TABLE)?;
        Ok(Self(Mutex::new(connection)))
    }

    /// What is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, key: &str) -> Outcome<Option<String>> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(connection
            .query_row(READ, [key], |row| row.get(0))
            .optional()?)
    }

    /// Puts something there, unless somebody with a higher fence did.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, key: &str, value: &str, fence: u64) -> Outcome {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connection.execute(WRITE, params![key, value, fence])?;
        Ok(())
    }
}

/// Counts one more of something, in a file; answers how many there are now.
///
/// # Errors
/// If it cannot be written.
pub fn tally(folder: &Path, what: &str) -> Outcome<usize> {
    let file = folder.join(what);
    let mut log = OpenOptions::new().append(true).create(true).open(&file)?;
    log.write_all(b"one more\n")?;
    tallied(folder, what)
}

/// How many there are.
///
/// # Errors
/// If it cannot be read.
pub fn tallied(folder: &Path, what: &str) -> Outcome<usize> {
    let file = folder.join(what);
    if !file.exists() {
        return Ok(0);
    }
    Ok(fs::read_to_string(file)?.lines().count())
}
