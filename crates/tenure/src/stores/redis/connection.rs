//! [`Link`]: the one connection to the server. It is made when it is needed, replaced when it is
//! lost, and never waited for longer than a call may take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ProtocolVersion, Value};
use tenure_core::Moment;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::errors::{self, Failure};
use super::memory::Memory;
use super::options::{Address, Options};
use super::sentinel::Sentinels;
use super::subscription::{Listeners, SecondConnection};
use crate::clock::{Clock, bounded};

/// The connection to one server, with what listens on it.
pub(super) struct Link {
    pub(super) options: Options,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) memory: Arc<Memory>,
    /// Told when the connection is lost.
    pub(super) lost: Arc<Notify>,
    /// Who knows where the server is, if the URL does not.
    pub(super) sentinels: Option<Arc<Sentinels>>,
    /// Dropping the sender tells every call that is in flight.
    live: Mutex<Option<(Live, watch::Sender<()>)>>,
    pub(super) generations: AtomicU64,
    /// The latest generation that is known to have ended: a connection may do so before it is live.
    ended: AtomicU64,
    pub(super) watched: AtomicBool,
    /// Held while connecting or subscribing, so that these happen one at a time.
    pub(super) wire: tokio::sync::Mutex<Wire>,
    pub(super) me: Weak<Link>,
}

/// A connection that worked when we last looked.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    /// Where replicas are waited for, if that is asked for.
    pub(super) confirming: Option<MultiplexedConnection>,
    pub(super) generation: u64,
    pub(super) protocol: ProtocolVersion,
    /// Whether the server tells us of keys that change, if it is asked to.
    pub(super) watches: bool,
    /// Which start of which server this is; asked for only from the members of a quorum.
    pub(super) run: Option<Arc<str>>,
    /// Ends with the connection. The driver would keep it up for as long as any call waits on it.
    pub(super) given_up: watch::Receiver<()>,
    /// Where the server is.
    pub(super) address: Address,
}

impl Live {
    /// Which of all connections that were ever made.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

#[derive(Default)]
pub(super) struct Wire {
    /// The server refused RESP3 once: do not ask again.
    pub(super) fell_back: bool,
    /// Where pushes arrive under RESP2.
    pub(super) second: Option<SecondConnection>,
    pub(super) connected_before: bool,
    /// Listens to sentinels, from the first connection on.
    pub(super) watching: Option<JoinSet<()>>,
}

impl Link {
    pub(super) fn new(options: Options, clock: Arc<dyn Clock>) -> Arc<Self> {
        if options.address.is_tls() {
            // The driver's TLS library needs a default provider; if the application has installed
            // one, that one stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let memory = Arc::new(Memory::default());
        let sentinels = match &options.address {
            Address::Service(service) => Some(Arc::new(Sentinels::new(
                service.clone(),
                options.caution.max_ttl.duration(),
                clock.clone(),
            ))),
            _ => None,
        };
        Arc::new_cyclic(|me| Self {
            sentinels,
            listeners: Arc::new(Listeners::new(&options, memory.clone())),
            options,
            clock,
            memory,
            lost: Arc::default(),
            live: Mutex::default(),
            generations: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            watched: AtomicBool::new(false),
            wire: tokio::sync::Mutex::default(),
            me: me.clone(),
        })
    }

    /// By when a call that starts now must have ended.
    pub(super) fn deadline(&self) -> Moment {
        self.clock.now().plus(self.options.call_timeout)
    }

    /// A working connection, made now if there is none.
    pub(super) async fn live(&self, deadline: Moment) -> Result<Live, Failure> {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let connecting = async {
            let mut wire = self.wire.lock().await;
            match self.current() {
                Some(live) => Ok(live),
                None => self.connect(&mut wire).await,
            }
        };
        self.by(deadline, connecting).await
    }

    /// Sends one command.
    pub(super) async fn send(
        &self,
        live: &Live,
        command: &Cmd,
        deadline: Moment,
    ) -> Result<Value, Failure> {
        let mut connection = live.connection.clone();
        let sending = async {
            let sent = connection.send_packed_command(command).await;
            sent.map_err(|error| errors::from_driver(&error, &self.options.address))
        };
        self.in_flight(live, deadline, sending).await
    }

    /// Sends several commands at once; error replies are among the values.
    pub(super) async fn send_all(
        &self,
        live: &Live,
        commands: &Pipeline,
        deadline: Moment,
    ) -> Result<Vec<Value>, Failure> {
        self.send_on(live.connection.clone(), live, commands, deadline)
            .await
    }

    /// The same on the connection that may be held up.
    pub(super) async fn send_confirming(
        &self,
        live: &Live,
        commands: &Pipeline,
        deadline: Moment,
    ) -> Result<Vec<Value>, Failure> {
        let connection = live.confirming.clone();
        let connection = connection.unwrap_or_else(|| live.connection.clone());
        self.send_on(connection, live, commands, deadline).await
    }

    async fn send_on(
        &self,
        mut connection: MultiplexedConnection,
        live: &Live,
        commands: &Pipeline,
        deadline: Moment,
    ) -> Result<Vec<Value>, Failure> {
        let sending = async {
            let sent = connection
                .send_packed_commands(commands, 0, commands.len())
                .await;
            sent.map_err(|error| errors::from_driver(&error, &self.options.address))
        };
        self.in_flight(live, deadline, sending).await
    }

    /// Gives up a connection that can no longer be trusted. Everything in flight on it fails.
    pub(super) fn discard(&self, live: &Live) {
        self.discard_generation(live.generation);
    }

    /// Which start of which server is at the other end now, where that is asked for.
    pub(super) fn run(&self) -> Option<Arc<str>> {
        let current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().and_then(|(live, _)| live.run.clone())
    }

    /// Whether this connection is still the one in use.
    pub(super) fn is_current(&self, live: &Live) -> bool {
        self.current()
            .is_some_and(|current| current.generation == live.generation)
    }

    /// Gives up a connection to any other server than this one.
    pub(super) fn leave_unless_at(&self, address: &Address) {
        if let Some(live) = self.current().filter(|live| live.address != *address) {
            self.discard(&live);
        }
    }

    pub(super) fn discard_generation(&self, generation: u64) {
        let mut current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended.fetch_max(generation, Ordering::AcqRel);
        if current
            .as_ref()
            .is_some_and(|(live, _)| live.generation == generation)
        {
            *current = None;
            self.lost.notify_one();
        }
    }

    pub(super) fn current(&self) -> Option<Live> {
        let current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map(|(live, _)| live.clone())
    }

    pub(super) fn install(&self, live: &Live, kept: watch::Sender<()>) -> Result<(), Failure> {
        let mut current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ended.load(Ordering::Acquire) >= live.generation {
            return Err(Failure::cut(&self.options.address));
        }
        *current = Some((live.clone(), kept));
        Ok(())
    }

    pub(super) async fn by<T>(
        &self,
        deadline: Moment,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let left = deadline.since(self.clock.now());
        let done = bounded(&*self.clock, left, work).await;
        done.unwrap_or_else(|| {
            Err(Failure::timeout(self.options.call_timeout).at(&self.options.address))
        })
    }

    /// Something that waits for an answer: it fails with its connection, and a failure that says so
    /// ends the connection for all others.
    pub(super) async fn in_flight<T>(
        &self,
        live: &Live,
        deadline: Moment,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut given_up = live.given_up.clone();
        let outcome = self.by(deadline, async {
            tokio::select! {
                biased;
                outcome = work => outcome,
                // Nothing is ever sent: this is the end of the sender.
                _ = given_up.changed() => Err(Failure::given_up(&self.options.address)),
            }
        });
        let outcome = outcome.await;
        if outcome.as_ref().is_err_and(|failure| failure.fatal) {
            self.discard(live);
        }
        outcome
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
