//! `tenure lab list` and `tenure lab run`: what was asked for, what is printed and what is written. `play.rs`
//! plays, `verdict.rs` concludes.

mod play;
mod verdict;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

pub(crate) use play::{Play, Shown};
pub(crate) use verdict::Verdict;

use crate::anomalies::{self, Anomaly};
use crate::args::RunArgs;
use crate::program::Program;
use crate::report;
use crate::servers::{RedisServer, wait};

/// Exit codes: everything as described; something not; not understood; there is no redis-server; the page
/// cannot be written.
const AS_DESCRIBED: u8 = 0;
const NOT_AS_DESCRIBED: u8 = 1;
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const NOT_WRITTEN: u8 = 73;

/// Prints one line for each anomaly.
pub(crate) fn list() -> u8 {
    let mut out = anstream::stdout().lock();
    for anomaly in anomalies::ALL {
        // Whoever does not read on, has read enough.
        let _ = writeln!(out, "{:4} {}", anomaly.id, anomaly.title);
    }
    AS_DESCRIBED
}

/// Plays what was asked for, prints it and returns the exit code.
pub(crate) fn execute(args: &RunArgs, program: &Program) -> u8 {
    match run(args, program) {
        Ok(code) => code,
        Err((code, why)) => {
            anstream::eprintln!("error: {why}");
            code
        }
    }
}

/// What cannot be done is told before the first play.
fn run(args: &RunArgs, program: &Program) -> Result<u8, (u8, String)> {
    let chosen = choose(args, program).map_err(|why| (USAGE, why))?;
    RedisServer::is_installed().map_err(|error| (UNAVAILABLE, error.to_string()))?;
    let page = args.report.as_deref().map(Page::open).transpose();
    let page = page.map_err(|why| (NOT_WRITTEN, why))?;
    wait::notice_interrupts();
    let shown = play::play_all(&chosen, args, program);
    if wait::is_interrupted() {
        anstream::eprintln!("stopped; nothing was concluded");
        return Ok(wait::INTERRUPTED_CODE);
    }
    // Whoever does not read on, has read enough.
    let _ = print(&shown, args.all);
    if let Some(page) = page {
        let text = report::page(&shown);
        let path = page.write(&text).map_err(|why| (NOT_WRITTEN, why))?;
        anstream::println!("report: {path}");
    }
    let fine = shown.iter().all(Shown::is_as_described);
    Ok(if fine { AS_DESCRIBED } else { NOT_AS_DESCRIBED })
}

/// The whole story of each; of all of them only what is concluded, and the story of those that went
/// another way.
fn print(shown: &[Shown], only_lines: bool) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    for shown in shown {
        if only_lines && shown.is_as_described() {
            report::show_line(&mut out, shown)?;
        } else {
            report::show(&mut out, shown)?;
        }
    }
    if shown.len() > 1 {
        let fine = shown.iter().filter(|shown| shown.is_as_described()).count();
        let all = shown.len();
        writeln!(
            out,
            "\n{fine} of {all} as described: the naive lock fails, tenure does not"
        )?;
    }
    Ok(())
}

fn choose(args: &RunArgs, program: &Program) -> Result<Vec<&'static Anomaly>, String> {
    let lab = program.spoken();
    if args.all {
        return Ok(anomalies::ALL.to_vec());
    }
    if args.anomalies.is_empty() {
        return Err(format!(
            "say what to play: `{lab} run A3`, for example, or `{lab} run --all`; `{lab} list` lists them"
        ));
    }
    let unknown = |id: &String| format!("there is no anomaly '{id}'; `{lab} list` lists them");
    let find = |id: &String| anomalies::find(id).ok_or_else(|| unknown(id));
    args.anomalies.iter().map(find).collect()
}

/// The file of the report, to which can be written.
struct Page<'a> {
    path: &'a Path,
}

impl<'a> Page<'a> {
    /// Leaves nothing behind that was not there: whoever is stopped at once does not clean up.
    fn open(path: &'a Path) -> Result<Self, String> {
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).open(path);
        let tried = opened.and_then(|_| {
            if is_new {
                fs::remove_file(path)
            } else {
                Ok(())
            }
        });
        match tried {
            Ok(()) => Ok(Self { path }),
            Err(error) => Err(format!("cannot write {}: {error}", path.display())),
        }
    }

    /// Answers where it is.
    fn write(self, text: &str) -> Result<String, String> {
        let written = fs::write(self.path, text);
        let shown = self.path.canonicalize();
        let shown = shown.as_deref().unwrap_or(self.path).display().to_string();
        match written {
            Ok(()) => Ok(shown),
            Err(error) => Err(format!("cannot write {shown}: {error}")),
        }
    }
}
