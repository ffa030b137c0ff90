//! [`RedisCache`]: a cache of bytes on Redis for [`Coalesce`], which knows how old its values are and
//! refuses those of a loader that comes too late.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use tenure_core::{Error, ErrorKind, Fence};

use super::connection::Link;
use super::errors::Failure;
use super::options::{Options, RESERVED};
use crate::clock::Clock;
use crate::coalesce::{Cached, Coalesce, Served};

/// Values on a Redis server, or on the primary that sentinels name, for [`Coalesce::through`].
///
/// # What is not guaranteed
/// That anything is kept: it is a cache. **Not the server that keeps your locks**, if it can be helped: a
/// cache wants to evict what is old, and a server that keeps locks must not. Not on a Redis Cluster.
///
/// The key of a value is `~tenure:cache:`, the prefix of the URL and the key; it is a hash
/// with the value (`v`), the fence of whoever wrote it (`f`) and for how many milliseconds it was to be kept (`k`).
///
/// ```no_run
/// use std::time::Duration;
/// use tenure::{Error, RedisCache};
///
/// # async fn example() -> Result<(), Error> {
/// let tenure = tenure::connect("redis://locks.internal").await?;
/// let cache = RedisCache::new("redis://cache.internal", tenure.clock().clone())?;
///
/// let page = tenure.coalesce("page/1").fresh_for(Duration::from_secs(60));
/// let load = || async { Ok::<_, Error>(b"<h1>slow to build</h1>".to_vec()) };
/// let served = page.through(&cache, load).await?;
/// println!("{} bytes, from {:?}", served.value.len(), served.source);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedisCache {
    link: Arc<Link>,
}

impl RedisCache {
    /// A cache on the server at `url`, which says the same as for a store; `clock` is
    /// [`Tenure::clock`](crate::Tenure::clock), cloned. Connects when it is first
    /// used, and again whenever the connection was lost.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the URL is wrong.
    pub fn new(url: &str, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let options = Options::parse(url)?;
        let link = Link::new(options, clock);
        Ok(Self { link })
    }

    /// What is in it, and how old it is by the server's clock.
    ///
    /// # Errors
    /// Whatever keeps the server from answering.
    pub async fn read(&self, key: &str) -> Result<Option<Cached<Vec<u8>>>, Error> {
        let mut command = self.script(include_str!("read.lua"), key);
        match self.run(&mut command).await? {
            Value::Nil => Ok(None),
            Value::Array(parts) => match <[Value; 3]>::try_from(parts) {
                Ok([Value::BulkString(value), Value::Int(kept), Value::Int(left)]) => {
                    let age = u64::try_from(kept - left).unwrap_or(0);
                    let age = Duration::from_millis(age);
                    Ok(Some(Cached { value, age }))
                }
                _ => Err(unreadable()),
            },
            _ => Err(unreadable()),
        }
    }

    /// Keeps `value` for this long, unless one with a higher fence is there.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if there is one: somebody else has loaded it since. Whatever keeps the server
    /// from answering.
    pub async fn write(
        &self,
        key: &str,
        value: &[u8],
        keep: Duration,
        fence: Fence,
    ) -> Result<(), Error> {
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut command = self.script(include_str!("write.lua"), key);
        command.arg(value).arg(fence.as_u64()).arg(keep);
        match self.run(&mut command).await? {
            Value::Int(1) => Ok(()),
            Value::Int(0) => Err(Error::new(
                ErrorKind::Lost,
                "a later value is in the cache: the lock was lost while this one was loaded",
            )),
            _ => Err(unreadable()),
        }
    }

    fn script(&self, text: &str, key: &str) -> Cmd {
        let prefix = &self.link.options.prefix;
        let mut command = Cmd::new();
        command.arg("EVAL").arg(text).arg(1);
        command.arg(format!("{RESERVED}cache:{prefix}{key}"));
        command
    }

    async fn run(&self, command: &mut Cmd) -> Result<Value, Error> {
        let deadline = self.link.deadline();
        let sent = async {
            let live = self.link.live(deadline).await?;
            let answer = self.link.send(&live, command, deadline).await;
            answer.inspect_err(|failure: &Failure| {
                if failure.fatal {
                    self.link.discard(&live);
                }
            })
        };
        sent.await.map_err(|failure| failure.error())
    }
}

impl Coalesce {
    /// [`get`](Self::get) through a cache on Redis, of bytes. Needs [`fresh_for`](Self::fresh_for); a value is
    /// kept for that and [`stale_for`](Self::stale_for) together.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`ErrorKind::InvalidInput`] without `fresh_for`.
    ///
    /// # Cancel safety
    /// As [`get`](Self::get).
    pub async fn through<E, L>(
        &self,
        cache: &RedisCache,
        load: impl Fn() -> L,
    ) -> Result<Served<Vec<u8>, E>, E>
    where
        E: From<Error>,
        L: Future<Output = Result<Vec<u8>, E>>,
    {
        if self.fresh_for == Duration::MAX {
            let what = "how long is a value fresh? say `fresh_for`: a cache must forget";
            return Err(Error::new(ErrorKind::InvalidInput, what).into());
        }
        let keep = self.fresh_for.saturating_add(self.stale_for);
        let read = || async { Ok(cache.read(&self.key).await?) };
        let write = |value: Vec<u8>, fence| async move {
            cache.write(&self.key, &value, keep, fence).await?;
            Ok(())
        };
        self.get(read, load, write).await
    }
}

fn unreadable() -> Error {
    Error::new(
        ErrorKind::Protocol,
        "what is in the cache under this key was not written by tenure",
    )
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache")
            .field("options", &self.link.options)
            .finish()
    }
}
