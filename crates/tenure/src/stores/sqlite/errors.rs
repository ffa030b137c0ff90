//! What can go wrong with a file, in words: what happened, why, and what to do.

use std::path::Path;

use rusqlite::ErrorCode;
use rustix::io::Errno;
use tenure_core::{Error, ErrorKind};

/// Why a request could not be decided.
#[derive(Debug)]
pub(super) enum Failure {
    /// SQLite failed: the whole transaction is undone.
    Sqlite(rusqlite::Error),
    /// One row makes no sense: the others are not affected.
    Row(&'static str),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// An error of SQLite about `file`.
pub(super) fn of_sqlite(error: &rusqlite::Error, file: &Path) -> Error {
    let (kind, message) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "another program keeps the lock file busy (a stopped process, a backup, an open \
             sqlite3 shell?): end it, or wait",
        ),
        Some(ErrorCode::DiskFull) => (
            ErrorKind::Refused,
            "the disk with the lock file is full: make room",
        ),
        Some(ErrorCode::ReadOnly) => (
            ErrorKind::Refused,
            "the lock file cannot be written to: check its permissions, and whether its disk is \
             mounted read-only",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Configuration,
            "the file is not a SQLite database: name another file, or move this one away",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Refused,
            "the lock file is damaged: when nothing runs that uses it, delete it together with \
             its -wal and -shm files; locks are then free",
        ),
        Some(ErrorCode::CannotOpen) => (
            ErrorKind::Configuration,
            "the lock file cannot be opened: check the path and its permissions",
        ),
        Some(ErrorCode::PermissionDenied) => (
            ErrorKind::Forbidden,
            "no permission to use the lock file: use a file of your own",
        ),
        Some(ErrorCode::SystemIoFailure) => (
            ErrorKind::Unavailable,
            "reading or writing the lock file failed: check the disk",
        ),
        Some(ErrorCode::OutOfMemory) => (ErrorKind::Refused, "SQLite is out of memory"),
        _ => (ErrorKind::Protocol, "SQLite answered something unexpected"),
    };
    Error::new(kind, message)
        .with("file", file.display())
        .because(error.to_string())
}

/// An error of the operating system while doing `what` to `path`.
pub(super) fn of_system(cause: Errno, what: &str, path: &Path) -> Error {
    let (kind, advice) = match cause {
        Errno::ACCESS | Errno::PERM => (
            ErrorKind::Forbidden,
            "; use a file in a folder that belongs to you",
        ),
        Errno::ROFS => (
            ErrorKind::Configuration,
            "; the disk is mounted read-only: choose another place",
        ),
        Errno::NOSPC | Errno::DQUOT => (ErrorKind::Refused, "; the disk is full: make room"),
        Errno::NOTDIR | Errno::EXIST | Errno::NAMETOOLONG | Errno::LOOP | Errno::NOENT => {
            (ErrorKind::Configuration, "; check the path")
        }
        Errno::MFILE | Errno::NFILE => (
            ErrorKind::Refused,
            "; too many files are open: raise the limit (ulimit -n)",
        ),
        _ => (ErrorKind::Unavailable, ""),
    };
    Error::new(kind, format!("cannot {what}{advice}"))
        .with("path", path.display())
        .because(std::io::Error::from(cause))
}

/// A row that makes no sense.
pub(super) fn of_row(what: &'static str, file: &Path) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the lock file contains {what}, which tenure never writes: was it edited by hand?"),
    )
    .with("file", file.display())
}

/// The writer's thread is gone; only a bug can do that.
pub(super) fn of_ended_thread() -> Error {
    Error::new(
        ErrorKind::Closed,
        "the SQLite store's thread has ended unexpectedly: please report this",
    )
}

/// The same error once more, for another request of the same batch.
pub(super) fn again(error: &Error) -> Error {
    let mut copy = Error::new(error.kind(), error.message()).retrying(error.retry());
    for (key, value) in error.context() {
        copy = copy.with(key, value);
    }
    match std::error::Error::source(error) {
        Some(cause) => copy.because(cause.to_string()),
        None => copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(code: i32) -> Error {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        of_sqlite(&error, Path::new("some/locks.db"))
    }

    #[test]
    fn each_failure_of_sqlite_has_its_kind_and_advice() {
        for (code, kind, advice) in [
            (rusqlite::ffi::SQLITE_FULL, ErrorKind::Refused, "make room"),
            (rusqlite::ffi::SQLITE_BUSY, ErrorKind::Unavailable, "wait"),
            (
                rusqlite::ffi::SQLITE_READONLY,
                ErrorKind::Refused,
                "permissions",
            ),
            (
                rusqlite::ffi::SQLITE_NOTADB,
                ErrorKind::Configuration,
                "another file",
            ),
            (
                rusqlite::ffi::SQLITE_CORRUPT,
                ErrorKind::Refused,
                "delete it",
            ),
            (
                rusqlite::ffi::SQLITE_IOERR,
                ErrorKind::Unavailable,
                "check the disk",
            ),
        ] {
            let error = sqlite(code);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(advice), "{error}");
            assert!(error.to_string().contains("some/locks.db"), "{error}");
        }
    }

    #[test]
    fn each_failure_of_the_system_has_its_kind() {
        let kind = |cause| of_system(cause, "create the folder", Path::new("x")).kind();
        assert_eq!(kind(Errno::ACCESS), ErrorKind::Forbidden);
        assert_eq!(kind(Errno::ROFS), ErrorKind::Configuration);
        assert_eq!(kind(Errno::NOSPC), ErrorKind::Refused);
    }

    #[test]
    fn a_copy_says_the_same() {
        let error = sqlite(rusqlite::ffi::SQLITE_FULL);
        assert_eq!(again(&error).to_string(), error.to_string());
        assert_eq!(again(&error).retry(), error.retry());
    }
}
