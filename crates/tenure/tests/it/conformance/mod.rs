//! Every store runs the whole conformance suite, oracle included: one file per store, by the name
//! of its folder under `src/stores/`.

mod memory;
mod quorum;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::path::Path;

#[test]
fn every_store_is_enrolled() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = package.join("tests/it/conformance");
    let enrolled = std::fs::read_to_string(here.join("mod.rs")).unwrap();
    for entry in std::fs::read_dir(package.join("src/stores")).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_type().unwrap().is_dir() {
            continue;
        }
        let store = entry.file_name().into_string().unwrap();
        let file = here.join(format!("{store}.rs"));
        let test = std::fs::read_to_string(&file)
            .unwrap_or_else(|_| panic!("{store} is not enrolled: write {}", file.display()));
        let line = format!("\nmod {store};\n");
        assert!(enrolled.contains(&line), "{store} is not among the modules");
        assert!(
            test.contains(".assert_all_passed()"),
            "{store} asserts nothing"
        );
    }
}
