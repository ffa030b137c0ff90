//! Whatever becomes of the lab, its servers and workers are gone afterwards.

use std::fs;
use std::process::Child;

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
    let pid = rustix::process::Pid::from_child(&lab);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    eventually("nothing is left", || (!is_used()).then_some(()));
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
