//! The library must compile with no feature, with each alone and with all; a build that did not ask
//! for a store must not contain that store's driver; and the core must not depend on anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::shell::{self, Failure};

const PACKAGE: &str = "tenure";
const PURE_PACKAGE: &str = "tenure-core";

/// Checks every feature set that a user is likely to choose.
///
/// # Errors
/// The first set that does not compile or that has the wrong drivers in it.
pub(crate) fn check() -> Result<(), Failure> {
    let manifest = shell::workspace_root()
        .join("crates")
        .join(PACKAGE)
        .join("Cargo.toml");
    let manifest = std::fs::read_to_string(&manifest)
        .map_err(|error| Failure(format!("{}: {error}", manifest.display())))?;
    let features = Features::parse(&manifest);
    if features.0.is_empty() {
        return Err(Failure(format!(
            "no features found in the manifest of {PACKAGE}"
        )));
    }
    check_core()?;
    for set in features.sets() {
        let set_argument = set.join(",");
        let selection = [
            "-p",
            PACKAGE,
            "--no-default-features",
            "--features",
            &set_argument,
        ];
        shell::run(shell::cargo(["check"]).args(selection))?;
        check_drivers(&features, &set)?;
    }
    Ok(())
}

/// Compares the drivers in the dependency tree with those that the features name.
fn check_drivers(features: &Features, set: &[&str]) -> Result<(), Failure> {
    let set_argument = set.join(",");
    let present = dependencies(&[
        "-p",
        PACKAGE,
        "--no-default-features",
        "--features",
        &set_argument,
    ])?;
    let (asked_for, others) = features.drivers(set);
    let shown = if set.is_empty() {
        "no feature"
    } else {
        &set_argument
    };
    if let Some(driver) = others.iter().find(|driver| present.contains(**driver)) {
        return Err(Failure(format!(
            "a build with {shown} contains {driver}; nobody asked for it"
        )));
    }
    // Without this a renamed driver would make the check above pass for ever.
    if let Some(driver) = asked_for.iter().find(|driver| !present.contains(**driver)) {
        return Err(Failure(format!("a build with {shown} lacks {driver}")));
    }
    Ok(())
}

/// Clippy keeps the core's own code pure; this keeps impure crates out of it.
fn check_core() -> Result<(), Failure> {
    let present = dependencies(&["-p", PURE_PACKAGE])?;
    match present.iter().find(|package| *package != PURE_PACKAGE) {
        Some(package) => Err(Failure(format!(
            "{PURE_PACKAGE} is pure and must not use {package}"
        ))),
        None => Ok(()),
    }
}

/// The names of all packages in a build, tests aside.
fn dependencies(selection: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let layout = [
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let output = shell::cargo(["tree"])
        .args(selection)
        .args(layout)
        .output()
        .map_err(|error| Failure(format!("`cargo tree` could not start: {error}")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(Failure(format!(
            "`cargo tree` failed: {}",
            complaint.trim()
        )));
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    Ok(tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(String::from)
        .collect())
}

/// Each feature with what it switches on, as the manifest says.
struct Features(BTreeMap<String, Vec<String>>);

impl Features {
    /// Reads the `[features]` table. Enough of TOML for a table of string arrays.
    fn parse(manifest: &str) -> Self {
        let mut features = BTreeMap::new();
        let mut current = String::new();
        let table = manifest
            .lines()
            .map(str::trim)
            .skip_while(|line| *line != "[features]")
            .skip(1);
        for line in table.take_while(|line| !line.starts_with('[')) {
            let line = line.split('#').next().unwrap_or_default();
            let strings = match line.split_once('=') {
                Some((name, strings)) => {
                    current = name.trim().trim_matches('"').to_owned();
                    strings
                }
                None => line,
            };
            if !current.is_empty() {
                let switched: &mut Vec<String> = features.entry(current.clone()).or_default();
                switched.extend(strings.split('"').skip(1).step_by(2).map(String::from));
            }
        }
        features.remove("default");
        Features(features)
    }

    /// None, each alone, all.
    fn sets(&self) -> Vec<Vec<&str>> {
        let all: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let mut sets = vec![Vec::new()];
        sets.extend(all.iter().map(|feature| vec![*feature]));
        if all.len() > 1 {
            sets.push(all);
        }
        sets
    }

    /// The optional dependencies that a feature set asks for, and all the others.
    fn drivers(&self, set: &[&str]) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let mut asked_for = BTreeSet::new();
        for feature in set {
            self.collect_drivers(feature, &mut asked_for);
        }
        let mut others = BTreeSet::new();
        for feature in self.0.keys() {
            self.collect_drivers(feature, &mut others);
        }
        others.retain(|driver| !asked_for.contains(driver));
        (asked_for, others)
    }

    /// Follows features that switch on other features; cargo refuses cycles, so this ends.
    fn collect_drivers<'a>(&'a self, feature: &str, into: &mut BTreeSet<&'a str>) {
        for switched in self.0.get(feature).into_iter().flatten() {
            match switched.strip_prefix("dep:") {
                Some(driver) => _ = into.insert(driver),
                None => self.collect_drivers(switched, into),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[package]
name = "tenure"

[features]
default = []
sqlite = ["dep:rusqlite"] # bundled
redis = [
    "dep:redis",
    "tls",
]
tls = ["dep:rustls"]
test-util = []

[dependencies]
redis = { version = "1", optional = true }
"#;

    #[test]
    fn every_feature_alone_then_all() {
        let features = Features::parse(MANIFEST);
        let all = vec!["redis", "sqlite", "test-util", "tls"];
        let mut expected = vec![vec![]];
        expected.extend(all.iter().map(|feature| vec![*feature]));
        expected.push(all);
        assert_eq!(features.sets(), expected);
    }

    #[test]
    fn drivers_are_those_of_the_set_and_what_it_switches_on() {
        let features = Features::parse(MANIFEST);
        let (asked_for, others) = features.drivers(&["redis"]);
        assert_eq!(asked_for, BTreeSet::from(["redis", "rustls"]));
        assert_eq!(others, BTreeSet::from(["rusqlite"]));
        assert_eq!(
            features.drivers(&[]).1,
            BTreeSet::from(["redis", "rusqlite", "rustls"])
        );
    }
}
