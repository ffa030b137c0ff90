//! Runs every example in a small size: green as it is, red without its lock.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test that panics has failed, and says what it saw"
)]

use std::process::Command;

/// Runs an example and says whether it kept its promises.
fn keeps_its_promises(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{program} {arguments:?}\n{said}{complained}");
    // Neither a crash nor a wrong option counts as a broken promise.
    let judged = said.contains("kept  ") || said.contains("BROKEN");
    assert!(judged, "the example did not come to a verdict");
    assert!(complained.is_empty(), "and says nothing but its verdict");
    let status = if said.contains("BROKEN") { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(status));
    output.status.success()
}

/// Damage needs bad luck, which a small size may lack once or twice.
fn breaks_without_its_lock(program: &str, arguments: &[&str]) {
    let arguments = [arguments, &["--without-lock"]].concat();
    let broken = (0..5).any(|_| !keeps_its_promises(program, &arguments));
    assert!(broken, "five runs without the lock did no damage");
}

mod flash_sale {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_flash-sale");
    const SMALL: [&str; 6] = ["--items", "40", "--buyers", "200", "--processes", "4"];

    #[test]
    fn sells_each_item_once() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn oversells_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }

    #[test]
    fn oversells_if_nobody_checks_the_fence() {
        let arguments = [&SMALL[..], &["--without-fence"]].concat();
        let broken = (0..5).any(|_| !keeps_its_promises(PROGRAM, &arguments));
        assert!(broken, "five runs without fences did no damage");
    }

    #[test]
    fn needs_no_lock_with_one_statement() {
        let arguments = [&SMALL[..], &["--atomic"]].concat();
        assert!(keeps_its_promises(PROGRAM, &arguments));
    }
}

mod floor_numbers {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_floor-numbers");
    const SMALL: [&str; 4] = ["--processes", "4", "--writers", "20"];

    #[test]
    fn are_consecutive() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn are_not_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }
}

mod invoices {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_invoices");
    const SMALL: [&str; 4] = ["--processes", "4", "--invoices", "20"];

    #[test]
    fn are_numbered_without_a_gap() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn are_not_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }
}

mod cache_rebuild {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_cache-rebuild");
    const SMALL: [&str; 4] = ["--readers", "200", "--processes", "4"];

    #[test]
    fn loads_no_more_often_than_it_must() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn loads_again_and_again_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }
}

mod nightly_job {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_nightly-job");
    const SMALL: [&str; 2] = ["--spread", "1000"];

    #[test]
    fn is_done_once_by_thirty_machines() {
        assert!(keeps_its_promises(PROGRAM, &SMALL));
    }

    #[test]
    fn is_done_many_times_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &SMALL);
    }
}

mod hot_standby {
    use super::*;

    const PROGRAM: &str = env!("CARGO_BIN_EXE_hot-standby");

    #[test]
    fn leads_after_a_leader_that_was_killed_paused_or_cut_off() {
        assert!(keeps_its_promises(PROGRAM, &[]));
    }

    #[test]
    fn is_no_standby_without_the_lock() {
        breaks_without_its_lock(PROGRAM, &[]);
    }
}

mod on_a_server_that_others_use {
    use super::*;

    /// Whoever was there before, or is there at the same time, uses other names.
    fn keeps_its_promises_twice(program: &str, arguments: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let server = stage::Redis::start(folder.path()).unwrap();
        let url = server.url();
        let arguments = [arguments, &["--store", &url]].concat();
        for _ in 0..2 {
            assert!(keeps_its_promises(program, &arguments));
        }
    }

    #[test]
    fn a_flash_sale() {
        let small = ["--items", "40", "--buyers", "200", "--processes", "4"];
        keeps_its_promises_twice(env!("CARGO_BIN_EXE_flash-sale"), &small);
    }

    #[test]
    fn invoices() {
        let small = ["--processes", "4", "--invoices", "20"];
        keeps_its_promises_twice(env!("CARGO_BIN_EXE_invoices"), &small);
    }

    #[test]
    fn a_nightly_job() {
        let small = ["--machines", "6", "--spread", "200"];
        keeps_its_promises_twice(env!("CARGO_BIN_EXE_nightly-job"), &small);
    }

    #[test]
    fn a_hot_standby() {
        keeps_its_promises_twice(env!("CARGO_BIN_EXE_hot-standby"), &["--ttl", "1000"]);
    }
}

#[test]
fn whoever_takes_too_long_gives_up_and_says_so() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nightly-job"));
    let output = command
        .args(["--spread", "600000", "--limit", "1"])
        .output();
    let output = output.unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        complained,
        "error: not done after 1 s: given up (--limit says how long to wait)\n"
    );
    assert_eq!(output.status.code(), Some(2));
}
