//! The lab: locks are broken here on purpose, with real processes and real servers, and what happened
//! is shown and judged.
//!
//! - `anomalies`: one file for each thing that goes wrong with locks, a naive algorithm and ours under
//!   the same fault, told as a story with a timeline.
//! - `history` and `checker`: what processes write down while they run, and the pure judgement of it.
//! - `chaos`: random faults from a seed against every shape of store.
//! - `stage`, `worker` and `timeline`: with what a story is told, who acts in it, what is written down.
//! - `report`: the timeline on a terminal and as an HTML page.
//! - `servers`: the servers and the network between, started on free ports in temporary folders.
//!
//! Not an interface to build on: it is the command `tenure lab`, apart from its binary.

mod anomalies;
pub mod args;
pub mod chaos;
pub mod checker;
pub mod history;
pub mod program;
mod report;
mod run;
pub mod servers;
mod stage;
mod timeline;
mod worker;

pub use args::LabArgs;
pub use program::Program;

use args::LabCommand;

/// Does what was asked and returns the exit code; `program` is how to start this very program again,
/// since everybody who takes part is a process of its own.
pub fn execute(args: LabArgs, program: &Program) -> u8 {
    let store = args.store;
    match args.command {
        LabCommand::List => run::list(),
        LabCommand::Run(args) => run::execute(&args, program),
        LabCommand::Worker(args) => worker::execute(&args),
        LabCommand::Check(args) => checker::command(&args),
        LabCommand::Chaos(args) => chaos::command(&args, store.as_deref(), program),
        LabCommand::ChaosWorker(args) => chaos::worker(&args),
        LabCommand::Launch { parent, command } => program::launch(parent, &command),
    }
}
