//! [`Coalesce`]: of all who miss the same value, one loads it and the others read what it wrote.

mod lead;
mod served;

use std::time::Duration;

use tenure_core::{Error, Fence, LockName, Moment};

use crate::acquire::Wait;
use crate::client::Tenure;
use crate::lock::{Attempt, Lock};
use crate::random;

use lead::{Led, lead};
pub use served::{Cached, Served, Source};

/// Rebuilds a cached value once in the whole fleet, however many miss it at the same moment.
///
/// # What is not guaranteed
/// - **That it is loaded only once**: a loader whose process is paused past its lease wakes up and goes
///   on beside its successor. So loading twice must be harmless, and `write` is given a [`Fence`] with which the cache can
///   refuse the older value.
/// - That a value is new: whoever reads the cache gets what is in it, and what changes at the source
///   while it is loaded is not noticed. This is about load, not about consistency.
///
/// # How it works
/// Read; if there is nothing: take the lock of this key, **read again**, load, write, release. Those
/// who wait for the lock go on reading, so they have the value as soon as it is written. If loading fails, whoever
/// loaded gets the error and *one* of those who wait tries next, not all; if its process dies,
/// one takes over when the lease ends (at once where the store sees a process die).
///
/// | option | if nothing is said |
/// |---|---|
/// | [`fresh_for`](Self::fresh_for) | whatever is in the cache is fresh |
/// | [`stale_for`](Self::stale_for) | what is not fresh is not used |
/// | [`wait`](Self::wait) | 10 s for somebody else's loading |
/// | [`ttl`](Self::ttl) | 10 s, renewed for as long as loading takes |
///
/// In one process many tasks may ask; put a cache in memory before it (`moka`, `try_get_with`) if each
/// of them reading the shared cache is too much.
///
/// ```
/// # use std::sync::Mutex;
/// use tenure::{Cached, Error};
///
/// # async fn example() -> Result<(), tenure::Error> {
/// # let tenure = tenure::connect("memory:").await?;
/// let cache: Mutex<Option<String>> = Mutex::default(); // yours; shared by the fleet in real life
/// let page = tenure.coalesce("page/1");
/// let page = page.get(
///     || async { Ok::<_, Error>(cache.lock().unwrap().clone().map(Cached::fresh)) }, // read
///     || async { Ok("<h1>slow to build</h1>".to_owned()) },                          // load
///     |page, _fence| { *cache.lock().unwrap() = Some(page); async { Ok(()) } },      // write
/// );
/// assert_eq!(page.await?.value, "<h1>slow to build</h1>");
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Coalesce {
    tenure: Tenure,
    pub(crate) key: String,
    pub(crate) fresh_for: Duration,
    pub(crate) stale_for: Duration,
    wait: Duration,
    ttl: Duration,
}

/// The last part of its fresh time, in which a value may be loaded anew before it is missed.
const EARLY: u32 = 10;
const LONGEST_EARLY: Duration = Duration::from_secs(3_600);

/// How often those who wait look whether the value is there: soon, then less often.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Coalesce {
    pub(crate) fn new(tenure: Tenure, key: String) -> Self {
        Self {
            tenure,
            key,
            fresh_for: Duration::MAX,
            stale_for: Duration::ZERO,
            wait: Duration::from_secs(10),
            ttl: Duration::from_secs(10),
        }
    }

    /// How long a value is fresh. In the last tenth of that time it may already be loaded anew, each call
    /// with another threshold: then nobody ever waits for a value that is asked for often.
    #[must_use]
    pub fn fresh_for(mut self, time: Duration) -> Self {
        self.fresh_for = time;
        self
    }

    /// How long after that it may still be served, while one caller loads it anew (inside its own
    /// call) or if that fails. Keep values in the cache for as long as both together.
    #[must_use]
    pub fn stale_for(mut self, time: Duration) -> Self {
        self.stale_for = time;
        self
    }

    /// How long to wait at most while somebody else loads. Loading itself takes as long as it takes.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long others wait if the process that loads dies: 100 ms to 366 days.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The value: from the cache, or loaded by whoever is first.
    ///
    /// `read` looks into the cache, `load` makes the value, `write` puts it into the cache: refuse it there if a
    /// value with a higher fence is in it.
    ///
    /// # Errors
    /// What `read` and `load` answer. [`Busy`](crate::ErrorKind::Busy) if somebody else loads for longer
    /// than the [`wait`](Self::wait), and [`Unavailable`](crate::ErrorKind::Unavailable) if the store of the lock could not be asked: then
    /// nothing is loaded, because that is the stampede. A value that may still be served
    /// is served in spite of all but an error of `read`, and `failed` says what went wrong.
    ///
    /// # Cancel safety
    /// Dropping the future drops `load` and gives the lock back in the background; somebody who waits
    /// takes over. It may have been written.
    pub async fn get<V, E, R, L, W>(
        &self,
        read: impl Fn() -> R,
        load: impl Fn() -> L,
        write: impl Fn(V, Fence) -> W,
    ) -> Result<Served<V, E>, E>
    where
        V: Clone,
        E: From<Error>,
        R: Future<Output = Result<Option<Cached<V>>, E>>,
        L: Future<Output = Result<V, E>>,
        W: Future<Output = Result<(), E>>,
    {
        // Not `AsyncFn`: a future that calls one cannot be spawned.
        LockName::new(&self.key)?;
        let early = (self.fresh_for / EARLY).min(LONGEST_EARLY);
        let due = self.fresh_for - random::up_to(early);
        let deadline = self.tenure.clock().now().plus(self.wait);
        loop {
            match self.usable(read().await?) {
                Some(found) if found.age < due => return Ok(self.served(found)),
                Some(old) => {
                    let lock = self.lock(Duration::ZERO).try_acquire().await;
                    let led = match lock {
                        Ok(Attempt::Acquired(guard)) => {
                            lead(guard, due, &read, &load, &write).await
                        }
                        Ok(Attempt::Busy(_)) => Led::Lost,
                        Err(error) => Led::Failed(error.into()),
                    };
                    return Ok(led.or_else(self.served(old)));
                }
                None => {}
            }
            let guard = tokio::select! {
                biased;
                guard = self.lock(self.left_until(deadline)).acquire() => guard?,
                found = self.appears(&read) => return Ok(self.served(found?)),
            };
            match lead(guard, due, &read, &load, &write).await {
                Led::Served(served) => return Ok(served),
                Led::Failed(error) => return Err(error),
                Led::Lost => {}
            }
        }
    }

    /// Waits until it is in the cache.
    async fn appears<V, E, R>(&self, read: &impl Fn() -> R) -> Result<Cached<V>, E>
    where
        R: Future<Output = Result<Option<Cached<V>>, E>>,
    {
        let mut pause = FIRST_LOOK;
        loop {
            let paused = self.tenure.clock().sleep(random::jittered(pause));
            paused.await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            if let Some(found) = self.usable(read().await?) {
                return Ok(found);
            }
        }
    }

    fn usable<V>(&self, found: Option<Cached<V>>) -> Option<Cached<V>> {
        let keeps = self.fresh_for.saturating_add(self.stale_for);
        found.filter(|found| found.age < keeps)
    }

    fn served<V, E>(&self, found: Cached<V>) -> Served<V, E> {
        let Cached { value, age } = found;
        let source = if age < self.fresh_for {
            Source::Cache
        } else {
            Source::Stale { age }
        };
        Served {
            value,
            source,
            failed: None,
        }
    }

    /// Never zero, which would mean to ask only once.
    fn left_until(&self, deadline: Moment) -> Duration {
        let left = deadline.since(self.tenure.clock().now());
        left.max(Duration::from_nanos(1))
    }

    fn lock(&self, wait: Duration) -> Lock {
        let lock = self.tenure.lock(format!("~coalesce:{}", self.key));
        lock.reserved().ttl(self.ttl).waiting(Wait::For(wait))
    }
}
