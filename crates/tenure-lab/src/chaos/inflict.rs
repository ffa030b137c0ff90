//! Breaks one thing, and says what has to be done later to put it right again.

use std::io;
use std::time::Duration;

use rustix::process::Signal;

use super::crew::Crew;
use super::fault::Fault;
use super::world::World;
use crate::checker::REPAIR;
use crate::history::{self, Memory, Recorder, What};
use crate::servers::RedisServer;

/// What has to be put right.
#[derive(Clone, Debug)]
pub(crate) enum Repair {
    /// Another process takes the place of the one that was killed.
    Replace { worker: usize },
    /// SIGCONT.
    Resume { worker: usize },
    /// The server starts, perhaps without what it had saved.
    Start { server: usize, empty: bool },
    /// SIGCONT.
    Thaw { server: usize },
    /// SIGCONT.
    ThawSentinel { sentinel: usize },
    /// Everybody reaches everybody.
    Join,
    /// New connections are accepted.
    Accept { link: usize },
    /// What waited is delivered, or gone together with its connections.
    Pass { link: usize, cut: bool },
}

/// How long a killed worker's place is empty, in milliseconds.
const VACANT: u64 = 300;

/// Breaks it, writes that down, and answers what to put right and when.
pub(crate) fn inflict(
    fault: &Fault,
    world: &mut World,
    crew: &mut Crew,
    recorder: &Recorder,
) -> io::Result<Option<(u64, Repair)>> {
    let (breaks, memory) = world.consequences(fault.kind());
    let mut note = history::Fault {
        kind: fault.kind().word(),
        detail: serde_json::to_string(fault).unwrap_or_default(),
        breaks,
        kills: None,
        memory,
    };
    if let Fault::Kill { worker } = fault {
        note.kills = Some(crew.process(*worker));
    }
    // Before it happens: nothing that follows from it can be written down earlier.
    recorder.note(0, What::Fault(note));
    Ok(match *fault {
        Fault::Kill { worker } => {
            crew.kill(worker);
            Some((VACANT, Repair::Replace { worker }))
        }
        Fault::Pause { worker, ms } => {
            crew.signal(worker, Signal::STOP);
            Some((ms, Repair::Resume { worker }))
        }
        Fault::Restart { server, ms } => {
            world.servers[server].kill();
            let empty = false;
            Some((ms, Repair::Start { server, empty }))
        }
        Fault::Forget { server, ms } => {
            world.servers[server].kill();
            let empty = true;
            Some((ms, Repair::Start { server, empty }))
        }
        Fault::Freeze { server, ms } => {
            world.servers[server].pause();
            Some((ms, Repair::Thaw { server }))
        }
        Fault::FreezeSentinel { sentinel, ms } => {
            world.sentinels[sentinel].pause();
            Some((ms, Repair::ThawSentinel { sentinel }))
        }
        Fault::CutOff { worker, server, ms } => {
            world.cut_off(server, vec![crew.pid(worker)]);
            Some((ms, Repair::Join))
        }
        Fault::Split { server, worker, ms } => {
            world.split(server, worker.map(|it| crew.pid(it)).into_iter().collect());
            Some((ms, Repair::Join))
        }
        Fault::Cut { link } => {
            world.links[link].cut();
            None
        }
        Fault::Refuse { link, ms } => {
            world.links[link].refuse(true);
            world.links[link].cut();
            Some((ms, Repair::Accept { link }))
        }
        Fault::Delay { link, way, ms } => {
            world.links[link].hold(way);
            let cut = false;
            Some((ms, Repair::Pass { link, cut }))
        }
        Fault::Partition { link, way, ms } => {
            world.links[link].hold(way);
            let cut = true;
            Some((ms, Repair::Pass { link, cut }))
        }
        Fault::Swallow { link, way } => {
            world.links[link].swallow(way);
            None
        }
        Fault::Repeat { link, way } => {
            world.links[link].repeat(way);
            None
        }
        Fault::ScriptFlush { server } => said(&world.servers[server], &["SCRIPT", "FLUSH"]),
        Fault::ClientKill { server } => {
            let words = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
            said(&world.servers[server], &words)
        }
        Fault::FlushAll { server } => said(&world.servers[server], &["FLUSHALL"]),
        Fault::ClockStep { server, ms } => {
            let (clock, ahead) = &mut world.clocks[server];
            *ahead += ms;
            let by = Duration::from_millis(ahead.unsigned_abs());
            match *ahead < 0 {
                true => clock.be_behind_by(by)?,
                false => clock.be_ahead_by(by)?,
            }
            None
        }
    })
}

/// Puts it right.
pub(crate) fn repair(
    repair: &Repair,
    world: &mut World,
    crew: &mut Crew,
    recorder: &Recorder,
) -> io::Result<()> {
    recorder.note(
        0,
        What::Fault(history::Fault {
            kind: REPAIR.to_owned(),
            detail: format!("{repair:?}"),
            breaks: Vec::new(),
            kills: None,
            memory: Memory::Kept,
        }),
    );
    match *repair {
        Repair::Replace { worker } => crew.replace(worker)?,
        Repair::Resume { worker } => crew.signal(worker, Signal::CONT),
        Repair::Start { server, empty } => {
            if empty {
                forget(&world.servers[server])?;
            }
            world.servers[server].restart()?;
        }
        Repair::Thaw { server } => world.servers[server].resume(),
        Repair::ThawSentinel { sentinel } => world.sentinels[sentinel].resume(),
        Repair::Join => world.join(),
        Repair::Accept { link } => world.links[link].refuse(false),
        Repair::Pass { link, cut } => {
            if cut {
                world.links[link].cut();
            }
            world.links[link].pass();
        }
    }
    Ok(())
}

/// A server that is down or hangs is not told.
fn said(server: &RedisServer, words: &[&str]) -> Option<(u64, Repair)> {
    let _ = server.command(words);
    None
}

/// Removes what a server has saved, but not who it is in a cluster.
fn forget(server: &RedisServer) -> io::Result<()> {
    for entry in std::fs::read_dir(server.folder())? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("appendonly") || name.ends_with(".rdb") {
            let path = entry.path();
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(path)?,
                false => std::fs::remove_file(path)?,
            }
        }
    }
    Ok(())
}
