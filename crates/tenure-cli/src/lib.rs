//! The command line `tenure` as a library: arguments in, exit code out.
//!
//! Not an interface to build on: it exists so that the binary stays thin and tests can drive
//! single parts. Programs use the crate `tenure`.
//!
//! A command line goes through `args` (what was typed), `settings` (what it means) and one file of
//! `commands`; whatever is said on the way is said through `output`.

use std::ffi::OsString;
use std::process::ExitCode;

pub mod args;
pub mod commands;
pub mod config;
pub mod exit;
pub mod job;
pub mod output;
pub mod program;
pub mod session;
pub mod settings;
pub mod store_choice;
pub mod taking;

use args::{Answer, Cli, JsonTarget, ShortHelp};
use exit::Exit;
use output::Output;
use output::codes::Code;
use output::events::{self, End, Events};
use output::failure::Failure;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    // Before arguments and runtime: the guard must be small, quick to start and alone in its process.
    job::become_guard_if_asked();
    job::remember_ignored_signals();
    share_one_heap();
    report_bugs();
    let exit = std::panic::catch_unwind(start).unwrap_or(Exit::Bug);
    exit.into()
}

fn start() -> Exit {
    let output = Output::new(false, false);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    args::color(&arguments).write_global();
    if arguments.len() < 2 {
        return match output.print(ShortHelp::TEXT) {
            Ok(()) => Exit::Success,
            Err(failure) => failure.exit,
        };
    }
    match args::parse(arguments.iter().cloned()) {
        Ok(cli) => execute(cli),
        Err(answer) if answer.asked_for => {
            let _ = output.print(&answer.text);
            answer.exit
        }
        Err(answer) => refuse(&answer, args::json_target(&arguments).as_ref(), output),
    }
}

/// Says what is wrong with the command line, to a person or to whoever reads the events.
fn refuse(answer: &Answer, json: Option<&JsonTarget>, output: Output) -> Exit {
    if let Ok(events) = Events::open(json) {
        let failure = Failure::new(Code::Usage, &answer.what);
        events.end(&End {
            outcome: failure.code.outcome(),
            exit_code: answer.exit.code(),
            error: Some(events::failure(&failure)),
            ..End::default()
        });
    }
    if json != Some(&JsonTarget::Descriptor(2)) {
        output.say(&answer.text);
    }
    answer.exit
}

fn execute(cli: Cli) -> Exit {
    anstream::ColorChoice::write_global(cli.common.color.into());
    let output = Output::new(cli.common.quiet, cli.common.verbose);
    match commands::execute(cli, output) {
        Ok(exit) => exit,
        Err(failure) => {
            output.failure(&failure);
            failure.exit
        }
    }
}

/// The few threads of this program share what memory there is already: a heap of its own for the
/// thread of the SQLite store costs a tenth of a millisecond in fresh pages, at every start.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
fn share_one_heap() {
    // SAFETY: sets a number that malloc reads when a thread asks for its first memory; this is
    // still the only thread.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

#[cfg(not(target_env = "gnu"))]
fn share_one_heap() {}

fn report_bugs() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map_or_else(String::new, |place| format!(" at {place}"));
        let what = panic.payload_as_str().unwrap_or("unknown");
        let version = env!("CARGO_PKG_VERSION");
        Output::new(false, false).failure(
            &Failure::new(Code::Bug, format!("a bug in tenure: {what}"))
                .fact("where", format!("tenure {version}{place}"))
                .help("please report it with this text"),
        );
    }));
}
