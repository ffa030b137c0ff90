//! The package managers of the systems that people test on: which one is here, may we use it, and
//! what it calls the packages. A system that is not listed gets a line that says what to install.

use std::process::Command;

use crate::shell::{self, Failure};

/// What can be installed. Every package manager has its own name for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Package {
    RedisServer,
    PythonWithVenv,
    Rustfmt,
    Clippy,
    Node,
    Go,
}

/// One package manager and how it is spoken to.
pub(crate) struct PackageManager {
    program: &'static str,
    /// Refreshes the index; on a fresh machine there is none. Empty where installing does it.
    update: &'static [&'static str],
    install: &'static [&'static str],
    /// Homebrew refuses to run as root; the others need it.
    needs_root: bool,
    packages: fn(Package) -> &'static [&'static str],
}

/// In this order, because some systems have a second one lying around.
const KNOWN: [PackageManager; 5] = [
    PackageManager {
        program: "apt-get",
        update: &["update"],
        install: &["install", "--yes", "--no-install-recommends"],
        needs_root: true,
        packages: |package| match package {
            Package::RedisServer => &["redis-server"],
            Package::PythonWithVenv => &["python3", "python3-venv"],
            Package::Rustfmt => &["rustfmt"],
            Package::Clippy => &["rust-clippy"],
            Package::Node => &["nodejs", "npm"],
            Package::Go => &["golang-go"],
        },
    },
    PackageManager {
        program: "dnf",
        update: &[],
        install: &["install", "--assumeyes"],
        needs_root: true,
        packages: |package| match package {
            Package::RedisServer => &["redis"],
            Package::PythonWithVenv => &["python3", "python3-pip"],
            Package::Rustfmt => &["rustfmt"],
            Package::Clippy => &["clippy"],
            Package::Node => &["nodejs", "npm"],
            Package::Go => &["golang"],
        },
    },
    PackageManager {
        program: "apk",
        update: &["update"],
        install: &["add"],
        needs_root: true,
        packages: |package| match package {
            Package::RedisServer => &["redis"],
            Package::PythonWithVenv => &["python3", "py3-pip"],
            Package::Rustfmt => &["rustfmt"],
            Package::Clippy => &["rust-clippy"],
            Package::Node => &["nodejs", "npm"],
            Package::Go => &["go"],
        },
    },
    PackageManager {
        program: "pacman",
        update: &["--sync", "--refresh"],
        install: &["--sync", "--needed", "--noconfirm"],
        needs_root: true,
        packages: |package| match package {
            // Arch replaced Redis by Valkey, which also installs a `redis-server`.
            Package::RedisServer => &["valkey"],
            Package::PythonWithVenv => &["python"],
            Package::Rustfmt | Package::Clippy => &["rust"],
            Package::Node => &["nodejs", "npm"],
            Package::Go => &["go"],
        },
    },
    PackageManager {
        program: "brew",
        update: &["update"],
        install: &["install"],
        needs_root: false,
        packages: |package| match package {
            Package::RedisServer => &["redis"],
            Package::PythonWithVenv => &["python3"],
            Package::Rustfmt | Package::Clippy => &["rust"],
            Package::Node => &["node"],
            Package::Go => &["go"],
        },
    },
];

impl PackageManager {
    /// The first known one on this machine.
    pub(crate) fn find() -> Option<&'static PackageManager> {
        KNOWN
            .iter()
            .find(|manager| shell::succeeds(Command::new(manager.program).arg("--version")))
    }

    /// What a person would type to install these.
    pub(crate) fn advice(&self, packages: &[Package]) -> String {
        let sudo = if self.needs_root { "sudo " } else { "" };
        format!(
            "{sudo}{} {} {}",
            self.program,
            self.install[0],
            self.names(packages).join(" ")
        )
    }

    /// Installs them, showing every command. Never asks a question.
    ///
    /// # Errors
    /// When we are neither root nor allowed to be without a password, or the installation fails.
    pub(crate) fn install(&self, packages: &[Package]) -> Result<(), Failure> {
        let sudo = self.needs_sudo()?;
        shell::say(&format!(
            "installing with {}: {}",
            self.program,
            self.names(packages).join(" ")
        ));
        if !self.update.is_empty()
            && let Err(failure) = shell::run(self.command(sudo).args(self.update))
        {
            // One broken third-party source must not stop us; the installation decides.
            shell::complain(&format!("{failure}; going on with the index as it is"));
        }
        shell::run(
            self.command(sudo)
                .args(self.install)
                .args(self.names(packages)),
        )
    }

    fn names(&self, packages: &[Package]) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for name in packages
            .iter()
            .flat_map(|package| (self.packages)(*package))
        {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    fn needs_sudo(&self) -> Result<bool, Failure> {
        if !self.needs_root || is_root() {
            Ok(false)
        } else if shell::succeeds(Command::new("sudo").args(["-n", "true"])) {
            Ok(true)
        } else {
            Err(Failure::new("neither root nor sudo without a password"))
        }
    }

    fn command(&self, sudo: bool) -> Command {
        let mut command = if sudo {
            Command::new("sudo")
        } else {
            Command::new("env")
        };
        if sudo {
            command.args(["-n", "env"]);
        }
        // Debian asks about configuration files and time zones unless told not to.
        command.args(["DEBIAN_FRONTEND=noninteractive", self.program]);
        command
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_typed_as_shown() {
        let advice = KNOWN[0].advice(&[Package::RedisServer, Package::PythonWithVenv]);
        assert_eq!(
            advice,
            "sudo apt-get install redis-server python3 python3-venv"
        );
    }

    #[test]
    fn a_package_that_brings_two_needs_is_named_once() {
        let pacman = KNOWN
            .iter()
            .find(|manager| manager.program == "pacman")
            .unwrap();
        assert_eq!(pacman.names(&[Package::Rustfmt, Package::Clippy]), ["rust"]);
    }
}
