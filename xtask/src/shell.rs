//! Talking to the person at the terminal and to other programs: headings, timing, running a command.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A failure as one line for the reader: what went wrong and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Failure(line.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Prints a line on stdout. A reader that went away is not our failure, so errors are dropped.
pub(crate) fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}");
    let _ = stdout.flush();
}

/// Prints a complaint on stderr.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", paint("31", &format!("xtask: {line}")));
}

/// Prints a heading that stands out from the output of the tools.
pub(crate) fn heading(text: &str) {
    say(&paint("1", &format!("\n==> {text}")));
}

/// Wraps text in an ANSI style where colours are welcome.
pub(crate) fn paint(style: &str, text: &str) -> String {
    if is_colourful() {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// Runs something and says how long it took.
#[allow(
    clippy::disallowed_methods,
    reason = "times a chore; no lease depends on it"
)]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// The cargo that started us, run at the root of the workspace as a user would run it.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(workspace_root());
    // `cargo run` describes xtask in these. Build scripts that watch them would run again each
    // time somebody changes between `cargo test` and `cargo xtask test`.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    // Said outright, because cargo cannot see a terminal through a pipe of ours.
    command.env(
        "CARGO_TERM_COLOR",
        if is_colourful() { "always" } else { "never" },
    );
    command
}

/// Shows a command and runs it; `Err` when it could not start or did not succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = show(command);
    say(&paint("2", &format!("$ {shown}")));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure(format!("`{shown}` failed ({status})"))),
        Err(error) => Err(Failure(format!("`{shown}` could not start: {error}"))),
    }
}

/// Whether a command starts and succeeds; its output is nobody's business.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A command as one would type it, with the bare name of the program.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask
        .parent()
        .expect("xtask is a folder of the workspace")
        .to_owned()
}

/// Cargo's target folder, wherever the user put it: we run from `<target>/debug/xtask`.
pub(crate) fn target_folder() -> PathBuf {
    let program = std::env::current_exe().ok();
    let folder = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::parent);
    folder.map_or_else(|| workspace_root().join("target"), Path::to_owned)
}

/// On a terminal, unless this is CI or `NO_COLOR` is set.
fn is_colourful() -> bool {
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !is_ci && !no_color && io::stdout().is_terminal()
}
