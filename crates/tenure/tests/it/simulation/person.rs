//! What the tasks of the simulated processes do: take locks and give them back in every way there is,
//! change their minds at any moment, and stand still while their process is stopped.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tenure::core::Mode;
use tenure::{Attempt, Error, Guard, Lock, Tenure};

use super::dice::Dice;
use super::judge::Wrong;
use super::profile::Profile;
use super::world::World;
use crate::client_world::millis;

pub(super) struct Person {
    pub(super) world: Arc<World>,
    pub(super) client: usize,
    pub(super) tenure: Tenure,
    pub(super) dice: Dice,
    /// The storm is over: once more, and then home.
    pub(super) over: Arc<AtomicBool>,
}

impl Person {
    /// Lives until the storm is over, and then gets in once more.
    pub(super) async fn live(self) {
        let (world, client) = (self.world.clone(), self.client);
        let mut life = Box::pin(self.rounds());
        let mut resumed: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
        poll_fn(|context| {
            loop {
                if !world.is_paused(client) {
                    resumed = None;
                    return life.as_mut().poll(context);
                }
                let mut changes = world.changes();
                let waiting = resumed
                    .get_or_insert_with(|| Box::pin(async move { drop(changes.changed().await) }));
                match waiting.as_mut().poll(context) {
                    Poll::Ready(()) => resumed = None,
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    async fn rounds(mut self) {
        while !self.over.load(Ordering::SeqCst) {
            self.round().await;
            let pause = self.dice.millis(200);
            self.world.pass(pause).await;
        }
        self.get_in_once_more().await;
    }

    async fn round(&mut self) {
        let lock = self.lock();
        let patience = self.dice.below(6_000);
        let polls = 1 + usize::try_from(self.dice.below(12)).expect("a few");
        let got = match self.dice.below(5) {
            0 => lock.try_acquire().await.and_then(Attempt::into_guard).ok(),
            1 => lock.acquire().await.ok(),
            2 => poll_at_most(polls, lock.acquire())
                .await
                .and_then(Result::ok),
            3 => {
                let world = self.world.clone();
                tokio::select! {
                    biased;
                    got = lock.acquire() => got.ok(),
                    () = world.pass(millis(patience)) => None,
                }
            }
            _ => lock.wait(millis(1 + patience)).acquire().await.ok(),
        };
        let Some(guard) = got else { return };
        let guard = self.world.got(self.client, guard);
        self.world
            .note(|| format!("{}: has {guard:?}", self.client));
        self.hold(&guard).await;
        let guard = self.world.gives_up(guard);
        self.world
            .note(|| format!("{}: gives back {guard:?}", self.client));
        self.give_back(guard, polls).await;
    }

    async fn hold(&mut self, guard: &Guard) {
        let longest = self.world.profile.hold;
        let held = if self.dice.percent(40) {
            self.dice.millis(8)
        } else {
            self.dice.millis(longest)
        };
        tokio::select! {
            biased;
            _ = guard.lost() => {}
            () = self.world.pass(held) => {}
        }
        let polls = 1 + usize::try_from(self.dice.below(6)).expect("a few");
        if self.dice.percent(15) {
            let ttl = self.world.profile.longest_ttl();
            let _ = poll_at_most(polls, guard.extend(ttl)).await;
        }
        if guard.mode() == Mode::Exclusive && self.dice.percent(15) {
            let _ = poll_at_most(polls, guard.downgrade()).await;
            let rest = self.dice.millis(300);
            self.world.pass(rest).await;
        }
    }

    async fn give_back(&mut self, guard: Guard, polls: usize) {
        let rest = self.dice.millis(400);
        match self.dice.below(16) {
            0..4 => drop(guard),
            4..8 => drop(poll_at_most(polls, guard.release()).await),
            8 if !self.world.profile.tidy => drop(guard.leave_for(rest).await),
            9 => {
                let _ = poll_at_most(polls, self.tenure.release_all()).await;
            }
            _ => drop(guard.release().await),
        }
    }

    /// Everything works again: everybody who waits is served.
    async fn get_in_once_more(&mut self) {
        let within = self.world.profile.served_within;
        let got: Result<Guard, Error> = self.plain().wait(within).acquire().await;
        match got {
            Ok(guard) => {
                let guard = self.world.got(self.client, guard);
                self.world.pass(millis(5)).await;
                drop(self.world.gives_up(guard).release().await);
            }
            Err(error) => {
                let detail = format!("{} after {within:?}: {error}", self.client);
                self.world
                    .with_judge(|judge| judge.find(Wrong::Starved, detail));
            }
        }
    }

    fn plain(&self) -> Lock {
        let ttl = self.world.profile.longest_ttl();
        self.tenure.lock("x").ttl(ttl)
    }

    fn lock(&mut self) -> Lock {
        let Profile { ttl, .. } = self.world.profile;
        let lock = match self.dice.below(8) {
            0..=3 => return self.plain(),
            4 => self.tenure.lock("x"),
            5 => self.tenure.rwlock("x").read(),
            6 => self.tenure.semaphore("s", 2),
            _ => self.tenure.semaphore("s", 2).permits(2),
        };
        let lock = lock.ttl(millis(ttl.0 + self.dice.below(ttl.1 - ttl.0 + 1)));
        match self.dice.below(5) {
            0 => lock.no_renew(),
            1 => lock.hold_at_most(millis(100 + self.dice.below(3_000))),
            _ => lock,
        }
    }
}

/// Polls `doing` at most `polls` times, then drops it: it is cancelled at that await.
pub(super) async fn poll_at_most<T>(polls: usize, doing: impl Future<Output = T>) -> Option<T> {
    let mut doing = Box::pin(doing);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match doing.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
