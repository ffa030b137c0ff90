//! [`Theirs`]: another process that uses another library on the same servers, driven line by line.
//!
//! The real libraries are installed by `cargo xtask test`, which names them in environment variables;
//! what it cannot provide it reports as not run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::redis_server::RedisServer;

/// A process that uses another library's lock.
pub(crate) struct Theirs {
    library: &'static str,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Theirs {
    /// redis-py's `Lock`, on one server.
    pub(crate) fn python_lock(server: &RedisServer) -> Self {
        Self::python(include_str!("theirs/lock.py"), std::slice::from_ref(server))
    }

    /// redis-py's `Lock` on several servers, as the Redlock page describes it.
    pub(crate) fn python_redlock(servers: &[RedisServer]) -> Self {
        Self::python(include_str!("theirs/redlock.py"), servers)
    }

    /// The npm package `redlock`.
    pub(crate) fn node_redlock(servers: &[RedisServer]) -> Self {
        let folder = provided("TENURE_TEST_NODE_REDLOCK");
        let mut command = Command::new("node");
        command.current_dir(folder);
        command.args(["-e", include_str!("theirs/node/redlock.js"), "--"]);
        Self::start("redlock for Node", command, servers)
    }

    /// redsync, of Go.
    pub(crate) fn redsync(servers: &[RedisServer]) -> Self {
        let program = provided("TENURE_TEST_REDSYNC");
        Self::start("redsync", Command::new(program), servers)
    }

    fn python(program: &str, servers: &[RedisServer]) -> Self {
        let python = std::env::var_os("TENURE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(python);
        command.args(["-c", program]);
        Self::start("the Python package redis", command, servers)
    }

    fn start(library: &'static str, mut command: Command, servers: &[RedisServer]) -> Self {
        let ports = servers.iter().map(|server| server.port().to_string());
        command.args(ports);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process =
            started.unwrap_or_else(|error| panic!("{library} does not start ({error}): {HELP}"));
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self {
            library,
            process,
            input,
            output,
        }
    }

    pub(crate) fn say(&mut self, words: &str) -> String {
        self.tell(words);
        self.hear()
    }

    pub(crate) fn tell(&mut self, words: &str) {
        writeln!(self.input, "{words}").expect("it listens");
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        assert!(!line.is_empty(), "{} ended: {HELP}", self.library);
        line.trim().to_owned()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const HELP: &str = "is it installed? `cargo xtask test` provides it";

fn provided(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set: `cargo xtask test` sets it"));
    path.into()
}
