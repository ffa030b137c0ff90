//! `tenure lab chaos`: what is broken, where plan and history are kept, and what is said at the end.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::FaultKind;
use super::plan::{Extent, Plan};
use super::run::carry_out;
use super::world::Shape;
use crate::Program;
use crate::args::ChaosArgs;
use crate::checker::Verdict;
use crate::servers::{RedisServer, wait};

/// It was not said what to do.
const USAGE: u8 = 64;

/// The plan is none.
const BAD_DATA: u8 = 65;

/// There is no such file.
const NO_INPUT: u8 = 66;

/// There is no redis-server, or the store cannot be reached.
const UNAVAILABLE: u8 = 69;

/// The run could not be carried out, as `sysexits.h` has it.
const BROKEN_OFF: u8 = 70;

/// The folder cannot be written to.
const NOT_WRITTEN: u8 = 73;

/// Runs, says what came of it, and answers with the exit code.
pub(crate) fn command(args: &ChaosArgs, store: Option<&str>, program: &Program) -> u8 {
    match chaos(args, store, program) {
        Ok(code) => code,
        Err(_) if wait::is_interrupted() => {
            anstream::eprintln!("stopped; nothing was judged");
            wait::INTERRUPTED_CODE
        }
        Err(Stopped(code, why)) => {
            anstream::eprintln!("error: {why}");
            code
        }
    }
}

/// With which exit code it stopped, and why.
struct Stopped(u8, String);

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self(BROKEN_OFF, error.to_string())
    }
}

fn chaos(args: &ChaosArgs, store: Option<&str>, program: &Program) -> Result<u8, Stopped> {
    if args.start.is_none() && args.plan.is_none() && store.is_none() {
        let why = "say what to break: --start redis, for example, or --store URL";
        return Err(Stopped(USAGE, why.to_owned()));
    }
    let plan = plan(args)?;
    // What is started here is not that of somebody else.
    let store = store.filter(|_| plan.shape == Shape::Foreign);
    is_there(&plan, store).map_err(|why| Stopped(UNAVAILABLE, why))?;
    wait::notice_interrupts();
    let mut folder = Folder::open(args.keep.as_deref())?;
    plan.write(&folder.path.join("plan.json"))?;
    if !args.json {
        anstream::println!("{}", announcement(&plan, store));
    }
    let verdict = match carry_out(&plan, program, &folder.path, store) {
        Ok(verdict) => verdict,
        Err(error) => {
            if !wait::is_interrupted() {
                folder.keep();
                say_where(&folder.path, program, store);
            }
            return Err(error.into());
        }
    };
    let found = verdict.violations().next().is_some();
    let fails = found || is_toothless(&verdict) || verdict.proves_nothing();
    if fails {
        folder.keep();
    }
    if args.json {
        let mut json = verdict.json();
        json["faults_planned"] = plan.faults.len().into();
        json["kept"] = folder
            .is_kept
            .then(|| folder.path.display().to_string())
            .into();
        anstream::println!("{json}");
        return Ok(u8::from(fails));
    }
    anstream::print!("{}", verdict.text());
    say_left_out(&plan, &verdict);
    if is_toothless(&verdict) {
        anstream::println!(
            "no write was refused although holders were stopped: the run proves nothing"
        );
    }
    if verdict.proves_nothing() {
        anstream::println!("nothing was judged: the run proves nothing");
    }
    if folder.is_kept {
        say_where(&folder.path, program, store);
    } else {
        anstream::println!("plan and history are removed; --keep FOLDER keeps them");
    }
    Ok(u8::from(fails))
}

fn plan(args: &ChaosArgs) -> Result<Plan, Stopped> {
    if let Some(file) = &args.plan {
        let why = |cause: &dyn Display| format!("cannot read the plan {}: {cause}", file.display());
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|cause| Stopped(NO_INPUT, why(&cause)))?;
        return Plan::parse(&text).map_err(|cause| Stopped(BAD_DATA, why(&cause)));
    }
    let shape = args.start.unwrap_or(Shape::Foreign);
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let extent = args.steps.map_or(Extent::For(args.length), Extent::Steps);
    Ok(Plan::draw(shape, seed, extent, &args.faults))
}

/// What is to be broken must be there.
fn is_there(plan: &Plan, store: Option<&str>) -> Result<(), String> {
    match store {
        Some(url) => super::worker::reach(url),
        None if plan.shape.servers() > 0 => {
            RedisServer::is_installed().map_err(|error| error.to_string())
        }
        None => Ok(()),
    }
}

/// What will be done, in one line.
fn announcement(plan: &Plan, store: Option<&str>) -> String {
    let durable = match plan.durable {
        true => ", everything saved at once",
        false => "",
    };
    format!(
        "{}: seed {}, {} faults planned in {} s, {} processes × {} tasks{durable}",
        store.unwrap_or(plan.shape.word()),
        plan.seed,
        plan.faults.len(),
        plan.lasts_ms / 1_000,
        plan.workers,
        plan.tasks,
    )
}

fn say_left_out(plan: &Plan, verdict: &Verdict) {
    let planned = plan.faults.len();
    let done: usize = verdict.counts.faults.values().sum();
    if let Some(left_out @ 1..) = planned.checked_sub(done) {
        anstream::println!(
            "{done} of {planned} planned faults; {left_out} left out, since what they break was broken then"
        );
    }
}

fn say_where(folder: &Path, program: &Program, store: Option<&str>) {
    let (folder, lab) = (folder.display(), program.spoken());
    let on = store.map_or_else(String::new, |url| format!(" --store '{url}'"));
    anstream::println!("history: {folder}/history.jsonl ({lab} check judges it again)");
    anstream::println!("again:   {lab} chaos --plan {folder}/plan.json{on}");
}

/// Processes were stopped often enough for one to have written too late, and no write was refused.
fn is_toothless(verdict: &Verdict) -> bool {
    let pauses = verdict.counts.faults.get(&FaultKind::Pause.word());
    pauses.is_some_and(|count| *count >= MANY_PAUSES) && verdict.counts.writes_refused == 0
}

/// About every third stops a holder whose lock somebody else then takes.
const MANY_PAUSES: usize = 15;

/// Where plan and history are. Dropping it removes it, unless it is to be kept.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn open(wanted: Option<&Path>) -> Result<Self, Stopped> {
        let path = wanted.map_or_else(temporary, Path::to_owned);
        let earlier = ["plan.json", "history.jsonl"].map(|name| path.join(name));
        if let Some(file) = earlier.iter().find(|file| file.exists()) {
            let why = format!(
                "{} is of an earlier run, and stays as it is: choose another folder",
                file.display()
            );
            return Err(Stopped(NOT_WRITTEN, why));
        }
        let made = std::fs::create_dir_all(&path).and_then(|()| path.canonicalize());
        let is_kept = wanted.is_some();
        match made {
            Ok(path) => Ok(Self { path, is_kept }),
            Err(error) => Err(Stopped(
                NOT_WRITTEN,
                format!("cannot write to {}: {error}", path.display()),
            )),
        }
    }

    fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// A folder that nobody has.
fn temporary() -> PathBuf {
    let chance = fastrand::u32(..1 << 24);
    std::env::temp_dir().join(format!("tenure-chaos-{}-{chance:06x}", std::process::id()))
}
