//! The harness's own tests, which are written in Python as it is.

#![allow(missing_docs, reason = "tests are read, not linked to")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_harness_passes_its_own_tests() {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let python = std::env::var_os("TENURE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    // -B: no compiled files beside the sources.
    let done = Command::new(python)
        .args([
            "-B", "-m", "unittest", "discover", "-t", ".", "-s", "harness",
        ])
        .current_dir(peers)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(!said.contains("Ran 0 tests"), "{said}");
}
