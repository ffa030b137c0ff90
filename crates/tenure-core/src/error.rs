//! [`Error`]: the one error of tenure. Branch on its [`ErrorKind`], retry as its [`Retry`] advises.

use std::error::Error as StdError;
use std::fmt;

/// What went wrong, why, and what to do about it.
///
/// Contention is not an error of a store ([`Outcome::Busy`](crate::Outcome::Busy) is an outcome); it
/// becomes one, [`ErrorKind::Busy`], only for a caller whose wait ran out.
pub struct Error {
    // Boxed, so that a `Result` stays small on the paths where nothing fails.
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    retry: Retry,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The cases that a caller may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name, ttl, mode or other argument is not allowed.
    InvalidInput,
    /// The store's URL or settings are wrong.
    Configuration,
    /// The store could not be asked: refused, cut off, or no answer in time. Whether the request
    /// was carried out is **unknown**.
    Unavailable,
    /// The store refused who we are (wrong or missing credentials).
    Unauthorized,
    /// The store knows us but does not allow this (missing permission).
    Forbidden,
    /// The store answered, but refuses to do its work now (read-only, out of memory, loading).
    Refused,
    /// The name is in use as something else: another kind or capacity, or something foreign.
    Conflict,
    /// The wait ran out while others held the lock.
    Busy,
    /// The lease is lost: expired, taken by force, or forgotten by the store.
    Lost,
    /// The store does not offer this.
    Unsupported,
    /// The client or its runtime has been shut down.
    Closed,
    /// The store answered something that makes no sense: a bug, or not the server we think it is.
    Protocol,
}

/// Whether it makes sense to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same call may succeed a moment later.
    Later,
    /// The same call fails again until somebody changes something.
    Never,
}

impl Error {
    /// An error with the retry advice that is usual for its kind.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retry = match kind {
            ErrorKind::Unavailable | ErrorKind::Refused | ErrorKind::Busy => Retry::Later,
            _ => Retry::Never,
        };
        let inner = Inner {
            kind,
            retry,
            message: message.into(),
            context: Vec::new(),
            source: None,
        };
        Self {
            inner: Box::new(inner),
        }
    }

    /// Adds a fact that helps to find the cause. Never put a secret here.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.inner.context.push((key, value.to_string()));
        self
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Replaces the usual retry advice.
    #[must_use]
    pub fn retrying(mut self, retry: Retry) -> Self {
        self.inner.retry = retry;
        self
    }

    /// What to branch on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Whether to try again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.inner.retry
    }

    /// The message alone, without context and cause.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The facts that were added, in order.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.inner
            .context
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
    }
}

/// One line: message, then `(key: value, …)`, then the cause.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        for (index, (key, value)) in self.inner.context.iter().enumerate() {
            write!(f, "{}{key}: {value}", if index == 0 { " (" } else { ", " })?;
        }
        if !self.inner.context.is_empty() {
            f.write_str(")")?;
        }
        if let Some(source) = &self.inner.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.inner.kind)
            .field("retry", &self.inner.retry)
            .field("message", &self.inner.message)
            .field("context", &self.inner.context)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}
