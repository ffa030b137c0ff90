//! [`LockName`]: the name of the resource that is locked.

use std::fmt;
use std::sync::Arc;

use crate::{Error, ErrorKind};

/// The name of a lock: 1 to 512 bytes of UTF-8 without control characters, and without white space
/// at either end (two names that look alike on a screen must not be two locks).
///
/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Checks a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] that says which rule is broken.
    ///
    /// ```
    /// # use tenure_core::LockName;
    /// assert!(LockName::new("nightly-report").is_ok());
    /// assert!(LockName::new("").is_err());
    /// assert!(LockName::new("two\nlines").is_err());
    /// ```
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref();
        let problem = if name.is_empty() {
            "is empty: give the resource a name, for example \"nightly-report\"".to_owned()
        } else if name.len() > Self::MAX_BYTES {
            format!(
                "is {} bytes long: at most {} are allowed",
                name.len(),
                Self::MAX_BYTES
            )
        } else if name.chars().any(char::is_control) {
            "contains a control character (such as a line break): remove it".to_owned()
        } else if name.trim() != name {
            "begins or ends with white space: remove it".to_owned()
        } else {
            return Ok(Self(name.into()));
        };
        Err(Error::new(
            ErrorKind::InvalidInput,
            format!("the lock name {problem}"),
        ))
    }

    /// Whether it begins with `~`, as the records of tenure's own helpers do (`~once:nightly`). The library takes no lock
    /// of such a name for its callers; a store makes no difference.
    ///
    /// ```
    /// # use tenure_core::LockName;
    /// assert!(LockName::new("~once:nightly").unwrap().is_reserved());
    /// assert!(!LockName::new("nightly~").unwrap().is_reserved());
    /// ```
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with('~')
    }

    /// What to say to somebody who wants a lock with a reserved name.
    pub const RESERVED: &'static str =
        "a name that begins with ~ belongs to tenure's own records: choose another one";

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for LockName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}
