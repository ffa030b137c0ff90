//! Which store is meant, and where that was said: every error about a store names its origin.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::config;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::secret::StoreUrl;
use crate::settings::environment::Inherited;

/// The environment variable that names the store.
pub const STORE_VARIABLE: &str = "TENURE_STORE";

const PASSWORD_HINT: &str = "the password in --store is visible in the process list and the \
    shell's history: put the URL into TENURE_STORE or a config file";

/// A store URL and where it came from.
#[derive(Clone, Debug)]
pub struct StoreChoice {
    /// Where the locks live.
    pub url: StoreUrl,
    /// Who said so.
    pub origin: Origin,
}

/// Where the store URL was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--store`.
    Flag,
    /// `TENURE_STORE`.
    Environment,
    /// A config file, and the line in it.
    File(PathBuf, usize),
    /// Nobody chose; the user's own SQLite file.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--store on the command line"),
            Self::Environment => write!(f, "{STORE_VARIABLE} in the environment"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("the default, because no store was chosen"),
        }
    }
}

impl StoreChoice {
    /// `--store`, else the environment, else the config files, else the user's own SQLite file.
    ///
    /// # Errors
    /// If the URL is empty, a config file is wrong, or there is no home folder to put the default file in.
    pub fn resolve(flag: Option<&str>) -> Result<Self> {
        let mut choice = Self::find(flag)?;
        choice.url = absolute(choice.url);
        Ok(choice)
    }

    fn find(flag: Option<&str>) -> Result<Self> {
        if let Some(url) = flag {
            if url.trim().is_empty() {
                return Err(Failure::new(Code::Usage, "--store is empty"));
            }
            return Ok(Self {
                url: StoreUrl::new(url),
                origin: Origin::Flag,
            });
        }
        if let Some(url) = from_environment()? {
            return Ok(Self {
                url,
                origin: Origin::Environment,
            });
        }
        if let Some(found) = config::find_store(&config_paths())? {
            let origin = Origin::File(found.path, found.line);
            return Ok(Self {
                url: found.value,
                origin,
            });
        }
        let url = StoreUrl::new(format!("sqlite:{}", escape(&default_file()?)));
        Ok(Self {
            url,
            origin: Origin::Default,
        })
    }

    /// Tells a person at a terminal what they might not expect about the store.
    pub fn remark(&self, output: &Output) {
        if self.origin == Origin::Default {
            let url = abbreviate_home(&self.url.to_string());
            output.hint(&format!(
                "using {url} - this machine only; set {STORE_VARIABLE} to share"
            ));
        }
        if self.password_in_sight() {
            output.hint(PASSWORD_HINT);
        }
    }

    /// Refuses the default if a parent's lock is in another store: most likely that one was meant
    /// and not passed on, and a lock on this machine alone would exclude too few.
    ///
    /// # Errors
    /// 64.
    pub fn check_parent(&self, inherited: &Inherited) -> Result<()> {
        let parents = inherited.store_fingerprint.as_deref();
        if self.origin != Origin::Default || parents.is_none_or(|it| it == self.url.fingerprint()) {
            return Ok(());
        }
        Err(Failure::new(
            Code::Usage,
            "which store? the lock of the `tenure run` around this is in one whose URL was not passed on",
        )
        .fact("because", "one with a password in it goes to nobody who was not meant to get it")
        .help("give the outer run --pass-store, or this one --store (--store sqlite: is this machine's)"))
    }

    /// The same for commands that only look: says which store is asked.
    pub fn remark_on_parent(&self, inherited: &Inherited, output: &Output) {
        if self.check_parent(inherited).is_err() {
            let url = abbreviate_home(&self.url.to_string());
            output.note(&format!(
                "asking {url}, the default; the lock of the `tenure run` around this is in another store: give \
                 that run --pass-store, or this command --store"
            ));
        }
    }

    /// Refuses locks that nobody outside this process can see: they would exclude nobody, and be gone when it
    /// ends.
    ///
    /// # Errors
    /// 64.
    pub fn check_shared(&self) -> Result<()> {
        if !self.in_memory() {
            return Ok(());
        }
        let what = "locks in `memory:` are seen by this process alone, and end with it";
        Err(Failure::new(Code::Usage, what)
            .fact("from", self.origin.to_string())
            .help("choose sqlite:PATH (this machine) or redis://HOST; memory: is for programs that use the library"))
    }

    fn in_memory(&self) -> bool {
        self.url.expose().split(':').next() == Some("memory")
    }

    /// The same for commands that are not expected to be silent.
    pub fn remark_on_password(&self, output: &Output) {
        if self.password_in_sight() {
            output.note(PASSWORD_HINT);
        }
    }

    fn password_in_sight(&self) -> bool {
        self.origin == Origin::Flag && self.url.has_password()
    }

    /// Says where the URL came from, removes its password from every text, and, if the URL itself
    /// is wrong and stands in a file, makes it a config error.
    #[must_use]
    pub fn blame(&self, failure: Failure) -> Failure {
        let mut failure = failure.fact("from", self.origin.to_string());
        if failure.code == Code::StoreUrl {
            failure = match self.origin {
                Origin::Flag | Origin::Environment => failure,
                Origin::File(..) => failure.exit(Exit::Config),
                Origin::Default => failure
                    .exit(Exit::StoreUnavailable)
                    .help("choose another place: --store sqlite:/some/where/locks.db"),
            };
        }
        failure.without(&self.url.secrets())
    }
}

fn from_environment() -> Result<Option<StoreUrl>> {
    match env::var(STORE_VARIABLE) {
        // Most likely a secret that did not arrive: the default would be another lock on each machine.
        Ok(url) if url.trim().is_empty() => Err(Failure::new(
            Code::Usage,
            format!("{STORE_VARIABLE} is empty"),
        )
        .help("unset it for the default, a file that this machine alone uses")),
        Ok(url) => Ok(Some(StoreUrl::new(url))),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failure::new(
            Code::StoreUrl,
            format!("{STORE_VARIABLE} is not valid UTF-8"),
        )),
    }
}

fn config_paths() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("./tenure.toml")];
    if let Ok(folders) = etcetera::choose_base_strategy() {
        paths.push(folders.config_dir().join("tenure/config.toml"));
    }
    paths.push("/etc/tenure/config.toml".into());
    paths
}

fn default_file() -> Result<PathBuf> {
    let folder = etcetera::choose_base_strategy().ok().map(|folders| {
        folders
            .state_dir()
            .unwrap_or_else(|| folders.home_dir().join(".local/state"))
    });
    folder
        .map(|folder| folder.join("tenure/locks.db"))
        .ok_or_else(|| {
            Failure::new(
                Code::Usage,
                "no store was chosen, and you have no home folder for one",
            )
            .help(format!(
                "say --store sqlite:/some/where/locks.db, or set {STORE_VARIABLE}"
            ))
        })
}

// So that it means the same file in every message, and to a command that changes its folder.
fn absolute(url: StoreUrl) -> StoreUrl {
    let relative = url
        .expose()
        .strip_prefix("sqlite:")
        .filter(|path| !path.is_empty() && !path.starts_with(['/', '~', '?', ':']));
    match (relative, env::current_dir()) {
        (Some(path), Ok(folder)) if folder.to_str().is_some() => {
            StoreUrl::new(format!("sqlite:{}/{path}", escape(&folder)))
        }
        _ => url,
    }
}

// What has a meaning in a URL must not have one in a path.
fn escape(path: &Path) -> String {
    path.to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23")
}

fn abbreviate_home(url: &str) -> String {
    match env::var("HOME") {
        Ok(home) if home.len() > 1 => url.replacen(&format!("sqlite:{home}/"), "sqlite:~/", 1),
        _ => url.to_owned(),
    }
}
