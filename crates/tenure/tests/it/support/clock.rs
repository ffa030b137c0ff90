//! A redis-server whose wall clock a test can set, and nobody else's: the lab's shim, compiled with the
//! system's C compiler and loaded into that one process.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::redis_server::RedisServer;

/// A running redis-server with a clock of its own.
#[derive(Debug)]
pub(crate) struct ClockedServer {
    server: RedisServer,
    /// By how many microseconds its clock is ahead.
    offset: File,
    _folder: tempfile::TempDir,
}

impl ClockedServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("offset");
        let offset = File::create(&path).expect("a file of ours");
        offset.set_len(8).expect("a file of ours");
        let server = RedisServer::start_in(vec![
            ("LD_PRELOAD", shim().to_owned()),
            ("CLOCK_OFFSET_FILE", path),
        ]);
        let clocked = Self {
            server,
            offset,
            _folder: folder,
        };
        // A shim that does nothing would let every test of it pass.
        let before = clocked.seconds();
        clocked.set(3_600);
        let ahead = clocked.seconds().saturating_sub(before);
        assert!(ahead > 3_000, "the clock of the server cannot be set");
        clocked.set(0);
        clocked
    }

    /// From now on its wall clock is this many seconds ahead of the true time, or behind it.
    pub(crate) fn set(&self, seconds: i64) {
        let micros = (seconds * 1_000_000).to_ne_bytes();
        let written = self.offset.write_all_at(&micros, 0);
        written.expect("a file of ours");
    }

    fn seconds(&self) -> u64 {
        let time = self.server.command(&["TIME"]);
        let seconds = time.lines().next().expect("seconds and microseconds");
        seconds.parse().expect("a number")
    }
}

impl Deref for ClockedServer {
    type Target = RedisServer;

    fn deref(&self) -> &RedisServer {
        &self.server
    }
}

/// The compiled shim; built once per run.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tenure-lab/clockshim/clockshim.c"
        );
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join(format!("clockshim-{}.so", std::process::id()));
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(&library)
            .arg(source)
            .status()
            .expect("a C compiler (cc)");
        assert!(built.success(), "the clock shim does not compile");
        library
    })
}
