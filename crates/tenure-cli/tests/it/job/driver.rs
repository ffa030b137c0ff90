//! A `tenure run` whose lease is a script: this test binary, started again by [`super::world`].
//!
//! Supervision reaps every child of its process and listens to its signals, so it cannot share a
//! process with other tests; and a lease that is lost on command needs no store.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_cli::job::{
    self, Boottime, JobPlan, LeaseStatus, LossCause, Notice, OnLost, Orphans, Outcome, Status,
};
use tokio::sync::watch;

/// Where a driver finds its [`Script`].
pub(super) const SCRIPT: &str = "TENURE_TEST_SCRIPT";

/// What a driver runs, and under what lease.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Script {
    /// The socket for commands and events.
    pub(super) control: PathBuf,
    /// A line for `sh -c`.
    pub(super) line: String,
    pub(super) lease_millis: u64,
    pub(super) grace_millis: u64,
    /// `kill`, `warn`, or a signal's name.
    pub(super) on_lost: String,
    pub(super) hold_at_most_millis: Option<u64>,
    /// `kill`, `wait` or `release`.
    pub(super) orphans: String,
    pub(super) foreground: bool,
    /// A file whose `flock` tenure and its guard hold.
    pub(super) lock_file: Option<PathBuf>,
    /// What is started as the guard.
    pub(super) guard_program: PathBuf,
}

/// Not a test: what a driver process does. Without a script there is nothing to do.
#[test]
fn driver() {
    let Ok(script) = std::env::var(SCRIPT) else {
        return;
    };
    job::remember_ignored_signals();
    let script: Script = serde_json::from_str(&script).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let code = runtime.block_on(drive(script));
    std::process::exit(code);
}

async fn drive(script: Script) -> i32 {
    let control = Arc::new(UnixStream::connect(&script.control).unwrap());
    let first = LeaseStatus::valid_until(in_millis(script.lease_millis));
    let (sender, lease) = watch::channel(first);
    let commands = control.clone();
    std::thread::spawn(move || obey(&commands, &sender));
    let say = |line: &str| writeln!(&*control, "{line}").unwrap();
    let mut signals = job::Signals::install().unwrap();
    let (plan, _lock) = plan(&script);
    let reporter = |notice: &Notice| say(&format!("notice {notice}"));
    let end = job::run(plan, &mut signals, lease, &reporter).await;
    let (text, code) = describe(&end.outcome);
    say(&format!("end {text} orphans={}", end.orphans.len()));
    code
}

fn obey(control: &UnixStream, lease: &watch::Sender<LeaseStatus>) {
    for line in BufReader::new(control).lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("renew", millis)) => {
                let valid_until = in_millis(millis.parse().unwrap());
                lease.send_modify(|status| status.valid_until = valid_until);
            }
            Some(("told", how)) => {
                let cause = LossCause::ToldByStore(how.to_owned());
                lease.send_modify(|status| status.lost = Some(cause));
            }
            _ => panic!("no such command: {line}"),
        }
    }
}

fn plan(script: &Script) -> (JobPlan, Option<OwnedFd>) {
    let mut plan = JobPlan::new("/bin/sh", "sh");
    plan.args = vec!["-c".into(), script.line.clone().into()];
    plan.env = vec![(SCRIPT.into(), None)];
    plan.grace = Duration::from_millis(script.grace_millis);
    plan.hold_at_most = script.hold_at_most_millis.map(Duration::from_millis);
    plan.foreground = script.foreground;
    plan.guard_program.clone_from(&script.guard_program);
    plan.on_lost = match script.on_lost.as_str() {
        "kill" => OnLost::Kill,
        "warn" => OnLost::Warn,
        name => OnLost::Signal(job::signal_named(name).unwrap()),
    };
    plan.orphans = match script.orphans.as_str() {
        "kill" => Orphans::Kill,
        "wait" => Orphans::Wait,
        _ => Orphans::Release,
    };
    let lock = script.lock_file.as_ref().map(|path| {
        let file = OwnedFd::from(std::fs::File::create(path).unwrap());
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, exclusive).unwrap();
        file
    });
    plan.keep_open = lock.iter().map(|lock| lock.try_clone().unwrap()).collect();
    (plan, lock)
}

fn describe(outcome: &Outcome) -> (String, i32) {
    let own = |status: &Status| i32::from(status.exit_code());
    match outcome {
        Outcome::Ended(status) => (format!("{status:?}"), own(status)),
        Outcome::Lost { cause, in_time, .. } => {
            let overlap = if *in_time { "" } else { " late" };
            (format!("Lost({cause:?}){overlap}"), 79)
        }
        Outcome::HoldAtMost(status) => (format!("HoldAtMost({status:?})"), 124),
        Outcome::Unguarded(status) => (format!("Unguarded({status:?})"), 70),
        Outcome::NotStarted(error) => {
            (format!("NotStarted({error})"), i32::from(error.exit_code()))
        }
    }
}

fn in_millis(millis: u64) -> Boottime {
    Boottime::now().plus(Duration::from_millis(millis))
}
