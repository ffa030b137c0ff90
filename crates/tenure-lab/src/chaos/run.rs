//! One run: starts the world and the workers, breaks things as planned, lets everybody finish, and asks
//! the judge.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::broken::Broken;
use super::crew::Crew;
use super::fault::Fault;
use super::inflict::{Repair, inflict, repair};
use super::plan::Plan;
use super::progress::Progress;
use super::resource;
use super::worker::left;
use super::world::World;
use crate::Program;
use crate::checker::{Verdict, check};
use crate::history::{History, Recorder, What};
use crate::servers::{Network, wait};

/// Carries out the plan in `folder`, where the history stays.
pub(crate) fn carry_out(
    plan: &Plan,
    program: &Program,
    folder: &Path,
    store: Option<&str>,
) -> io::Result<Verdict> {
    let history = folder.join("history.jsonl");
    let _ = std::fs::remove_file(&history);
    // Not in the folder: the path of a socket must be short.
    let sockets = tempfile::Builder::new().prefix("tenure-lab-").tempdir()?;
    let socket = sockets.path().join("resource.sock");
    let network = Network::start()?;
    let recorder = Recorder::open(&history, 0)?;
    let mut world = World::start(program, &network, plan, folder, store)?;
    recorder.note(0, What::Run(world.terms(plan.seed)));
    resource::serve(&network, &socket, recorder.clone())?;
    let mut crew = Crew::start(program, plan, &world, &history, &socket)?;
    let mut progress = Progress::of(&history);
    break_things(plan, &mut world, &mut crew, &recorder, &mut progress)?;
    recorder.note(0, What::Calm);
    crew.drain();
    let limit = Duration::from_millis(world.recovery_ms() * 2);
    if !crew.wait(limit) {
        go_on()?;
        anstream::eprintln!("workers do not come to an end");
    }
    drop(crew);
    let left = left(&world.direct, Duration::from_millis(world.recovery_ms()));
    go_on()?;
    recorder.note(0, What::End { left });
    drop(progress);
    let history = History::read(&history).map_err(io::Error::other)?;
    Ok(check(&history))
}

/// Not if somebody pressed ^C.
fn go_on() -> io::Result<()> {
    match wait::is_interrupted() {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// Something to do, and when.
enum Due<'a> {
    Break(&'a Fault),
    Repair(Repair),
}

fn break_things(
    plan: &Plan,
    world: &mut World,
    crew: &mut Crew,
    recorder: &Recorder,
    progress: &mut Progress,
) -> io::Result<()> {
    let start = wait::now();
    let mut agenda: Vec<(u64, Due<'_>)> = plan
        .faults
        .iter()
        .map(|planned| (planned.at_ms, Due::Break(&planned.fault)))
        .collect();
    let mut broken = Broken::default();
    loop {
        go_on()?;
        // The last is the next one.
        agenda.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let next = agenda.last().map_or(plan.lasts_ms, |(at, _)| *at);
        let elapsed = wait::now().since(start);
        progress.say(elapsed, "");
        let left = Duration::from_millis(next).saturating_sub(elapsed);
        if !left.is_zero() {
            wait::pass(left.min(Duration::from_millis(100)));
            continue;
        }
        let Some((at, due)) = agenda.pop() else {
            return Ok(());
        };
        match due {
            Due::Break(fault) if broken.allows(fault, world) => {
                progress.say(elapsed, &fault.kind().word());
                if let Some((after, repair)) = inflict(fault, world, crew, recorder)? {
                    broken.add(fault);
                    agenda.push((at + after, Due::Repair(repair)));
                }
            }
            Due::Break(_) => {}
            Due::Repair(it) => {
                repair(&it, world, crew, recorder)?;
                broken.remove(&it);
            }
        }
    }
}
