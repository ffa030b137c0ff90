//! Whatever becomes of the lab, its servers and workers are gone afterwards.

use std::fs;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::world::{command, eventually};

#[test]
fn a_lab_that_is_killed_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = command(&["run", "A12"]);
    let mut lab = lab.env("TMPDIR", folder.path()).spawn().unwrap();
    let children = eventually("servers and workers run", || {
        let children = children_of(&lab);
        (children.len() >= 4).then_some(children)
    });
    lab.kill().unwrap();
    lab.wait().unwrap();
    eventually("they are gone", || {
        let left = children
            .iter()
            .filter(|pid| fs::exists(format!("/proc/{pid}/exe")).unwrap_or(false));
        (left.count() == 0).then_some(())
    });
}

#[test]
fn interrupted_it_also_removes_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = command(&["run", "A12"])
        .env("TMPDIR", folder.path())
        .spawn()
        .unwrap();
    let is_used = || fs::read_dir(folder.path()).unwrap().next().is_some();
    eventually("a server has its folder", || is_used().then_some(()));
    kill_process(Pid::from_child(&lab), Signal::INT).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    eventually("nothing is left", || (!is_used()).then_some(()));
}

#[test]
fn chaos_that_is_told_to_stop_leaves_neither_processes_nor_folders_behind() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let mut chaos = command(&["chaos", "--start", "redis", "--for", "10m"])
            .env("TMPDIR", folder.path())
            .spawn()
            .unwrap();
        // A server and three workers.
        let children = eventually("it has begun", || {
            let children = children_of(&chaos);
            (children.len() >= 4).then_some(children)
        });
        kill_process(Pid::from_child(&chaos), signal).unwrap();
        assert_eq!(chaos.wait().unwrap().code(), Some(130));
        eventually("no process is left", || {
            let mut left = children
                .iter()
                .filter(|pid| fs::exists(format!("/proc/{pid}/exe")).unwrap_or(false));
            left.next().is_none().then_some(())
        });
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// All processes whose parent this one is, on whichever thread they were started.
fn children_of(parent: &Child) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.id()));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}
