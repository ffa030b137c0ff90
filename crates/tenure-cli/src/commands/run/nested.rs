//! A run inside a run on the same name: refused, because it would wait for itself, or run under the
//! parent's lock.

use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure::core::Lease;

use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::complaints;
use crate::output::failure::{Failure, Result};
use crate::session::Session;
use crate::settings::environment::Inherited;
use crate::settings::lease::same_store;
use crate::settings::run::RunSettings;
use crate::store_choice::StoreChoice;

/// Refuses, or, with `--inherit`, becomes the command.
pub(super) fn execute(
    settings: &RunSettings,
    inherited: &Inherited,
    choice: StoreChoice,
    output: Output,
) -> Result<Exit> {
    if !settings.inherit {
        return Err(refusal(settings, inherited));
    }
    same_store(&choice, inherited)?;
    let lease = parents_lease(settings, inherited)?;
    super::super::runtime()?.block_on(async {
        let session = Session::open_patiently(choice, settings.lock.wait, output).await?;
        let left = session.left_of(&settings.lock.name, lease).await?;
        left.map(drop)
            .ok_or_else(|| complaints::lost(&settings.lock.name, None))
    })?;
    // In place of this process: the parent supervises the whole group and ends it in time.
    let program = &settings.program;
    let error = Command::new(&program.path)
        .arg0(&program.name)
        .args(&program.arguments)
        .exec();
    let what = format!("cannot execute '{}': {error}", program.path.display());
    Err(Failure::new(Code::CommandNotExecutable, what))
}

fn refusal(settings: &RunSettings, inherited: &Inherited) -> Failure {
    let name = settings.lock.name.as_str();
    let parent = match &inherited.parent_pid {
        Some(pid) if inherited.lock.as_deref() == Some(name) => format!("parent pid {pid}"),
        _ => "a parent process".into(),
    };
    Failure::new(
        Code::Nested,
        format!("{parent} holds {name:?}; this would wait for itself"),
    )
    .help("use --inherit to run under the parent's lock")
}

fn parents_lease(settings: &RunSettings, inherited: &Inherited) -> Result<Lease> {
    let name = settings.lock.name.as_str();
    let lease = inherited
        .lease
        .as_ref()
        .filter(|_| inherited.lock.as_deref() == Some(name));
    lease.and_then(|lease| lease.parse().ok()).ok_or_else(|| {
        Failure::new(
            Code::Nested,
            format!("cannot tell whether {name:?} is still held"),
        )
        .help("--inherit works directly under the `tenure run` that holds the lock")
    })
}
