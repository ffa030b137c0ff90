//! The other side of the interoperability tests beyond Python: the real Redlock libraries of Node and
//! Go, installed below the target folder, so that nothing outside of it changes.
//!
//! A machine may have neither language, and no way to get it. Then the test that needs it is left out by
//! name and the summary says so: a test that did not run must not look like one that passed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package_manager::{Package, PackageManager};
use crate::shell::{self, Failure};

/// What there is, and what there is not.
#[derive(Default)]
pub(crate) struct Theirs {
    /// Tests read from these where it is.
    pub(crate) variables: Vec<(&'static str, PathBuf)>,
    pub(crate) missing: Vec<Missing>,
}

/// A test that cannot run here.
pub(crate) struct Missing {
    /// Its name, as `cargo test` knows it.
    pub(crate) test: &'static str,
    pub(crate) why: String,
}

/// One library.
struct Library {
    name: &'static str,
    test: &'static str,
    variable: &'static str,
    /// Says whether the language is there.
    language: [&'static str; 2],
    package: Package,
    /// Installs or builds it, and answers where it is.
    provide: fn() -> Result<PathBuf, Failure>,
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "redlock for Node",
        test: "redlock_interop::node_redlock",
        variable: "TENURE_TEST_NODE_REDLOCK",
        language: ["npm", "--version"],
        package: Package::Node,
        provide: node_redlock,
    },
    Library {
        name: "redsync for Go",
        test: "redlock_interop::redsync",
        variable: "TENURE_TEST_REDSYNC",
        language: ["go", "version"],
        package: Package::Go,
        provide: redsync,
    },
];

/// Provides what can be had. What somebody has named already is taken as it is.
pub(crate) fn provide() -> Theirs {
    let mut theirs = Theirs::default();
    for library in &LIBRARIES {
        if std::env::var_os(library.variable).is_some() {
            continue;
        }
        match library.with_language().and_then(|()| (library.provide)()) {
            Ok(path) => theirs.variables.push((library.variable, path)),
            Err(failure) => {
                let why = format!("{} cannot be had: {failure}", library.name);
                shell::complain(&format!("{} is NOT RUN: {why}", library.test));
                theirs.missing.push(Missing {
                    test: library.test,
                    why,
                });
            }
        }
    }
    theirs
}

impl Library {
    fn with_language(&self) -> Result<(), Failure> {
        let [program, question] = self.language;
        let is_there = || shell::succeeds(Command::new(program).arg(question));
        if is_there() {
            return Ok(());
        }
        let manager = PackageManager::find().ok_or_else(|| {
            Failure(format!(
                "no {program}, and no package manager that xtask knows"
            ))
        })?;
        let advice = manager.advice(&[self.package]);
        let installed = manager.install(&[self.package]);
        installed.map_err(|failure| Failure(format!("{failure}; try {advice}")))?;
        if is_there() {
            Ok(())
        } else {
            Err(Failure(format!("no {program} even after {advice}")))
        }
    }
}

/// A folder in which Node finds the package; versions are pinned by the lock file.
fn node_redlock() -> Result<PathBuf, Failure> {
    let source = sources().join("node");
    let folder = shell::target_folder().join("xtask").join("node-redlock");
    let files = ["package.json", "package-lock.json"];
    let same = |file: &str| {
        let read = |folder: &Path| std::fs::read(folder.join(file)).ok();
        read(&source) == read(&folder)
    };
    let found = |folder: &Path| {
        let question = "require('redlock'); require('ioredis')";
        let mut node = Command::new("node");
        shell::succeeds(node.current_dir(folder).args(["-e", question]))
    };
    if files.iter().all(|file| same(file)) && found(&folder) {
        return Ok(folder);
    }
    shell::say("installing the npm package redlock below target/xtask");
    let unwritable = |error: std::io::Error| Failure(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(unwritable)?;
    for file in files {
        std::fs::copy(source.join(file), folder.join(file)).map_err(unwritable)?;
    }
    let quietly = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    shell::run(Command::new("npm").args(quietly).current_dir(&folder))?;
    if found(&folder) {
        Ok(folder)
    } else {
        Err(Failure::new("npm was content, but Node cannot load it"))
    }
}

/// A program that uses it; Go builds it again only if something has changed.
fn redsync() -> Result<PathBuf, Failure> {
    let program = shell::target_folder().join("xtask").join("redsync");
    let mut go = Command::new("go");
    go.arg("build").arg("-o").arg(&program).arg(".");
    shell::run(go.current_dir(sources().join("go")))?;
    Ok(program)
}

fn sources() -> PathBuf {
    shell::workspace_root().join("crates/tenure/tests/it/support/theirs")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that no test has any more would be left out in silence.
    #[test]
    fn what_is_left_out_is_there() {
        let tests = shell::workspace_root().join("crates/tenure/tests/it");
        for library in &LIBRARIES {
            let (module, test) = library.test.split_once("::").expect("module and test");
            let text = std::fs::read_to_string(tests.join(format!("{module}.rs")));
            let text = text.expect("a file of the tests");
            assert!(text.contains(&format!("async fn {test}()")), "{test}");
        }
    }
}
