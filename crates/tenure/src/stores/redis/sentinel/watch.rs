//! Listening to what sentinels announce: another primary means that the connection leads to the
//! wrong server. Never relied upon: losing the connection, a read-only server and a confirmation
//! that fails make us look again, too.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::RedisResult;
use tokio::task::JoinSet;

use super::super::connection::Link;
use super::Sentinels;
use super::ask::Sentinel;
use crate::clock::Clock;

const PAUSE: Duration = Duration::from_secs(1);

/// Listens to all of them until what is answered is dropped.
pub(in super::super) fn watch(
    sentinels: &Arc<Sentinels>,
    link: &Weak<Link>,
    clock: &Arc<dyn Clock>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for index in 0..sentinels.sentinels.len() {
        let (sentinels, link, clock) = (sentinels.clone(), link.clone(), clock.clone());
        tasks.spawn(async move {
            while link.strong_count() > 0 {
                let _ = listen(&sentinels, &sentinels.sentinels[index], &link).await;
                clock.sleep(PAUSE).await;
            }
        });
    }
    tasks
}

async fn listen(sentinels: &Sentinels, sentinel: &Sentinel, link: &Weak<Link>) -> RedisResult<()> {
    let Ok(client) = sentinel.client(&sentinels.service) else {
        return Ok(());
    };
    let (mut sink, mut messages) = client.get_async_pubsub().await?.split();
    sink.subscribe("+switch-master").await?;
    while let Some(message) = messages.next().await {
        let text = message.get_payload::<String>().unwrap_or_default();
        // service, old host, old port, new host, new port
        let words: Vec<&str> = text.split(' ').collect();
        let [service, _, _, host, port] = words[..] else {
            continue;
        };
        let (Some(link), Ok(port)) = (link.upgrade(), port.parse()) else {
            continue;
        };
        if service == sentinels.service.name {
            link.leave_unless_at(&sentinels.service.server(host.to_owned(), port));
        }
    }
    Ok(())
}
