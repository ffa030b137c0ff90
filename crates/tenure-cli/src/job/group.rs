//! The processes of a job: signalling them, finding out which of them live, and reaping.
//!
//! Only members of the job's process group are seen. A descendant that leaves the group (`setsid`,
//! `setpgid`) is out of reach.

use std::path::Path;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};

use super::plan::Status;

/// Whom signals for the job go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The whole process group with this leader.
    Group(Pid),
    /// One process: the group is not the job's own.
    Process(Pid),
}

impl Target {
    /// The process that was started.
    pub(crate) fn leader(self) -> Pid {
        match self {
            Self::Group(pid) | Self::Process(pid) => pid,
        }
    }

    /// Sends `signal`. That nobody is there any more is not an error; that somebody may not be
    /// signalled (a set-user-id program) cannot be helped.
    pub(crate) fn send(self, signal: Signal) {
        let leader_is_elsewhere = match self {
            Self::Group(pgid) => {
                let _ = kill_process_group(pgid, signal);
                getpgid(Some(pgid)).is_ok_and(|group| group != pgid)
            }
            Self::Process(_) => true,
        };
        // Its number is its own as long as nobody but us can reap it.
        if leader_is_elsewhere {
            let _ = kill_process(self.leader(), signal);
        }
    }

    /// Members that live, without the leader. Empty for a single process.
    pub(crate) fn living_followers(self) -> Vec<Pid> {
        let Self::Group(leader) = self else {
            return Vec::new();
        };
        let mut members = living_members(leader);
        members.retain(|pid| *pid != leader);
        members
    }
}

/// The living members of a process group: zombies do not count, except one whose other threads run.
pub(crate) fn living_members(pgid: Pid) -> Vec<Pid> {
    if test_kill_process_group(pgid) == Err(Errno::SRCH) {
        return Vec::new();
    }
    let in_group = |process: &Process| process.group == pgid && process.lives;
    all_processes().filter(in_group).map(|it| it.pid).collect()
}

/// Whether another living process shares our own process group.
pub(crate) fn own_group_has_others() -> bool {
    let own = getpid();
    living_members(rustix::process::getpgrp())
        .iter()
        .any(|pid| *pid != own)
}

/// The children of this process, dead ones included; a subreaper's adopted ones, too.
///
/// No process of the job can live without being, or descending from, one of them.
pub(crate) fn own_children() -> Vec<Pid> {
    listed_children().unwrap_or_else(|| {
        let own = getpid();
        let is_child = |process: &Process| process.parent == Some(own);
        all_processes().filter(is_child).map(|it| it.pid).collect()
    })
}

/// What became of a child, without reaping it if it has ended.
pub(crate) fn peek_ended(pid: Pid) -> Option<Status> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), options).ok()??;
    Some(match status.terminating_signal() {
        Some(signal) => Status::Signalled(signal),
        None => Status::Exited(status.exit_status().unwrap_or(0)),
    })
}

/// The signal that has stopped a child since the last call.
pub(crate) fn take_stopped(pid: Pid) -> Option<Signal> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(pid), options).ok()??;
    Signal::from_named_raw(status.stopping_signal()?)
}

/// Reaps a child if it has ended.
pub(crate) fn reap(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = waitid(WaitId::Pid(pid), options);
}

/// Reaps a child that has ended or is about to: waits for it.
pub(crate) fn reap_dying(pid: Pid) {
    while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).is_err_and(|error| error == Errno::INTR) {
    }
}

struct Process {
    pid: Pid,
    parent: Option<Pid>,
    group: Pid,
    lives: bool,
}

/// The kernel's own list, a hundred times cheaper than a look at every process. Absent on kernels
/// built without it.
fn listed_children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let list = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        children.extend(list.split_ascii_whitespace().filter_map(parse_pid));
    }
    Some(children)
}

fn all_processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = parse_pid(entry.file_name().to_str()?)?;
        read_process(pid, &entry.path())
    })
}

fn read_process(pid: Pid, folder: &Path) -> Option<Process> {
    let stat = std::fs::read(folder.join("stat")).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

/// Takes the fields after the name, which may itself contain anything, parentheses included.
fn parse_stat(pid: Pid, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Process {
        pid,
        parent: parse_pid(fields.get(1)?),
        group: parse_pid(fields.get(2)?)?,
        // A leader thread that has ended looks like a zombie while the other threads run on.
        lives: !matches!(state, "Z" | "X" | "x") || threads > 1,
    })
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 0 0";

    fn parse(stat: &str) -> Process {
        parse_stat(Pid::from_raw(9).unwrap(), stat).unwrap()
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let process = parse(&format!("9 (a) Z 1 (b) S 1 {REST}"));
        assert!(process.lives);
        assert_eq!(process.group, Pid::from_raw(7).unwrap());
    }

    #[test]
    fn a_zombie_does_not_live_unless_it_has_running_threads() {
        assert!(!parse(&format!("9 (a) Z 1 {REST}")).lives);
        let threads = REST.replace("20 0 1 0", "20 0 2 0");
        assert!(parse(&format!("9 (a) Z 1 {threads}")).lives);
    }

    #[test]
    fn this_process_is_a_living_member_of_its_group() {
        assert!(living_members(rustix::process::getpgrp()).contains(&getpid()));
    }
}
