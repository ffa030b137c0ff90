//! The table of edge cases must not name tests that are gone.

use std::path::Path;

#[test]
fn every_test_that_the_table_names_exists() {
    let table = include_str!("EDGE_CASES.md");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut named = 0;
    for path in table.split('`').filter(|text| text.contains("::")) {
        let mut parts: Vec<_> = path.split("::").collect();
        let test = parts.pop().expect("it contains ::");
        let found = sources(&folder, &parts)
            .iter()
            .any(|source| source.contains(&format!("fn {test}(")));
        assert!(found, "{path} is in the table but not among the tests");
        named += 1;
    }
    assert!(named > 50, "{named}");
    let rows = (1..=44).filter(|number| table.contains(&format!("\n| {number} |")));
    assert_eq!(rows.count(), 44);
}

/// The files in which a module may be written: itself, or that of its parent.
fn sources(folder: &Path, module: &[&str]) -> Vec<String> {
    let file = folder.join(module.join("/")).with_extension("rs");
    let inside = folder.join(module.join("/")).join("mod.rs");
    let parent = folder.join(module[0]).with_extension("rs");
    [file, inside, parent]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}
