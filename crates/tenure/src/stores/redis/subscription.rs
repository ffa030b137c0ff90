//! What the server pushes to us: who listens where, the second connection that RESP2 needs for it,
//! and the task that brings a lost connection back while somebody listens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSubSink;
use redis::{Client, RedisResult};
use tenure_core::{Fence, Inbox, Life, Listener, Moment, Push, PushedGrant, Recovery, Timestamp};

use super::connection::{Link, Live};
use super::encode;
use super::keys::{Keys, Member};
use super::memory::{self, Memory, Pusher};
use super::options::{Address, Options};
use super::sentinel::Configuration;

/// How often we look whether a listener is gone. A connection that lasted this long is a good one.
const TIDY: Duration = Duration::from_secs(1);

/// Pauses before connecting again: none after a connection that lasted, growing ones otherwise.
/// Short, because whoever holds a lock that the server forgot has to say so in time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);

/// Keeps the connection up while somebody listens; ends with the link.
pub(super) async fn keep_connected(link: Weak<Link>) {
    let mut pause = Duration::ZERO;
    loop {
        let Some(strong) = link.upgrade() else { return };
        let (lost, clock) = (strong.lost.clone(), strong.clock.clone());
        strong.tidy().await;
        if strong.current().is_some() || strong.listeners.is_empty() {
            drop(strong);
            tokio::select! {
                () = lost.notified() => {}
                () = clock.sleep(TIDY) => pause = Duration::ZERO,
            }
            continue;
        }
        drop(strong);
        clock.sleep(spread(pause, clock.now())).await;
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        if let Some(link) = link.upgrade() {
            // Its failure is told to whoever asks something; here it is only tried again.
            let deadline = link.deadline();
            if let Ok(live) = link.live(deadline).await {
                memory::greet_again(&link, &live, deadline).await;
            }
        }
    }
}

/// Somewhat longer, so that not all clients come at the same moment.
fn spread(pause: Duration, now: Moment) -> Duration {
    pause.mul_f64(1.0 + (now.as_nanos() % 1_000) as f64 / 4_000.0)
}

/// For how long others are asked about a pushed grant: nobody else asks meanwhile, and holds need the next confirmation.
const VOUCHING: Duration = Duration::from_secs(2);

/// Passes on a push; under Sentinel and in a cluster only once it is sure that it comes from the primary.
pub(super) fn deliver(
    listeners: &Arc<Listeners>,
    link: &Weak<Link>,
    address: &Address,
    channel: &[u8],
    text: &[u8],
) {
    let Some(Heard {
        listener,
        push,
        pusher,
    }) = listeners.read(channel, text)
    else {
        return;
    };
    let (Some(link), Push::Granted(grant)) = (link.upgrade(), &push) else {
        return listener.pushed(push);
    };
    let (address, grant) = (address.clone(), grant.clone());
    let member = match link.options.caution.recovery {
        Recovery::Off => None,
        _ => link.options.keys.member().cloned(),
    };
    if link.sentinels.is_none() && member.is_none() {
        return listener.pushed(push);
    }
    tokio::spawn(async move {
        let deadline = link.deadline().min(link.clock.now().plus(VOUCHING));
        let vouched = match (&link.sentinels, member.and_then(Member::all)) {
            (Some(sentinels), _) => {
                let primary = address;
                let epoch = pusher.epoch;
                let relied_on = Configuration { primary, epoch };
                sentinels.vouch_for_push(&relied_on, grant, deadline).await
            }
            (None, Some((node, nodes))) => {
                let line = pusher.line.as_deref();
                nodes.vouch_for_push(node, grant, line, deadline).await
            }
            (None, None) => None,
        };
        // Otherwise it is not told; the waiter asks again by itself.
        if let Some(grant) = vouched {
            listener.pushed(Push::Granted(grant));
        }
    });
}

/// What a message says, and to whom.
struct Heard {
    listener: Arc<dyn Listener>,
    push: Push,
    /// The life that says so.
    pusher: Pusher,
}

/// Who listens, by channel.
pub(super) struct Listeners {
    prefix: String,
    keys: Keys,
    /// A grant that was only pushed is confirmed by no replica: whoever gets it has to ask.
    confirmed_by_asking: bool,
    memory: Arc<Memory>,
    by_channel: Mutex<HashMap<String, Weak<dyn Listener>>>,
}

impl Listeners {
    pub(super) fn new(options: &Options, memory: Arc<Memory>) -> Self {
        Self {
            prefix: options.prefix.clone(),
            keys: options.keys.clone(),
            confirmed_by_asking: options.replicas.is_some(),
            memory,
            by_channel: Mutex::default(),
        }
    }

    /// Answers the channel of `inbox`.
    pub(super) fn add(&self, inbox: &Inbox, listener: Weak<dyn Listener>) -> String {
        let channel = encode::channel(&self.prefix, inbox);
        self.lock().insert(channel.clone(), listener);
        channel
    }

    pub(super) fn remove(&self, channel: &str) {
        self.lock().remove(channel);
    }

    pub(super) fn channels(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Forgets listeners that have been dropped, and answers their channels.
    pub(super) fn drop_gone(&self) -> Vec<String> {
        let mut listeners = self.lock();
        let gone = listeners
            .extract_if(|_, listener| listener.strong_count() == 0)
            .map(|(channel, _)| channel);
        gone.collect()
    }

    /// Tells everybody that pushes may have been missed.
    pub(super) fn missed(&self) {
        let listeners: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        for listener in listeners {
            listener.pushed(Push::Missed);
        }
    }

    /// Tells everybody that the lock with this key may be free.
    pub(super) fn maybe_free(&self, key: &[u8]) {
        let name = std::str::from_utf8(key).ok();
        let name = name.and_then(|key| self.keys.name(key));
        let Some(name) = name else { return };
        let listeners: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        for listener in listeners {
            listener.pushed(Push::MaybeFree(name.clone()));
        }
    }

    /// What a message says, and to whom; one that we cannot read is not for us.
    fn read(&self, channel: &[u8], text: &[u8]) -> Option<Heard> {
        let channel = std::str::from_utf8(channel).ok()?;
        let listener = self.lock().get(channel)?.upgrade()?;
        let (grant, life) = parse(&self.keys, std::str::from_utf8(text).ok()?)?;
        if !self.keys.is_told_here(&grant.name) {
            return None;
        }
        // What another life granted says nothing by the clock of the one that we know.
        let part = self.keys.slot(&grant.name);
        let pusher = self.memory.pusher(part, life);
        let push = match self.confirmed_by_asking || pusher.is_none() {
            true => Push::Missed,
            false => Push::Granted(grant),
        };
        Some(Heard {
            listener,
            push,
            pusher: pusher.unwrap_or_default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<dyn Listener>>> {
        self.by_channel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// `v2 <owner> <fence> <now> <expiry> <life> <key>`, as waiters.lua publishes it: the grant, and the
/// life of the server that made it, if that is known.
fn parse(keys: &Keys, text: &str) -> Option<(PushedGrant, Option<Life>)> {
    let mut words = text.splitn(7, ' ');
    if words.next()? != "v2" {
        return None;
    }
    let owner = words.next()?.parse().ok()?;
    let fence = Fence::from_u64(words.next()?.parse().ok()?);
    let now = Timestamp::from_micros(words.next()?.parse().ok()?);
    let expiry = Timestamp::from_micros(words.next()?.parse().ok()?);
    let life = Life::parse(words.next()?);
    let name = keys.name(words.next()?)?;
    let grant = PushedGrant {
        name,
        owner,
        fence,
        now,
        expiry,
    };
    Some((grant, life))
}

/// Under RESP2, a connection that subscribes can do nothing else.
pub(super) struct SecondConnection {
    sink: PubSubSink,
    reader: tokio::task::JoinHandle<()>,
}

impl SecondConnection {
    pub(super) async fn open(
        client: &Client,
        link: Weak<Link>,
        live: &Live,
        listeners: Arc<Listeners>,
    ) -> RedisResult<Self> {
        let (sink, mut messages) = client.get_async_pubsub().await?.split();
        let (address, generation) = (live.address.clone(), live.generation);
        let reader = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                let channel = message.get_channel_name().as_bytes();
                let text = message.get_payload_bytes();
                deliver(&listeners, &link, &address, channel, text);
            }
            // Without pushes the link is only half of itself: both connections are made anew.
            if let Some(link) = link.upgrade() {
                link.discard_generation(generation);
            }
        });
        Ok(Self { sink, reader })
    }

    pub(super) async fn subscribe(&mut self, channels: &[String]) -> RedisResult<()> {
        self.sink.subscribe(channels).await
    }

    pub(super) async fn unsubscribe(&mut self, channels: &[String]) -> RedisResult<()> {
        self.sink.unsubscribe(channels).await
    }
}

impl Drop for SecondConnection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_lock_without_its_prefix() {
        let owner = "000102030405060708090a0b0c0d0e0f";
        let text = format!("v2 {owner} 7 10 20 - tenure:two words");
        let (grant, life) = parse(&Keys::new("tenure:"), &text).expect("well formed");
        assert_eq!(life, None);
        assert_eq!(grant.name.as_str(), "two words");
        assert_eq!(grant.owner.to_string(), owner);
        assert_eq!(grant.expiry, Timestamp::from_micros(20));
        assert_eq!(parse(&Keys::new("other:"), &text), None);
        assert_eq!(parse(&Keys::new("tenure:"), "hello"), None);
    }
}
