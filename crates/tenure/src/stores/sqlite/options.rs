//! [`Options`]: where the file is and how it is used, from a `sqlite:` URL or set by hand.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tenure_core::{Error, ErrorKind};

use crate::stores::url_options;

/// Where the lock file is, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The lock file. Beside it appear `-wal`, `-shm` (SQLite's own) and the folder `.d` (ours).
    pub path: PathBuf,
    /// How long another program may keep the file locked before a request fails. Default 5 s.
    pub busy_timeout: Duration,
    /// How often a process with waiters looks for grants whose doorbell did not reach it.
    /// Default 250 ms.
    pub poll: Duration,
    /// Whether a FUSE file system is accepted, which may hide a network. Default no.
    pub allow_fuse: bool,
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(250);
const KNOWN: [&str; 3] = ["busy_timeout", "fuse", "poll"];

impl Options {
    /// The defaults, for this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: BUSY_TIMEOUT,
            poll: POLL,
            allow_fuse: false,
        }
    }

    /// From a URL: `sqlite:relative/file`, `sqlite:/absolute/file`, `sqlite:///absolute/file`,
    /// `sqlite:~/file`, or `sqlite:` for the user's own file; then `?option=value&…`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] that says what is wrong and what was perhaps meant.
    ///
    /// ```
    /// # use tenure::stores::sqlite::Options;
    /// let options = Options::parse("sqlite:locks.db?poll=100ms")?;
    /// assert_eq!(options.path.to_str(), Some("locks.db"));
    /// assert!(Options::parse("sqlite:locks.db?pol=100ms").is_err());
    /// # Ok::<(), tenure::core::Error>(())
    /// ```
    pub fn parse(url: &str) -> Result<Self, Error> {
        let rest = url.strip_prefix("sqlite:").ok_or_else(|| {
            wrong("a SQLite store's URL begins with \"sqlite:\"").with("url", url)
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = Self::new(file(place)?);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            options.set(key, value)?;
        }
        Ok(options)
    }

    /// The user's own file: `$XDG_STATE_HOME/tenure/locks.db`, by default under `~/.local/state`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if neither `XDG_STATE_HOME` nor `HOME` is set.
    pub fn default_path() -> Result<PathBuf, Error> {
        let state = env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute());
        let folder = match state {
            Some(folder) => folder,
            None => home()?.join(".local/state"),
        };
        Ok(folder.join("tenure/locks.db"))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "busy_timeout" => self.busy_timeout = duration(key, value)?,
            "poll" => self.poll = duration(key, value)?.max(Duration::from_millis(1)),
            "fuse" => {
                self.allow_fuse = match value {
                    "allow" => true,
                    "refuse" => false,
                    _ => return Err(wrong("fuse is \"allow\" or \"refuse\"").with("given", value)),
                }
            }
            _ => return Err(unknown(key)),
        }
        Ok(())
    }
}

impl<P: Into<PathBuf>> From<P> for Options {
    fn from(path: P) -> Self {
        Self::new(path)
    }
}

/// The file that the part between `sqlite:` and `?` stands for.
fn file(place: &str) -> Result<PathBuf, Error> {
    let path = match place.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(path) => {
            return Err(wrong(format!(
                "a SQLite store is a file on this machine and has no host: write \
                 \"sqlite:{path}\" for a relative path or \"sqlite:///{path}\" for an absolute one"
            )));
        }
        None => place,
    };
    if path == ":memory:" {
        return Err(wrong(
            "locks in memory are a store of their own: write \"memory:\"",
        ));
    }
    if path.ends_with('/') {
        return Err(wrong("the path is a folder: name a file in it").with("path", path));
    }
    if path.is_empty() {
        return Options::default_path();
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    if bytes.contains(&0) {
        return Err(wrong("the path contains a zero byte").with("path", path));
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    match path.strip_prefix("~") {
        Ok(below) if below != Path::new("") => Ok(home()?.join(below)),
        _ => Ok(path),
    }
}

fn home() -> Result<PathBuf, Error> {
    let home = env::var_os("HOME").map(PathBuf::from);
    home.filter(|home| home.is_absolute()).ok_or_else(|| {
        wrong(
            "there is no home folder to keep the lock file in: set HOME or XDG_STATE_HOME, or \
             name a file, for example \"sqlite:///var/lib/myapp/locks.db\"",
        )
    })
}

/// A time with its unit.
fn duration(key: &str, value: &str) -> Result<Duration, Error> {
    url_options::duration(value).ok_or_else(|| {
        wrong(format!(
            "{key} is a time with its unit, such as 250ms or 5s"
        ))
        .with("given", value)
    })
}

fn unknown(key: &str) -> Error {
    let advice = match url_options::nearest(key, &KNOWN) {
        Some(known) => format!("did you mean \"{known}\"?"),
        None => format!("there are {}", KNOWN.join(", ")),
    };
    wrong(format!(
        "unknown option \"{key}\" of a sqlite: URL; {advice}"
    ))
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str) -> String {
        let options = Options::parse(url).unwrap();
        options.path.to_str().unwrap().to_owned()
    }

    fn refusal(url: &str) -> String {
        let error = Options::parse(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    }

    #[test]
    fn every_form_of_the_url() {
        assert_eq!(path("sqlite:locks.db"), "locks.db");
        assert_eq!(path("sqlite:some/folder/locks.db"), "some/folder/locks.db");
        assert_eq!(path("sqlite:/abs/locks.db"), "/abs/locks.db");
        assert_eq!(path("sqlite:///abs/locks.db"), "/abs/locks.db");
        assert_eq!(path("sqlite:what%3F%20now"), "what? now");
    }

    #[test]
    fn no_path_is_the_users_own_file() {
        assert!(path("sqlite:").ends_with("tenure/locks.db"));
        assert!(path("sqlite:?poll=1s").ends_with("tenure/locks.db"));
        assert!(path("sqlite:~/mine.db").starts_with('/'));
    }

    #[test]
    fn options_are_read() {
        let options = Options::parse("sqlite:x?busy_timeout=2s&poll=50ms&fuse=allow").unwrap();
        assert_eq!(options.busy_timeout, Duration::from_secs(2));
        assert_eq!(options.poll, Duration::from_millis(50));
        assert!(options.allow_fuse);
        assert_eq!(Options::parse("sqlite:x").unwrap(), Options::new("x"));
    }

    #[test]
    fn mistakes_are_explained() {
        assert!(refusal("sqlite:x?pol=1s").contains("did you mean \"poll\"?"));
        assert!(refusal("sqlite:x?colour=red").contains("busy_timeout, fuse, poll"));
        assert!(refusal("sqlite:x?poll=100").contains("unit"));
        assert!(refusal("sqlite:x?fuse=maybe").contains("refuse"));
        assert!(refusal("sqlite://host/x").contains("no host"));
        assert!(refusal("sqlite::memory:").contains("memory:"));
        assert!(refusal("sqlite:folder/").contains("folder"));
        assert!(refusal("redis:x").contains("sqlite:"));
    }
}
