//! Making a connection: to the server of the URL or whichever the sentinels name, in the protocol that
//! it speaks, with all inboxes subscribed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, Value};
use tenure_core::ErrorKind;
use tokio::sync::watch;

use super::connection::{Link, Live, Wire};
use super::errors::{self, Failure};
use super::options::Address;
use super::sentinel::{self, Sentinels};
use super::subscription::{SecondConnection, deliver};
use super::watching;
use crate::clock::bounded;

/// Connecting takes one round trip or two; a server that needs longer is as good as down, unless calls may last long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

impl Link {
    /// Makes a connection, subscribes whoever listens, and puts it in the place of the last one.
    pub(super) async fn connect(&self, wire: &mut Wire) -> Result<Live, Failure> {
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
        if self.options.replicas.is_some() {
            live.confirming = Some(self.open_confirming(&live).await?);
        }
        if self.options.watching {
            watching::begin(self, &mut live).await?;
        }
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
        let patience = self.connect_timeout();
        let opened = bounded(&*self.clock, patience, opening).await;
        opened.unwrap_or_else(|| Err(Failure::unconnected(patience, &address)))
    }

    fn connect_timeout(&self) -> Duration {
        let caution = &self.options.caution;
        let elsewhere = self.sentinels.as_ref();
        let protected = elsewhere.map(|_| caution.max_ttl.duration());
        connect_timeout(self.options.call_timeout, protected)
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
            confirming: None,
            generation,
            protocol,
            watches: false,
            run: None,
            given_up,
            address: address.clone(),
        })
    }

    /// A further connection to the same server.
    async fn open_confirming(&self, live: &Live) -> Result<MultiplexedConnection, Failure> {
        let failed = |error: redis::RedisError| errors::from_driver(&error, &live.address);
        let info = self.options.connection_info(&live.address, live.protocol);
        let client = Client::open(info.map_err(failed)?).map_err(failed)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        let patience = self.connect_timeout();
        let opened = bounded(&*self.clock, patience, opening).await;
        let opened = opened.ok_or_else(|| Failure::unconnected(patience, &live.address))?;
        opened.map_err(failed)
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

    pub(super) async fn subscribe(
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
}

/// Half of a call at most, so that what was not to be had at once can be tried again. Where another server may take the
/// place of one that is down, whoever holds a lease (at most so `protected`) has to be there in time to renew it.
fn connect_timeout(call_timeout: Duration, protected: Option<Duration>) -> Duration {
    let patience = call_timeout / 2;
    let patience = protected.map_or(patience, |protected| patience.min(protected / 6));
    patience.max(CONNECT_TIMEOUT)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_primary_is_not_waited_for_until_the_leases_have_ended() {
        let seconds = Duration::from_secs;
        assert_eq!(connect_timeout(seconds(2), None), seconds(1));
        assert_eq!(connect_timeout(seconds(60), None), seconds(30));
        let protected = Some(seconds(30));
        assert_eq!(connect_timeout(seconds(2), protected), seconds(1));
        assert_eq!(connect_timeout(seconds(60), protected), seconds(5));
        assert_eq!(connect_timeout(seconds(60), Some(seconds(3))), seconds(1));
    }
}
