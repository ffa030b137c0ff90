//! [`connect`] and [`connect_to_look`]: from a URL to a client.

use std::sync::Arc;

use tenure_core::{Error, ErrorKind, Store};

use crate::client::Tenure;
use crate::clock::{Clock, SystemClock};
use crate::stores::memory::MemoryStore;

/// Connects to the store that `url` names.
///
/// | URL | store | feature |
/// |---|---|---|
/// | `memory:` or `memory:NAME` | this process | always there |
/// | `sqlite:PATH` | a file, for processes of one machine | `sqlite` |
/// | `redis://HOST[:PORT][/DB]`, `rediss://…`, `redis+unix://…` | one Redis server | `redis` |
/// | `redis+sentinel://HOST1,HOST2,HOST3/SERVICE[/DB]`, `rediss+sentinel://…` | the primary that Sentinel names | `redis` |
/// | `redis+cluster://HOST1,HOST2,…`, `rediss+cluster://…` | a Redis Cluster | `redis` |
/// | `redlock://HOST,HOST,HOST[,…][/DB]`, `redlocks://…` (TLS) | a majority of Redis servers | `redis` |
/// | `redis+all://HOST,HOST[,…][/DB]`, `rediss+all://…` (TLS) | Redis servers that must all agree | `redis` |
///
/// # Errors
/// [`ErrorKind::Configuration`] for a URL that makes no sense, with a suggestion where there is one;
/// [`ErrorKind::Unsupported`] for a store that this build leaves out; whatever keeps the store from
/// being reached. No error ever contains the URL's password.
///
/// ```
/// # async fn example() -> Result<(), tenure::Error> {
/// let tenure = tenure::connect("memory:").await?;
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub async fn connect(url: &str) -> Result<Tenure, Error> {
    open(url, Purpose::Use).await
}

/// The same for whoever only looks, as [`list`](Tenure::list), [`inspect`](Tenure::inspect),
/// [`recovering`](Tenure::recovering) and [`diagnose`](Tenure::diagnose) do: **nothing is written into a Redis server**
/// before the first request that asks for more. A Redis server that has to wait because it may have forgotten
/// something begins with that when somebody first connects otherwise, or first asks for a lock.
///
/// A file that does not exist is created all the same.
///
/// # Errors
/// As [`connect`].
pub async fn connect_to_look(url: &str) -> Result<Tenure, Error> {
    open(url, Purpose::Look).await
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Use,
    Look,
}

async fn open(url: &str, purpose: Purpose) -> Result<Tenure, Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start()?);
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let store: Arc<dyn Store> = match scheme {
        "memory" if rest.is_empty() => Arc::new(MemoryStore::new(clock.clone())),
        "memory" => MemoryStore::shared(rest, clock.clone()),
        "sqlite" => return connect_sqlite(url, clock).await,
        "redis" | "rediss" | "redis+unix" | "unix" | "redis+sentinel" | "rediss+sentinel" => {
            return connect_redis(url, clock, purpose).await;
        }
        "redis+cluster" | "rediss+cluster" => return connect_cluster(url, clock).await,
        "redlock" | "redlocks" | "redis+all" | "rediss+all" => open_quorum(url, &clock).await?,
        _ => return Err(unknown(scheme, rest)),
    };
    Tenure::new(store, clock).await
}

/// The schemes that a URL may begin with.
const SCHEMES: [&str; 14] = [
    "memory",
    "sqlite",
    "redis",
    "rediss",
    "redis+unix",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
    "redlock",
    "redlocks",
    "redis+all",
    "rediss+all",
];

#[cfg(feature = "sqlite")]
async fn connect_sqlite(url: &str, clock: Arc<dyn Clock>) -> Result<Tenure, Error> {
    use crate::stores::sqlite::{Options, SqliteStore};

    // A process that was stopped while it opened the same file would hold us up for ever.
    let opening = SqliteStore::connect(Options::parse(url)?);
    let store = Arc::new(crate::link::patiently(&*clock, opening).await??);
    let anchor = store.clone();
    let tenure = Tenure::new(store, clock).await?;
    Ok(tenure.anchored_by(move |inbox| anchor.liveness_descriptor(inbox)))
}

#[cfg(not(feature = "sqlite"))]
async fn connect_sqlite(_url: &str, _clock: Arc<dyn Clock>) -> Result<Tenure, Error> {
    Err(left_out("sqlite"))
}

#[cfg(feature = "redis")]
async fn connect_redis(
    url: &str,
    clock: Arc<dyn Clock>,
    purpose: Purpose,
) -> Result<Tenure, Error> {
    use crate::stores::redis::RedisStore;

    // The other shapes say hello with the first request in any case.
    let store = match purpose {
        Purpose::Use => RedisStore::connect(url, clock.clone()).await?,
        Purpose::Look => RedisStore::connect_to_look(url, clock.clone()).await?,
    };
    let longest = store.longest_protected_lease();
    let tenure = Tenure::new(Arc::new(store), clock).await?;
    Ok(tenure.protecting(longest))
}

#[cfg(feature = "redis")]
async fn connect_cluster(url: &str, clock: Arc<dyn Clock>) -> Result<Tenure, Error> {
    let store = crate::stores::redis::ClusterStore::connect(url, clock.clone()).await?;
    let longest = store.longest_protected_lease();
    let tenure = Tenure::new(Arc::new(store), clock).await?;
    Ok(tenure.protecting(longest))
}

#[cfg(feature = "redis")]
async fn open_quorum(url: &str, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    let opening = crate::stores::quorum::QuorumStore::connect_redis(url, clock.clone());
    Ok(Arc::new(opening.await?))
}

#[cfg(not(feature = "redis"))]
async fn connect_cluster(_url: &str, _clock: Arc<dyn Clock>) -> Result<Tenure, Error> {
    Err(left_out("redis"))
}

#[cfg(not(feature = "redis"))]
async fn open_quorum(_url: &str, _clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    Err(left_out("redis"))
}

#[cfg(not(feature = "redis"))]
async fn connect_redis(
    _url: &str,
    _clock: Arc<dyn Clock>,
    _purpose: Purpose,
) -> Result<Tenure, Error> {
    Err(left_out("redis"))
}

#[cfg(not(all(feature = "sqlite", feature = "redis")))]
fn left_out(feature: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("this build has no {feature} store: build it with the feature {feature:?}"),
    )
}

fn unknown(scheme: &str, rest: &str) -> Error {
    // What stands before the first colon is shown only if it can be a scheme: it might be a secret.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_empty() || scheme.len() > 30 || !scheme.chars().all(plain) {
        return Error::new(
            ErrorKind::Configuration,
            format!(
                "a store URL begins with one of: {} (a file is sqlite:PATH)",
                known()
            ),
        );
    }
    let nearest = SCHEMES
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, scheme), known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    let hint = match nearest {
        Some((_, known)) => format!(", did you mean {known}?"),
        // A port, and nothing that could be a secret.
        None if rest.parse::<u16>().is_ok() => format!(", did you mean redis://{scheme}:{rest}?"),
        None => String::new(),
    };
    Error::new(
        ErrorKind::Configuration,
        format!("unknown store {scheme:?}{hint} (known: {})", known()),
    )
}

fn known() -> String {
    SCHEMES.map(|scheme| format!("{scheme}:")).join(" ")
}
