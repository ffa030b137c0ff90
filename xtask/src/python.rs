//! The other side of the interoperability tests: a Python with the real `redis` package, in a
//! virtual environment under the target folder, so that nothing outside of it changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Failure};

/// Tests read the path of that Python from this variable.
pub(crate) const VARIABLE: &str = "TENURE_TEST_PYTHON";

/// Pinned: the tests state what *this* version does, and a new one must not break an old commit.
const REDIS_VERSION: &str = "8.1.0";

/// The Python to test with; installed the first time and kept under the target folder.
///
/// # Errors
/// One line when the virtual environment or the package cannot be had, most likely offline.
pub(crate) fn provide() -> Result<PathBuf, Failure> {
    let folder = shell::target_folder()
        .join("xtask")
        .join(format!("python-redis-{REDIS_VERSION}"));
    let python = folder.join("bin").join("python");
    if has_redis(&python) {
        return Ok(python);
    }
    shell::say(&format!(
        "installing the Python package redis {REDIS_VERSION} below target/xtask"
    ));
    install(&folder, &python).map_err(|failure| {
        Failure(format!(
            "the interoperability tests need the Python package redis {REDIS_VERSION} from PyPI \
             (network? Python older than 3.10?): {failure}"
        ))
    })?;
    Ok(python)
}

/// Asks the package itself: half of an installation is none.
fn has_redis(python: &Path) -> bool {
    let question = format!("import redis; assert redis.__version__ == '{REDIS_VERSION}'");
    shell::succeeds(Command::new(python).args(["-c", &question]))
}

fn install(folder: &Path, python: &Path) -> Result<(), Failure> {
    shell::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(folder),
    )?;
    let package = format!("redis=={REDIS_VERSION}");
    let options = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    shell::run(Command::new(python).args(options).arg(package))?;
    if has_redis(python) {
        Ok(())
    } else {
        Err(Failure::new("pip was content, but Python cannot import it"))
    }
}
