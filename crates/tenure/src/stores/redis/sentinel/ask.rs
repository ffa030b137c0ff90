//! [`Sentinel`]: one of them, and what it says.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, ProtocolVersion, Value};
use tenure_core::ErrorKind;

use super::super::errors::{self, Failure};
use super::super::options::{Address, Credentials, connection_info};
use super::configuration::Epoch;
use super::service::Service;

/// One sentinel. Whatever goes wrong on its connection, the next question makes a new one.
pub(super) struct Sentinel {
    pub(super) address: Address,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
}

/// What a sentinel says about the service, all at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Tells sentinels apart that have several addresses.
    pub(super) id: String,
    /// Whom it names.
    pub(super) primary: Option<(String, u16)>,
    /// Since which configuration; `None` if it does not tell.
    pub(super) epoch: Option<Epoch>,
    /// How many there are, as far as it knows.
    pub(super) sentinels: usize,
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
        self.allowed(&values)?;
        if let Some(Value::ServerError(error)) = values.first() {
            return Err(errors::from_server(error).at(&self.address));
        }
        Ok(host_and_port(values.first()))
    }

    /// What it says about the service.
    pub(super) async fn look(&self, service: &Service) -> Result<View, Failure> {
        loop {
            // It has changed its mind between two of our questions.
            if let Some(view) = self.look_once(service).await? {
                return Ok(view);
            }
        }
    }

    /// The same; `None` if the parts of the answer do not belong together.
    ///
    /// Whom it names and in which epoch are two questions: the address that `SENTINEL MASTER` tells is still the
    /// old one at the end of a failover. The epoch only grows, so that it was the same all the time in between
    /// if it was before and after.
    async fn look_once(&self, service: &Service) -> Result<Option<View>, Failure> {
        let mut commands = redis::pipe();
        commands.cmd("SENTINEL").arg("MYID");
        commands.cmd("SENTINEL").arg("MASTER").arg(&service.name);
        commands
            .cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&service.name);
        commands.cmd("SENTINEL").arg("MASTER").arg(&service.name);
        let values = self.send(&commands, service).await?;
        let [id, before, primary, after] = &values[..] else {
            return Err(Failure::protocol("a sentinel answered too little").at(&self.address));
        };
        self.allowed(&values[1..])?;
        let [before, after] = [before, after].map(|about| {
            redis::from_redis_value::<HashMap<String, String>>(about.clone()).unwrap_or_default()
        });
        let epoch = |about: &HashMap<String, String>| Epoch::parse(about.get("config-epoch")?);
        if epoch(&before) != epoch(&after) {
            return Ok(None);
        }
        let others = after.get("num-other-sentinels");
        let others = others.and_then(|count| count.parse().ok());
        Ok(Some(View {
            // Before Redis 6.2 they do not tell: then by address.
            id: redis::from_redis_value(id.clone()).unwrap_or_else(|_| self.address.to_string()),
            primary: host_and_port(Some(primary)),
            epoch: epoch(&after),
            sentinels: others.unwrap_or(0_usize).saturating_add(1),
        }))
    }

    /// Gives up a connection on which an answer did not come in time.
    pub(super) fn hang_up(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
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

    /// Whether the user may ask what was asked.
    fn allowed(&self, values: &[Value]) -> Result<(), Failure> {
        let refused =
            |value: &Value| matches!(value, Value::ServerError(error) if error.code() == "NOPERM");
        if !values.iter().any(refused) {
            return Ok(());
        }
        let message = "the user of the sentinels (?sentinel_user=) may not ask them for the primary: allow it with ACL \
                       SETUSER <user> +sentinel|master +sentinel|get-master-addr-by-name +sentinel|myid +subscribe \
                       allchannels, at each of them";
        Err(Failure::new(ErrorKind::Forbidden, message).at(&self.address))
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
