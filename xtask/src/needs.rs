//! What each step needs on the machine: looks for it, installs what is missing where it may, and
//! otherwise fails with one line that says what to install. Nothing is ever skipped.

use std::process::Command;

use crate::options::Step;
use crate::package_manager::{Package, PackageManager};
use crate::shell::{self, Failure};

/// A tool that must answer before a step can run.
struct Need {
    step: Step,
    what: &'static str,
    package: Package,
    /// The name for `rustup component add`, for what belongs to the compiler.
    component: Option<&'static str>,
    is_met: fn() -> bool,
}

const NEEDS: [Need; 4] = [
    Need {
        step: Step::Fmt,
        what: "rustfmt",
        package: Package::Rustfmt,
        component: Some("rustfmt"),
        is_met: || shell::succeeds(&mut shell::cargo(["fmt", "--version"])),
    },
    Need {
        step: Step::Clippy,
        what: "clippy",
        package: Package::Clippy,
        component: Some("clippy"),
        is_met: || shell::succeeds(&mut shell::cargo(["clippy", "--version"])),
    },
    Need {
        step: Step::Tests,
        what: "redis-server",
        package: Package::RedisServer,
        component: None,
        is_met: || shell::succeeds(Command::new("redis-server").arg("--version")),
    },
    Need {
        step: Step::Tests,
        what: "python3 with venv",
        package: Package::PythonWithVenv,
        component: None,
        // Debian ships `venv` without `ensurepip`; such a venv would have no pip.
        is_met: || {
            shell::succeeds(Command::new("python3").args(["-c", "import venv, ensurepip, ssl"]))
        },
    },
];

/// Makes sure that everything these steps need is there, installing what is missing.
///
/// # Errors
/// One line with what is still missing and the command that would install it.
pub(crate) fn provide(steps: &[Step]) -> Result<(), Failure> {
    let missing = missing(steps);
    if missing.is_empty() {
        shell::say("everything is there");
        return Ok(());
    }
    shell::say(&format!("missing: {}", names(&missing)));

    let with_rustup = shell::succeeds(Command::new("rustup").arg("--version"));
    let (components, packages): (Vec<&Need>, Vec<&Need>) = missing
        .into_iter()
        .partition(|need| with_rustup && need.component.is_some());
    let from_rustup = install_components(&components);
    let from_packages = install_packages(&packages);

    let still_missing = self::missing(steps);
    if still_missing.is_empty() {
        return Ok(());
    }
    let reason = [from_rustup, from_packages]
        .into_iter()
        .find_map(Result::err);
    let reason = reason.map_or(String::new(), |failure| format!(" ({failure})"));
    let advice = advice(&still_missing, with_rustup);
    Err(Failure(format!(
        "install {} first: {advice}{reason}",
        names(&still_missing)
    )))
}

fn missing(steps: &[Step]) -> Vec<&'static Need> {
    NEEDS
        .iter()
        .filter(|need| steps.contains(&need.step) && !(need.is_met)())
        .collect()
}

fn install_components(needs: &[&Need]) -> Result<(), Failure> {
    let components: Vec<&str> = needs.iter().filter_map(|need| need.component).collect();
    if components.is_empty() {
        return Ok(());
    }
    shell::say(&format!("installing with rustup: {}", components.join(" ")));
    shell::run(
        Command::new("rustup")
            .args(["component", "add"])
            .args(components),
    )
}

fn install_packages(needs: &[&Need]) -> Result<(), Failure> {
    if needs.is_empty() {
        return Ok(());
    }
    let manager = PackageManager::find();
    let manager = manager.ok_or_else(|| Failure::new("no package manager that xtask knows"))?;
    manager.install(&packages(needs))
}

fn advice(needs: &[&Need], with_rustup: bool) -> String {
    let (components, others): (Vec<&Need>, Vec<&Need>) = needs
        .iter()
        .partition(|need| with_rustup && need.component.is_some());
    let mut commands = Vec::new();
    if !components.is_empty() {
        let components: Vec<&str> = components
            .iter()
            .filter_map(|need| need.component)
            .collect();
        commands.push(format!("rustup component add {}", components.join(" ")));
    }
    if !others.is_empty() {
        commands.push(PackageManager::find().map_or_else(
            || "with your system's package manager".to_owned(),
            |manager| manager.advice(&packages(&others)),
        ));
    }
    commands.join(" && ")
}

fn packages(needs: &[&Need]) -> Vec<Package> {
    needs.iter().map(|need| need.package).collect()
}

fn names(needs: &[&Need]) -> String {
    needs
        .iter()
        .map(|need| need.what)
        .collect::<Vec<_>>()
        .join(", ")
}
