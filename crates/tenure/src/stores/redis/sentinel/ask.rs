//! [`Sentinel`]: one of them, and what it says.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, ProtocolVersion, Value};
use tenure_core::{ErrorKind, Moment};

use super::super::errors::{self, Failure};
use super::super::options::{Address, Credentials, connection_info};
use super::service::Service;

/// One sentinel. Whatever goes wrong on its connection, the next question makes a new one.
pub(super) struct Sentinel {
    pub(super) address: Address,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
    /// The newest vote that it was seen to have cast, and since when.
    vote: Mutex<Option<(u64, Moment)>>,
}

/// What a sentinel says about a server that is taken to be the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Tells sentinels apart that have several addresses.
    pub(super) id: String,
    /// Whom it names.
    pub(super) primary: Option<(String, u16)>,
    /// How many there are, as far as it knows.
    pub(super) sentinels: usize,
    /// For whom it has voted in a failover that it does not know to have ended.
    pub(super) voted_for: Option<String>,
    /// It is carrying out a failover.
    pub(super) fails_over: bool,
}

impl View {
    /// Whether it names this server.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        let named = self.primary.as_ref();
        named.is_some_and(|(named, at)| named == host && *at == port)
    }
}

impl Sentinel {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            connection: tokio::sync::Mutex::default(),
            vote: Mutex::default(),
        }
    }

    /// Whom it names; `None` if it does not know the service.
    pub(super) async fn primary(
        &self,
        service: &Service,
    ) -> Result<Option<(String, u16)>, Failure> {
        let mut commands = redis::pipe();
        commands
            .cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&service.name);
        let values = self.send(&commands, service).await?;
        Ok(host_and_port(values.first()))
    }

    /// What it says about the server at `host` and `port`. A vote that was cast for a failover which
    /// then was given up counts for twice the failover's time limit, unless whom it was for says that
    /// it is over: nothing else tells it from one that is still going on.
    pub(super) async fn look(
        &self,
        service: &Service,
        (host, port): (&str, u16),
        now: Moment,
    ) -> Result<View, Failure> {
        let mut commands = redis::pipe();
        commands.cmd("SENTINEL").arg("MYID");
        commands
            .cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&service.name);
        commands.cmd("SENTINEL").arg("MASTER").arg(&service.name);
        // Epoch 0: it tells the last vote and casts none. Last, so that no vote is missed which is
        // cast between the commands.
        let vote = commands.cmd("SENTINEL").arg("IS-MASTER-DOWN-BY-ADDR");
        vote.arg(host).arg(port).arg(0).arg("tenure");
        let values = self.send(&commands, service).await?;
        let [id, primary, about, vote] = &values[..] else {
            return Err(Failure::protocol("a sentinel answered too little").at(&self.address));
        };
        let about: HashMap<String, String> =
            redis::from_redis_value(about.clone()).unwrap_or_default();
        let number = |key: &str| about.get(key).and_then(|text| text.parse::<u64>().ok());
        let (leader, vote_epoch) =
            vote_of(vote).ok_or_else(|| Failure::protocol("a sentinel does not tell its vote"))?;
        let patience = Duration::from_millis(number("failover-timeout").unwrap_or(180_000)) * 2;
        let pending = vote_epoch > number("config-epoch").unwrap_or(0);
        Ok(View {
            // Before Redis 6.2 they do not tell: then by address.
            id: redis::from_redis_value(id.clone()).unwrap_or_else(|_| self.address.to_string()),
            primary: host_and_port(Some(primary)),
            sentinels: 1 + usize::try_from(number("num-other-sentinels").unwrap_or(0))
                .unwrap_or(usize::MAX - 1),
            voted_for: (pending && !self.is_old(vote_epoch, now, patience)).then_some(leader),
            fails_over: about
                .get("flags")
                .is_none_or(|flags| flags.contains("failover_in_progress")),
        })
    }

    /// Gives up a connection on which an answer did not come in time.
    pub(super) fn hang_up(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }

    /// Whether this vote has been seen for longer than `patience`.
    fn is_old(&self, epoch: u64, now: Moment, patience: Duration) -> bool {
        let mut vote = self.vote.lock().unwrap_or_else(PoisonError::into_inner);
        match *vote {
            Some((known, since)) if known == epoch => now.since(since) >= patience,
            _ => {
                *vote = Some((epoch, now));
                false
            }
        }
    }

    /// A client for what this sentinel announces.
    pub(super) fn client(&self, service: &Service) -> Result<Client, Failure> {
        let failed = |error: redis::RedisError| self.failure(&error);
        let credentials = Credentials {
            user: service.user.as_deref(),
            password: service.password.as_deref(),
        };
        // They may be older than the servers and not know RESP3.
        let info = connection_info(&self.address, credentials, 0, ProtocolVersion::RESP2);
        Client::open(info.map_err(failed)?).map_err(failed)
    }

    async fn send(&self, commands: &Pipeline, service: &Service) -> Result<Vec<Value>, Failure> {
        let mut connection = self.connect(service).await?;
        let sent = connection
            .send_packed_commands(commands, 0, commands.len())
            .await;
        let values = match sent {
            Ok(values) => values,
            Err(error) => {
                *self.connection.lock().await = None;
                return Err(self.failure(&error));
            }
        };
        let refused = values.iter().find_map(|value| match value {
            Value::ServerError(error) if error.code() == "NOAUTH" => Some(self.unauthorized()),
            _ => None,
        });
        refused.map_or(Ok(values), Err)
    }

    async fn connect(&self, service: &Service) -> Result<MultiplexedConnection, Failure> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = &*current {
            return Ok(connection.clone());
        }
        let client = self.client(service)?;
        // The caller has a time limit, by our clock.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let connection = opening.await.map_err(|error| self.failure(&error))?;
        Ok(current.insert(connection).clone())
    }

    fn failure(&self, error: &redis::RedisError) -> Failure {
        let failure = errors::from_driver(error, &self.address);
        match failure.kind {
            ErrorKind::Unauthorized => self.unauthorized(),
            _ => failure,
        }
    }

    fn unauthorized(&self) -> Failure {
        Failure::new(
            ErrorKind::Unauthorized,
            "a sentinel refused the credentials: sentinels have their own, which the URL gives as \
             ?sentinel_user= and ?sentinel_pass=",
        )
        .at(&self.address)
    }
}

fn host_and_port(value: Option<&Value>) -> Option<(String, u16)> {
    let (host, port): (String, String) = redis::from_redis_value(value?.clone()).ok()?;
    Some((host, port.parse().ok()?))
}

/// Of: taken to be down, voted for whom, in which epoch.
fn vote_of(value: &Value) -> Option<(String, u64)> {
    let Value::Array(parts) = value else {
        return None;
    };
    let leader = redis::from_redis_value(parts.get(1)?.clone()).unwrap_or_default();
    match parts.get(2)? {
        Value::Int(epoch) => Some((leader, u64::try_from(*epoch).ok()?)),
        _ => None,
    }
}
