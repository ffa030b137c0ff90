//! Listening at an inbox: on the connection, and on every one that takes its place.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::{Inbox, Listener, Push};

use super::connection::Link;
use super::errors::{self, Failure};
use super::subscription;

/// How long to wait before trying again to listen.
const LISTEN_AGAIN: Duration = Duration::from_millis(100);

impl Link {
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

    /// The same without waiting: once it listens, `listener` is told that pushes may have been missed
    /// until then.
    pub(super) fn listen_in_background(&self, inbox: &Inbox, listener: Weak<dyn Listener>) {
        let (me, clock, inbox) = (self.me.clone(), self.clock.clone(), inbox.clone());
        tokio::spawn(async move {
            while listener.strong_count() > 0 {
                let Some(link) = me.upgrade() else { return };
                let listening = link.listen(&inbox, listener.clone()).await;
                drop(link);
                match (listening, listener.upgrade()) {
                    (Ok(()), Some(listener)) => return listener.pushed(Push::Missed),
                    _ => clock.sleep(LISTEN_AGAIN).await,
                }
            }
        });
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
}
