//! `tenure lab chaos`: starts the world and the workers, breaks things as planned, lets everybody
//! finish, and asks the judge.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::crew::Crew;
use super::fault::{Fault, FaultKind};
use super::inflict::{Repair, inflict, repair};
use super::plan::{Extent, Plan};
use super::progress::Progress;
use super::resource;
use super::worker::left;
use super::world::{Shape, World};
use crate::Program;
use crate::args::ChaosArgs;
use crate::checker::{Verdict, check};
use crate::history::{History, Recorder, What};
use crate::servers::{Network, wait};

/// The run could not be carried out, as `sysexits.h` has it.
const BROKEN_OFF: u8 = 70;

/// It was not said what to do.
const USAGE: u8 = 64;

/// Runs, says what came of it, and answers with the exit code.
pub(crate) fn command(args: &ChaosArgs, store: Option<&str>, program: &Program) -> u8 {
    match chaos(args, store, program) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("chaos: {error}");
            BROKEN_OFF
        }
    }
}

fn chaos(args: &ChaosArgs, store: Option<&str>, program: &Program) -> io::Result<u8> {
    if args.start.is_none() && args.plan.is_none() && store.is_none() {
        anstream::eprintln!("say what to break: --start redis, for example, or --store URL");
        return Ok(USAGE);
    }
    let plan = plan(args)?;
    // What is started here is not that of somebody else.
    let store = store.filter(|_| plan.shape == Shape::Foreign);
    let place = store.unwrap_or(plan.shape.word());
    let (folder, kept) = match &args.keep {
        Some(folder) => (folder.clone(), true),
        None => (std::env::temp_dir().join(unique()), false),
    };
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let plan_file = folder.join("plan.json");
    plan.write(&plan_file)?;
    if !args.json {
        anstream::println!(
            "{}: seed {}, {} faults in {} s, {} processes × {} tasks{}",
            place,
            plan.seed,
            plan.faults.len(),
            plan.lasts_ms / 1_000,
            plan.workers,
            plan.tasks,
            if plan.durable {
                ", everything saved at once"
            } else {
                ""
            },
        );
    }
    let verdict = carry_out(&plan, program, &folder, store)?;
    let toothless = is_toothless(&verdict);
    let fails = verdict.violations().next().is_some() || toothless || verdict.proves_nothing();
    if args.json {
        anstream::println!("{}", verdict.json());
    } else {
        anstream::print!("{}", verdict.text());
        if toothless {
            anstream::println!(
                "no write was refused although holders were stopped: the run proves nothing"
            );
        }
        if verdict.proves_nothing() {
            anstream::println!("nothing was judged: the run proves nothing");
        }
        if fails || kept {
            say_where(&folder, store);
        }
    }
    if !fails && !kept {
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(u8::from(fails))
}

fn say_where(folder: &Path, store: Option<&str>) {
    let folder = folder.display();
    let on = store.map_or_else(String::new, |url| format!(" --store '{url}'"));
    anstream::println!("history: {folder}/history.jsonl (tenure lab check judges it again)");
    anstream::println!("again:   tenure lab chaos --plan {folder}/plan.json{on}");
}

fn plan(args: &ChaosArgs) -> io::Result<Plan> {
    if let Some(file) = &args.plan {
        return Plan::read(file);
    }
    let shape = args.start.unwrap_or(Shape::Foreign);
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let extent = args.steps.map_or(Extent::For(args.length), Extent::Steps);
    Ok(Plan::draw(shape, seed, extent, &args.faults))
}

/// A name for a folder that nobody has.
fn unique() -> String {
    format!(
        "tenure-chaos-{}-{:06x}",
        std::process::id(),
        fastrand::u32(..1 << 24)
    )
}

/// Processes were stopped often enough for one to have written too late, and no write was refused.
fn is_toothless(verdict: &Verdict) -> bool {
    let pauses = verdict.counts.faults.get(&FaultKind::Pause.word());
    pauses.is_some_and(|count| *count >= MANY_PAUSES) && verdict.counts.writes_refused == 0
}

/// About every third stops a holder whose lock somebody else then takes.
const MANY_PAUSES: usize = 15;

fn carry_out(
    plan: &Plan,
    program: &Program,
    folder: &Path,
    store: Option<&str>,
) -> io::Result<Verdict> {
    let history = folder.join("history.jsonl");
    let _ = std::fs::remove_file(&history);
    let socket = folder.join("resource.sock");
    let _ = std::fs::remove_file(&socket);
    let network = Network::start()?;
    let recorder = Recorder::open(&history, 0)?;
    let mut world = World::start(program, &network, plan, folder, store)?;
    recorder.note(0, What::Run(world.terms(plan.seed)));
    resource::serve(&network, &socket, recorder.clone())?;
    let mut crew = Crew::start(program, plan, &world, folder.to_owned())?;
    let mut progress = Progress::of(&history);
    break_things(plan, &mut world, &mut crew, &recorder, &mut progress)?;
    recorder.note(0, What::Calm);
    crew.drain();
    let limit = Duration::from_millis(world.recovery_ms() * 2);
    if !crew.wait(limit) {
        anstream::eprintln!("workers do not come to an end");
    }
    drop(crew);
    let left = left(&world.direct, Duration::from_millis(world.recovery_ms()));
    recorder.note(0, What::End { left });
    progress.end();
    let history = History::read(&history).map_err(io::Error::other)?;
    Ok(check(&history))
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

/// What is broken now: nothing is broken twice at the same time, and of several servers always a
/// majority works.
#[derive(Default)]
struct Broken {
    workers: HashSet<usize>,
    servers: HashSet<usize>,
    links: HashSet<usize>,
    sentinels: HashSet<usize>,
}

impl Broken {
    fn allows(&self, fault: &Fault, world: &World) -> bool {
        match fault {
            Fault::Kill { worker } | Fault::Pause { worker, .. } => !self.workers.contains(worker),
            Fault::Restart { .. } | Fault::Forget { .. } | Fault::Freeze { .. } => {
                let bearable = world.shape.bearable_losses();
                self.servers.len() < bearable
            }
            Fault::ScriptFlush { server }
            | Fault::ClientKill { server }
            | Fault::FlushAll { server }
            | Fault::ClockStep { server, .. } => !self.servers.contains(server),
            Fault::Cut { link }
            | Fault::Refuse { link, .. }
            | Fault::Delay { link, .. }
            | Fault::Partition { link, .. }
            | Fault::Swallow { link, .. }
            | Fault::Repeat { link, .. } => !self.links.contains(link),
            Fault::FreezeSentinel { .. } => self.sentinels.is_empty(),
        }
    }

    fn add(&mut self, fault: &Fault) {
        match fault {
            Fault::Kill { worker } | Fault::Pause { worker, .. } => self.workers.insert(*worker),
            Fault::Restart { server, .. }
            | Fault::Forget { server, .. }
            | Fault::Freeze { server, .. } => self.servers.insert(*server),
            Fault::Refuse { link, .. }
            | Fault::Delay { link, .. }
            | Fault::Partition { link, .. } => self.links.insert(*link),
            Fault::FreezeSentinel { sentinel, .. } => self.sentinels.insert(*sentinel),
            _ => false,
        };
    }

    fn remove(&mut self, repair: &Repair) {
        match repair {
            Repair::Replace { worker } | Repair::Resume { worker } => self.workers.remove(worker),
            Repair::Start { server, .. } | Repair::Thaw { server } => self.servers.remove(server),
            Repair::ThawSentinel { sentinel } => self.sentinels.remove(sentinel),
            Repair::Accept { link } | Repair::Pass { link, .. } => self.links.remove(link),
        };
    }
}
