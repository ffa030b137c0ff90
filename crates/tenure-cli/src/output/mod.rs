//! Everything that tenure says: the only place that writes to stdout or stderr.

pub mod codes;
pub mod complaints;
pub mod events;
pub mod failure;
pub mod human;
pub mod secret;
pub mod table;
pub mod view;
pub mod waiting;

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use self::codes::Code;
use self::failure::{Failure, Result};

/// How talkative to be, and whether a person is watching.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    quiet: bool,
    verbose: bool,
    terminal: bool,
    silenced: bool,
}

impl Output {
    /// `-q` and `-v` as typed; whether stderr is a terminal is looked up once.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        Self {
            quiet,
            verbose,
            terminal: io::stderr().is_terminal(),
            silenced: false,
        }
    }

    /// The same, but saying nothing: events on stderr tell the story.
    #[must_use]
    pub fn silenced(self) -> Self {
        Self {
            quiet: true,
            verbose: false,
            terminal: false,
            silenced: true,
        }
    }

    /// Whether stderr is a terminal.
    pub fn on_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether not even errors are wanted here.
    pub fn is_silenced(&self) -> bool {
        self.silenced
    }

    /// Whether only errors are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What the user asked to be printed, on stdout. A reader that has gone away is no failure.
    ///
    /// # Errors
    /// If stdout cannot be written, a full disk for example.
    pub fn print(&self, text: &str) -> Result<()> {
        let mut stdout = anstream::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
            _ => Ok(()),
        }
    }

    /// What somebody must get, on stdout: a reader that has gone away is a failure.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn hand_over(&self, text: &str) -> Result<()> {
        let mut stdout = anstream::stdout().lock();
        writeln!(stdout, "{text}")
            .and_then(|()| stdout.flush())
            .map_err(|error| unwritable(&error))
    }

    /// A value as one line of JSON, on stdout.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<()> {
        let text = serde_json::to_string(value);
        self.print(&text.map_err(|error| Failure::new(Code::Bug, error.to_string()))?)
    }

    /// A remark for a person at a terminal, in grey; nobody else sees it.
    pub fn hint(&self, text: &str) {
        if self.terminal && !self.quiet {
            let dim = Style::new().dimmed();
            self.line(&format!("{dim}tenure: {text}{dim:#}"));
        }
    }

    /// Something that the user should know although all went well enough.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.line(&format!("tenure: {text}"));
        }
    }

    /// Something that is going wrong.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            let yellow = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
            self.line(&format!("{yellow}tenure: {text}{yellow:#}"));
        }
    }

    /// What only `-v` wants to know.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.line(&format!("tenure: {text}"));
        }
    }

    /// An error; the only thing that `-q` does not hide.
    pub fn failure(&self, failure: &Failure) {
        self.line(&failure.to_string());
    }

    /// A finished text on stderr, whatever `-q` says: a usage error for example.
    pub fn say(&self, text: &str) {
        self.line(text);
    }

    // Nothing can be done about a stderr that is gone, and the job matters more.
    fn line(&self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::new(Code::System, format!("cannot write to stdout: {error}"))
}
