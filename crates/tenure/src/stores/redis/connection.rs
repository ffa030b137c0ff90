//! [`Link`]: the one connection to the server. It is made when it is needed, replaced when it is
//! lost, and never waited for longer than a call may take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, PushInfo, PushKind, Value,
};
use tenure_core::{ErrorKind, Inbox, Listener, Moment, Push};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::errors::{self, Failure};
use super::memory::Memory;
use super::options::{Address, Options};
use super::sentinel::{self, Sentinels};
use super::subscription::{self, Listeners, SecondConnection};
use super::watching;
use crate::clock::{Clock, bounded};

/// Connecting takes one round trip or two; a server that needs longer is as good as down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

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
    pub(super) generation: u64,
    pub(super) protocol: ProtocolVersion,
    /// Whether the server tells us of keys that change, if it is asked to.
    pub(super) watches: bool,
    /// Ends with the connection. The driver would keep it up for as long as any call waits on it.
    given_up: watch::Receiver<()>,
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
struct Wire {
    /// The server refused RESP3 once: do not ask again.
    fell_back: bool,
    /// Where pushes arrive under RESP2.
    second: Option<SecondConnection>,
    connected_before: bool,
    /// Listens to sentinels, from the first connection on.
    watching: Option<JoinSet<()>>,
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
        let mut live = match self.sentinels.clone() {
            None => {
                let address = self.options.address.clone();
                self.open_at(address, generation, &given_up, wire).await?
            }
            Some(sentinels) => {
                self.open_primary(&sentinels, generation, &given_up, wire)
                    .await?
            }
        };
        live.watches = watching::begin(self, &live).await;
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

    /// Opens a connection to whichever server the sentinels name that calls itself a primary.
    async fn open_primary(
        &self,
        sentinels: &Arc<Sentinels>,
        generation: u64,
        given_up: &watch::Receiver<()>,
        wire: &mut Wire,
    ) -> Result<Live, Failure> {
        let mut failure = None;
        for address in sentinels.primaries().await? {
            let opened = self.open_at(address, generation, given_up, wire).await;
            match async { primary(opened?).await }.await {
                Ok(live) => {
                    let watching = || sentinel::watch(sentinels, &self.me, &self.clock);
                    wire.watching.get_or_insert_with(watching);
                    return Ok(live);
                }
                Err(other) => failure = Some(other),
            }
        }
        Err(failure.unwrap_or_else(|| Failure::cut(&self.options.address)))
    }

    async fn open_at(
        &self,
        address: Address,
        generation: u64,
        given_up: &watch::Receiver<()>,
        wire: &mut Wire,
    ) -> Result<Live, Failure> {
        let opening = self.open(&address, generation, given_up, wire);
        let opened = bounded(&*self.clock, CONNECT_TIMEOUT, opening).await;
        opened.unwrap_or_else(|| Err(Failure::unconnected(CONNECT_TIMEOUT, &address)))
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
        address: &Address,
        generation: u64,
        given_up: &watch::Receiver<()>,
        wire: &mut Wire,
    ) -> Result<Live, Failure> {
        let wanted = self.options.protocol;
        let open_with = |protocol| self.open_with(address, generation, given_up.clone(), protocol);
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
        address: &Address,
        generation: u64,
        given_up: watch::Receiver<()>,
        protocol: ProtocolVersion,
    ) -> Result<Live, Failure> {
        let failed = |error: redis::RedisError| errors::from_driver(&error, address);
        let info = self.options.connection_info(address, protocol);
        let info = info.map_err(failed)?;
        let client = Client::open(info).map_err(failed)?;
        // Both time-outs are ours, by our clock.
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        if protocol == ProtocolVersion::RESP3 {
            config = config.set_push_sender(self.receiver(address.clone(), generation));
        }
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let connection = opening.await.map_err(failed)?;
        Ok(Live {
            connection,
            generation,
            protocol,
            watches: false,
            given_up,
            address: address.clone(),
        })
    }

    /// What the driver calls, in its own task, for each push and at the end of the connection.
    fn receiver(
        &self,
        address: Address,
        generation: u64,
    ) -> impl Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync + 'static {
        let (listeners, link) = (self.listeners.clone(), self.me.clone());
        move |push: PushInfo| {
            match (push.kind, push.data.as_slice()) {
                (PushKind::Message, [Value::BulkString(channel), Value::BulkString(text)]) => {
                    deliver(&listeners, &link, &address, channel, text);
                }
                (PushKind::Invalidate, keys) => watching::told(&listeners, keys),
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
                let info = self.options.connection_info(&live.address, live.protocol);
                let client = Client::open(info.map_err(failed)?).map_err(failed)?;
                let link = self.me.clone();
                SecondConnection::open(&client, link, live, self.listeners.clone())
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

/// Refuses a server that is not, or is no longer, a primary: a sentinel may be wrong or late.
async fn primary(live: Live) -> Result<Live, Failure> {
    let role = redis::cmd("ROLE");
    let answer = live.connection.clone().send_packed_command(&role).await;
    let answer = answer.map_err(|error| errors::from_driver(&error, &live.address))?;
    let role = match answer {
        Value::Array(parts) => parts.into_iter().next(),
        Value::ServerError(error) => return Err(errors::from_server(&error).at(&live.address)),
        _ => None,
    };
    match role {
        Some(Value::BulkString(role)) if role == b"master" => Ok(live),
        _ => {
            let message = "the server that the sentinels name is not a primary: a failover is \
                           under way, or they are not up to date";
            Err(Failure::new(ErrorKind::Unavailable, message).at(&live.address))
        }
    }
}

/// Passes on a push; under Sentinel only once it is sure that it comes from the primary.
pub(super) fn deliver(
    listeners: &Arc<Listeners>,
    link: &Weak<Link>,
    address: &Address,
    channel: &[u8],
    text: &[u8],
) {
    let Some((listener, push)) = listeners.read(channel, text) else {
        return;
    };
    let link = link.upgrade();
    let sentinels = link.as_ref().and_then(|link| link.sentinels.clone());
    let (Some(link), Some(sentinels), Push::Granted(grant)) = (link, sentinels, &push) else {
        return listener.pushed(push);
    };
    let (address, grant) = (address.clone(), grant.clone());
    tokio::spawn(async move {
        let vouching = sentinels.vouch_for_push(&address, grant, link.deadline());
        // Otherwise it is not told; the waiter asks again by itself.
        if let Some(grant) = vouching.await {
            listener.pushed(Push::Granted(grant));
        }
    });
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
