//! One file for each command: from settings to exit code.

pub mod acquire;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod force_release;
pub mod lab;
pub mod ls;
pub mod man;
pub mod release;
pub mod renew;
pub mod run;
pub mod seq;
pub mod show;

use tokio::runtime::{Builder, Runtime};

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::job::{self, Arrived};
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::settings::environment::Inherited;
use crate::settings::run::RunSettings;
use crate::store_choice::StoreChoice;

/// Does what was asked.
///
/// # Errors
/// Says why it could not be done; nothing has been printed about it yet.
pub fn execute(cli: Cli, output: Output) -> Result<Exit> {
    let store = cli.common.store.as_deref();
    match cli.command {
        Command::Completions { shell } => completions::execute(shell, output),
        Command::Man { page } => man::execute(page.as_deref(), output),
        Command::Lab(args) => Ok(lab::execute(args, store.map(str::to_owned))),
        Command::Run(args) => {
            let json = args.job.json.clone();
            run::execute(json.as_ref(), || RunSettings::new(*args), store, output)
        }
        Command::Elect(args) => {
            let json = args.job.json.clone();
            let settings = || RunSettings::of_election(*args);
            run::execute(json.as_ref(), settings, store, output)
        }
        command => {
            let choice = StoreChoice::resolve(store)?;
            // What it promises may be asked of any store.
            if !matches!(command, Command::Doctor(_)) {
                choice.check_shared()?;
            }
            match command {
                Command::Acquire(_) | Command::Seq(_) => {
                    choice.check_parent(&Inherited::read())?;
                    choice.remark(&output);
                }
                Command::Ls(_)
                | Command::Show(_)
                | Command::ForceRelease(_)
                | Command::Doctor(_) => {
                    choice.remark_on_parent(&Inherited::read(), &output);
                    choice.remark_on_password(&output);
                }
                _ => choice.remark_on_password(&output),
            }
            runtime()?.block_on(with_store(command, choice, output))
        }
    }
}

async fn with_store(command: Command, choice: StoreChoice, output: Output) -> Result<Exit> {
    match command {
        Command::Ls(args) => ls::execute(args, choice, output).await,
        Command::Show(args) => show::execute(args, choice, output).await,
        Command::Acquire(args) => acquire::execute(args, choice, output).await,
        Command::Renew(args) => renew::execute(args, choice, output).await,
        Command::Release(args) => release::execute(args, choice, output).await,
        Command::Check(args) => check::execute(args, choice, output).await,
        Command::ForceRelease(args) => force_release::execute(args, choice, output).await,
        Command::Seq(args) => seq::execute(args, choice, output).await,
        Command::Doctor(args) => doctor::execute(args, choice, output).await,
        Command::Run(_)
        | Command::Elect(_)
        | Command::Lab(_)
        | Command::Completions { .. }
        | Command::Man { .. } => {
            let what = "a command that needs no store came to the store";
            Err(Failure::new(Code::Bug, what))
        }
    }
}

/// A runtime on this very thread: it starts fast, and the job dies with the thread that started it.
fn runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::System, format!("cannot start: {error}")))
}

/// Ends a wait that a signal ended. After ^C a loop in the shell stops only if the signal is what
/// ended us; a signal from elsewhere is reported by the exit code.
fn interrupted(arrived: Arrived) -> Exit {
    if arrived.from_terminal {
        job::die_of(arrived.signal);
    }
    Exit::of_signal(arrived.signal)
}
