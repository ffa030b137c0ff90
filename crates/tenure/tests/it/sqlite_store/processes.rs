//! Real processes on one file: this test binary, run again with a role to play.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, Signal};
use tenure::core::{Fence, Outcome};

use super::support::{Client, Scratch, granted, owner};
use crate::support::wait::eventually;

/// Dozens of processes on a small machine take their time.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_killed_holder_is_succeeded_at_once() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let mut holder = Process::start("hold", scratch.folder());
    let fence = holder.fence();
    let next = owner();
    let queued = client.queue("a", next).await;
    assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
    holder.kill();
    // Its lease would have lasted a minute; and nobody asks again.
    assert!(client.pushed(next).fence > fence);
    // Our own bell and sign of life stay.
    eventually("tidied up", || (left_in(&scratch) == 2).then_some(()));
}

#[tokio::test]
async fn a_killed_holder_is_noticed_by_whoever_is_next_by_then() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let first = owner();
    let fence = client.take("a", first).await.fence;
    let mut heir = Process::start("hold", scratch.folder());
    heir.line("queued");
    let next = owner();
    client.queue("a", next).await;
    client.release("a", first, fence).await;
    heir.fence();
    heir.kill();
    client.pushed(next);
}

#[tokio::test]
async fn a_hold_lives_on_in_whoever_has_the_descriptor() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let mut holder = Process::start("hold-with-guard", scratch.folder());
    holder.fence();
    let guard = Guard(holder.line("guard").parse().expect("a pid"));
    let next = owner();
    client.queue("a", next).await;
    holder.kill();
    assert!(
        matches!(client.queue("a", next).await, Outcome::Queued { .. }),
        "its guard lives"
    );
    drop(guard);
    client.pushed(next);
}

#[tokio::test]
async fn a_killed_waiter_does_not_hold_up_those_behind_it() {
    let scratch = Scratch::new();
    let client = Client::new(scratch.file()).await;
    let first = owner();
    let fence = client.take("a", first).await.fence;
    let mut waiter = Process::start("hold", scratch.folder());
    waiter.line("queued");
    let next = owner();
    client.queue("a", next).await;
    waiter.kill();
    client.release("a", first, fence).await;
    client.pushed(next);
}

#[test]
fn two_hundred_first_opens_at_once_all_succeed() {
    let scratch = Scratch::new();
    let start = StartingLine::draw(scratch.folder());
    let processes: Vec<_> = (0..200)
        .map(|_| Process::start("open", scratch.folder()))
        .collect();
    drop(start);
    processes.into_iter().for_each(Process::succeed);
}

#[test]
fn fifty_processes_lose_no_update() {
    let scratch = Scratch::new();
    let counter = scratch.folder().join("counter");
    fs::write(&counter, "0 0").expect("written");
    let start = StartingLine::draw(scratch.folder());
    let processes: Vec<_> = (0..50)
        .map(|_| Process::start("count", scratch.folder()))
        .collect();
    drop(start);
    processes.into_iter().for_each(Process::succeed);
    let total = fs::read_to_string(&counter).expect("read");
    assert_eq!(
        total.split_once(' ').expect("two numbers").0,
        (50 * ROUNDS).to_string()
    );
}

const ROUNDS: usize = 10;

/// What the processes of the tests above do; without a role it has nothing to do.
#[tokio::test]
async fn plays_its_role() {
    let (Ok(role), Ok(folder)) = (std::env::var("TENURE_ROLE"), std::env::var("TENURE_FOLDER"))
    else {
        return;
    };
    let folder = Path::new(&folder);
    match role.as_str() {
        "open" => {
            StartingLine::wait(folder);
            let who = owner();
            let client = Client::new(folder.join("locks.db")).await;
            client.take(&format!("of {who}"), who).await;
        }
        "hold" => {
            let client = hold(folder).await;
            wait_for_ever();
            drop(client);
        }
        "hold-with-guard" => {
            let client = hold(folder).await;
            let descriptor = client
                .store
                .liveness_descriptor(&client.inbox)
                .expect("listening");
            tell(&format!("guard {}", spawn_guard(&descriptor)));
            wait_for_ever();
        }
        "count" => {
            StartingLine::wait(folder);
            let client = Client::new(folder.join("locks.db")).await;
            for _ in 0..ROUNDS {
                count(&client, &folder.join("counter")).await;
            }
        }
        unknown => panic!("no such role: {unknown}"),
    }
}

/// Holds `a`, waiting for it if need be.
async fn hold(folder: &Path) -> Client {
    let client = Client::new(folder.join("locks.db")).await;
    let fence = wait_for(&client, || tell("queued now")).await.1;
    tell(&format!("held {fence}"));
    client
}

/// Waits for `a`.
async fn wait_for(client: &Client, queued: impl FnOnce()) -> (tenure::core::OwnerId, Fence) {
    let who = owner();
    let fence = match client.queue("a", who).await {
        Outcome::Queued { .. } => {
            queued();
            client.pushed_within(who, PATIENCE).fence
        }
        outcome => granted(outcome).fence,
    };
    (who, fence)
}

/// Reads the counter, adds one, writes it, all but atomically; fences must grow in that order.
async fn count(client: &Client, file: &Path) {
    let (who, fence) = wait_for(client, || ()).await;
    let text = fs::read_to_string(file).expect("read");
    let (total, last) = text.split_once(' ').expect("two numbers");
    let total: u64 = total.parse().expect("a number");
    assert!(
        fence > last.parse().expect("a fence"),
        "fences grow in the order of the holders"
    );
    std::thread::yield_now();
    fs::write(file, format!("{} {fence}", total + 1)).expect("written");
    assert_eq!(client.release("a", who, fence).await, Outcome::Released);
}

fn left_in(scratch: &Scratch) -> usize {
    let entries = fs::read_dir(scratch.side_folder()).expect("a folder");
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("a name"));
    names.filter(|name| !name.ends_with(".lock")).count()
}

fn tell(line: &str) {
    let mut output = std::io::stdout();
    writeln!(output, "\n{line}")
        .and_then(|()| output.flush())
        .expect("the parent reads");
}

fn wait_for_ever() {
    // Until the parent is gone, so that nothing outlives a failed test.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn spawn_guard(descriptor: &OwnedFd) -> u32 {
    let inherited = rustix::io::FdFlags::empty();
    rustix::io::fcntl_setfd(descriptor, inherited).expect("a descriptor");
    let mut guard = Command::new("sleep");
    guard.arg("100").stdin(Stdio::null()).stdout(Stdio::null());
    guard.spawn().expect("sleep starts").id()
}

/// A process that plays a role; killed when dropped.
struct Process {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(role: &str, folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "sqlite_store::processes::plays_its_role",
                "--nocapture",
            ])
            .env("TENURE_ROLE", role)
            .env("TENURE_FOLDER", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test starts again");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    /// The rest of the next line that begins with `word`.
    fn line(&mut self, word: &str) -> String {
        let lines = (&mut self.output).lines().map(|line| line.expect("text"));
        let mut found = lines.filter_map(|line| {
            let (first, rest) = line.split_once(' ')?;
            (first == word).then(|| rest.to_owned())
        });
        found
            .next()
            .unwrap_or_else(|| panic!("it ended without saying {word:?}"))
    }

    fn fence(&mut self) -> Fence {
        self.line("held").parse().expect("a fence")
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    fn succeed(mut self) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).expect("text");
        assert!(self.child.wait().expect("it ended").success(), "{output}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that is not our child; killed when dropped.
struct Guard(i32);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Processes wait at it until it is dropped, so that they start at once.
struct StartingLine(#[allow(dead_code, reason = "it is the lock that counts")] OwnedFd);

impl StartingLine {
    fn draw(folder: &Path) -> Self {
        let line = Self::open(folder);
        flock(&line, FlockOperation::LockExclusive).expect("nobody else has it");
        Self(line)
    }

    fn wait(folder: &Path) {
        flock(Self::open(folder), FlockOperation::LockShared).expect("its turn comes");
    }

    fn open(folder: &Path) -> OwnedFd {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(folder.join("start"), flags, Mode::RUSR | Mode::WUSR).expect("opens")
    }
}
