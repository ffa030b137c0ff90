//! The same locks without async: for threads, build scripts and `main`s that have no runtime.
//!
//! A thread of its own runs the client (leases are renewed there), and every call blocks the calling
//! thread until it is done.
//!
//! # What is not guaranteed
//! Must not be used inside an async task: a call would block its runtime, and tokio panics.
//!
//! ```
//! let tenure = tenure::blocking::connect("memory:")?;
//! let guard = tenure.acquire(tenure.client().lock("x"))?;
//! println!("fence {}", guard.fence());
//! guard.release()?;
//! # Ok::<(), tenure::Error>(())
//! ```

use std::ops::Deref;
use std::sync::Arc;
use std::thread;

use tenure_core::{Error, ErrorKind};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::Lock;

/// Connects to the store that `url` names; see [`connect`](crate::connect).
///
/// # Errors
/// As [`connect`](crate::connect), and [`ErrorKind::Configuration`] if no thread can be started.
pub fn connect(url: &str) -> Result<Tenure, Error> {
    let engine = Arc::new(Engine::start()?);
    let client = engine.handle.block_on(crate::connect(url))?;
    Ok(Tenure { client, engine })
}

/// A client that blocks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tenure {
    client: crate::Tenure,
    engine: Arc<Engine>,
}

/// A held lock; everything that needs no waiting is on [`crate::Guard`], which it dereferences to.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    // Before the engine: dropped first, so that its release can still be sent.
    guard: crate::Guard,
    engine: Arc<Engine>,
}

/// What [`Tenure::try_acquire`] found.
#[derive(Debug)]
#[must_use = "an acquired lock is released when it is dropped"]
pub enum Attempt {
    /// It is yours.
    Acquired(Guard),
    /// Somebody is in the way.
    Busy(crate::Blocked),
}

impl Tenure {
    /// The client, to describe locks with.
    #[must_use]
    pub fn client(&self) -> &crate::Tenure {
        &self.client
    }

    /// See [`Lock::acquire`].
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn acquire(&self, lock: Lock) -> Result<Guard, Error> {
        let guard = self.engine.handle.block_on(lock.acquire())?;
        Ok(Guard {
            guard,
            engine: self.engine.clone(),
        })
    }

    /// See [`Lock::try_acquire`].
    ///
    /// # Errors
    /// As [`Lock::try_acquire`].
    pub fn try_acquire(&self, lock: Lock) -> Result<Attempt, Error> {
        Ok(match self.engine.handle.block_on(lock.try_acquire())? {
            crate::Attempt::Acquired(guard) => Attempt::Acquired(Guard {
                guard,
                engine: self.engine.clone(),
            }),
            crate::Attempt::Busy(blocked) => Attempt::Busy(blocked),
        })
    }

    /// Waits for anything else that the async face offers.
    ///
    /// ```
    /// let tenure = tenure::blocking::connect("memory:")?;
    /// let number = tenure.block_on(tenure.client().sequence("orders").next())?;
    /// let both = tenure.block_on(tenure.client().all(["a", "b"]).acquire())?;
    /// tenure.block_on(both.release())?;
    /// let term = tenure.block_on(tenure.client().election("scheduler").campaign())?;
    /// tenure.block_on(term.resign())?;
    /// # Ok::<(), tenure::Error>(())
    /// ```
    ///
    /// # Panics
    /// Inside an async task, like everything here.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.engine.handle.block_on(work)
    }

    /// See [`crate::Tenure::release_all`].
    ///
    /// # Errors
    /// As [`crate::Tenure::release_all`].
    pub fn release_all(&self) -> Result<usize, Error> {
        self.engine.handle.block_on(self.client.release_all())
    }
}

impl Guard {
    /// See [`crate::Guard::release`].
    ///
    /// # Errors
    /// As [`crate::Guard::release`].
    pub fn release(self) -> Result<(), Error> {
        self.engine.handle.block_on(self.guard.release())
    }

    /// See [`crate::Guard::extend`].
    ///
    /// # Errors
    /// As [`crate::Guard::extend`].
    pub fn extend(&self, ttl: std::time::Duration) -> Result<(), Error> {
        self.engine.handle.block_on(self.guard.extend(ttl))
    }

    /// See [`crate::Guard::downgrade`].
    ///
    /// # Errors
    /// As [`crate::Guard::downgrade`].
    pub fn downgrade(&self) -> Result<(), Error> {
        self.engine.handle.block_on(self.guard.downgrade())
    }
}

impl Deref for Guard {
    type Target = crate::Guard;

    fn deref(&self) -> &crate::Guard {
        &self.guard
    }
}

/// The thread that runs the client.
#[derive(Debug)]
struct Engine {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Engine {
    fn start() -> Result<Self, Error> {
        let failed = |cause: std::io::Error| {
            Error::new(ErrorKind::Configuration, "cannot start the client's thread").because(cause)
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            // Ends when the sender is dropped. Then a last turn for releases on their way.
            let _ = runtime.block_on(stopped);
            runtime.block_on(last_releases());
        };
        let builder = thread::Builder::new().name("tenure".to_owned());
        let thread = builder.spawn(run).map_err(failed)?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Only a panic in the client's thread makes this fail, and then there is nothing to do.
            let _ = thread.join();
        }
    }
}

/// Lets the keeper give back what was dropped just now, for a moment at most.
async fn last_releases() {
    let Some(metrics) = Handle::try_current().ok().map(|handle| handle.metrics()) else {
        return;
    };
    for _ in 0..100 {
        if metrics.num_alive_tasks() == 0 {
            return;
        }
        pause().await;
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "bounds a shutdown; no lease depends on it"
)]
async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
}
