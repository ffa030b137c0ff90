//! [`SetClock`]: a wall clock that the lab can set, for one server.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Built from `clockshim/clockshim.c` when the lab was.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clockshim.so"));

/// The wall clock of the processes that are started with its [environment](Self::environment).
#[derive(Debug)]
pub struct SetClock {
    folder: tempfile::TempDir,
}

impl SetClock {
    /// A clock that is right.
    ///
    /// # Errors
    /// The files cannot be written, or this system cannot do it.
    pub fn new() -> io::Result<Self> {
        if SHIM.is_empty() {
            return Err(io::Error::other(
                "the clock of a server can be set on Linux only",
            ));
        }
        let folder = tempfile::Builder::new()
            .prefix("tenure-lab-clock-")
            .tempdir()?;
        let clock = Self { folder };
        fs::write(clock.shim(), SHIM)?;
        fs::write(clock.offset(), 0_i64.to_ne_bytes())?;
        Ok(clock)
    }

    /// What a process must have in its environment.
    #[must_use]
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("LD_PRELOAD".into(), self.shim().into()),
            ("CLOCK_OFFSET_FILE".into(), self.offset().into()),
        ]
    }

    /// From now on the clock is ahead of the right time by so much.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn be_ahead_by(&self, ahead: Duration) -> io::Result<()> {
        self.set(i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX))
    }

    /// From now on the clock is behind the right time by so much.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn be_behind_by(&self, behind: Duration) -> io::Result<()> {
        self.set(i64::try_from(behind.as_micros()).map_or(i64::MIN, |micros| -micros))
    }

    fn set(&self, micros: i64) -> io::Result<()> {
        // In place, since the file is mapped: truncating it would kill whoever reads the clock just then.
        let file = fs::OpenOptions::new().write(true).open(self.offset())?;
        std::os::unix::fs::FileExt::write_all_at(&file, &micros.to_ne_bytes(), 0)
    }

    fn shim(&self) -> PathBuf {
        self.folder.path().join("clockshim.so")
    }

    fn offset(&self) -> PathBuf {
        self.folder.path().join("offset")
    }
}
