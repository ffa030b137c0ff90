//! [`Link`]: the one connection to the server. It is made when it is needed, replaced when it is
//! lost, and never waited for longer than a call may take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, PushInfo, PushKind, Value,
};
use tenure_core::{ErrorKind, Inbox, Listener, Moment};
use tokio::sync::{Notify, watch};

use super::errors::{self, Failure};
use super::options::Options;
use super::subscription::{self, Listeners, SecondConnection};
use crate::clock::{Clock, bounded};

/// Connecting takes one round trip or two; a server that needs longer is as good as down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection to one server, with what listens on it.
pub(super) struct Link {
    pub(super) options: Options,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) listeners: Arc<Listeners>,
    /// Told when the connection is lost.
    pub(super) lost: Arc<Notify>,
    /// Dropping the sender tells every call that is in flight.
    live: Mutex<Option<(Live, watch::Sender<()>)>>,
    generations: AtomicU64,
    /// The latest generation that is known to have ended: a connection may do so before it is live.
    ended: AtomicU64,
    watched: AtomicBool,
    /// Held while connecting or subscribing, so that these happen one at a time.
    wire: tokio::sync::Mutex<Wire>,
    me: Weak<Link>,
}

/// A connection that worked when we last looked.
#[derive(Clone)]
pub(super) struct Live {
    connection: MultiplexedConnection,
    generation: u64,
    pub(super) protocol: ProtocolVersion,
    /// Ends with the connection. The driver would keep it up for as long as any call waits on it.
    given_up: watch::Receiver<()>,
}

#[derive(Default)]
struct Wire {
    /// The server refused RESP3 once: do not ask again.
    fell_back: bool,
    /// Where pushes arrive under RESP2.
    second: Option<SecondConnection>,
    connected_before: bool,
}

impl Link {
    pub(super) fn new(options: Options, clock: Arc<dyn Clock>) -> Arc<Self> {
        if options.address.is_tls() {
            // The driver's TLS library needs a default provider; if the application has installed
            // one, that one stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Arc::new_cyclic(|me| Self {
            listeners: Arc::new(Listeners::new(&options)),
            options,
            clock,
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
        let mut connection = live.connection.clone();
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

    /// Starts to listen at `inbox`, and from then on keeps the connection up in the background.
    pub(super) async fn listen(
        &self,
        inbox: &Inbox,
        listener: Weak<dyn Listener>,
    ) -> Result<(), Failure> {
        let deadline = self.deadline();
        let channel = self.listeners.add(inbox, listener);
        let subscribing = async {
            let mut wire = self.wire.lock().await;
            match self.current() {
                Some(live) => {
                    self.subscribe(&live, &mut wire, std::slice::from_ref(&channel))
                        .await
                }
                None => self.connect(&mut wire).await.map(drop),
            }
        };
        let outcome = self.by(deadline, subscribing).await;
        if outcome.is_err() {
            self.listeners.remove(&channel);
        } else if !self.watched.swap(true, Ordering::AcqRel) {
            tokio::spawn(subscription::keep_connected(self.me.clone()));
        }
        outcome
    }

    /// Gives up the channels of listeners that are gone, so that they no longer count as reachable.
    pub(super) async fn tidy(&self) {
        let gone = self.listeners.drop_gone();
        let (false, Some(live)) = (gone.is_empty(), self.current()) else {
            return;
        };
        let deadline = self.deadline();
        let unsubscribing = async {
            let mut wire = self.wire.lock().await;
            let done = match &mut wire.second {
                Some(second) => second.unsubscribe(&gone).await,
                None => live.connection.clone().unsubscribe(&gone).await,
            };
            done.map_err(|error| errors::from_driver(&error, &self.options.address))
        };
        let _ = self.in_flight(&live, deadline, unsubscribing).await;
    }

    async fn connect(&self, wire: &mut Wire) -> Result<Live, Failure> {
        wire.second = None;
        let generation = self.generations.fetch_add(1, Ordering::AcqRel) + 1;
        let (kept, given_up) = watch::channel(());
        let opening = self.open(generation, &given_up, wire);
        let opening = bounded(&*self.clock, CONNECT_TIMEOUT, opening);
        let opened = opening.await;
        let address = &self.options.address;
        let live = opened.unwrap_or_else(|| Err(Failure::unconnected(CONNECT_TIMEOUT, address)))?;
        let channels = self.listeners.channels();
        if !channels.is_empty() {
            self.subscribe(&live, wire, &channels).await?;
        }
        self.install(&live, kept)?;
        if std::mem::replace(&mut wire.connected_before, true) {
            self.listeners.missed();
        }
        Ok(live)
    }

    fn install(&self, live: &Live, kept: watch::Sender<()>) -> Result<(), Failure> {
        let mut current = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ended.load(Ordering::Acquire) >= live.generation {
            return Err(Failure::cut(&self.options.address));
        }
        *current = Some((live.clone(), kept));
        Ok(())
    }

    /// Opens the connection, with RESP3 unless the URL or the server says otherwise.
    async fn open(
        &self,
        generation: u64,
        given_up: &watch::Receiver<()>,
        wire: &mut Wire,
    ) -> Result<Live, Failure> {
        let wanted = self.options.protocol;
        let open_with = |protocol| self.open_with(generation, given_up.clone(), protocol);
        if wanted == Some(ProtocolVersion::RESP2) || wire.fell_back {
            return open_with(ProtocolVersion::RESP2).await;
        }
        let opened = open_with(ProtocolVersion::RESP3).await;
        match opened {
            // Old servers do not know HELLO; some users and proxies may not say it.
            Err(failure)
                if wanted.is_none()
                    && matches!(failure.kind, ErrorKind::Unsupported | ErrorKind::Forbidden) =>
            {
                let live = open_with(ProtocolVersion::RESP2).await?;
                wire.fell_back = true;
                Ok(live)
            }
            opened => opened,
        }
    }

    async fn open_with(
        &self,
        generation: u64,
        given_up: watch::Receiver<()>,
        protocol: ProtocolVersion,
    ) -> Result<Live, Failure> {
        let failed = |error: redis::RedisError| errors::from_driver(&error, &self.options.address);
        let info = self.options.connection_info(protocol).map_err(failed)?;
        let client = Client::open(info).map_err(failed)?;
        // Both time-outs are ours, by our clock.
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        if protocol == ProtocolVersion::RESP3 {
            config = config.set_push_sender(self.receiver(generation));
        }
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let connection = opening.await.map_err(failed)?;
        Ok(Live {
            connection,
            generation,
            protocol,
            given_up,
        })
    }

    /// What the driver calls, in its own task, for each push and at the end of the connection.
    fn receiver(
        &self,
        generation: u64,
    ) -> impl Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync + 'static {
        let (listeners, link) = (self.listeners.clone(), self.me.clone());
        move |push: PushInfo| {
            match (push.kind, push.data.as_slice()) {
                (PushKind::Message, [Value::BulkString(channel), Value::BulkString(text)]) => {
                    listeners.deliver(channel, text);
                }
                (PushKind::Disconnection, _) => {
                    if let Some(link) = link.upgrade() {
                        link.discard_generation(generation);
                    }
                }
                _ => {}
            }
            Ok(())
        }
    }

    async fn subscribe(
        &self,
        live: &Live,
        wire: &mut Wire,
        channels: &[String],
    ) -> Result<(), Failure> {
        let failed = |error: redis::RedisError| errors::from_driver(&error, &self.options.address);
        if live.protocol == ProtocolVersion::RESP3 {
            return live
                .connection
                .clone()
                .subscribe(channels)
                .await
                .map_err(failed);
        }
        let mut second = match wire.second.take() {
            Some(second) => second,
            None => {
                let info = self
                    .options
                    .connection_info(live.protocol)
                    .map_err(failed)?;
                let client = Client::open(info).map_err(failed)?;
                let link = self.me.clone();
                SecondConnection::open(&client, link, self.listeners.clone(), live.generation)
                    .await
                    .map_err(failed)?
            }
        };
        second.subscribe(channels).await.map_err(failed)?;
        wire.second = Some(second);
        Ok(())
    }

    async fn by<T>(
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
    async fn in_flight<T>(
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
