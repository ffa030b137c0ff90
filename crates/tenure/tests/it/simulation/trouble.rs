//! What goes wrong in a [`World`], and what its judge is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{LockName, LockState, Push, Timestamp};
use tenure::{Guard, Moment};

use super::judge::{Judge, Violation};
use super::world::{State, Way, World};

impl World {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changes.send_replace(());
    }

    pub(super) fn set_calm(&self, calm: bool) {
        self.change(|state| state.calm = calm);
    }

    pub(super) fn set_paused(&self, client: usize, paused: bool) {
        self.change(|state| state.clients[client].paused = paused);
    }

    pub(super) fn set_cut(&self, client: usize, cut: Option<Way>) {
        self.change(|state| state.clients[client].cut = cut);
    }

    pub(super) fn set_stopped(&self, stopped: bool) {
        self.change(|state| state.stopped = stopped);
    }

    /// A process is gone; the server may or may not see that.
    pub(super) fn kill(&self, client: usize) {
        self.change(|state| {
            state.clients[client].dead = true;
            state.judge.forget(client);
            let seen = state.dice.percent(self.profile.deaths_seen);
            let ear = state.clients[client].ear.as_ref();
            if let Some((inbox, _)) = ear.filter(|_| seen) {
                state.server.gone.insert(inbox.clone());
            }
        });
    }

    /// The server's clock is set back.
    pub(super) fn set_back(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).expect("some seconds");
        self.behind.fetch_add(micros, Ordering::SeqCst);
        self.change(|state| state.decided = Timestamp::from_micros(0));
    }

    pub(super) fn is_paused(&self, client: usize) -> bool {
        self.state().clients[client].paused
    }

    pub(super) fn restart(&self, keeps: bool) {
        let now = self.time();
        self.change(|state| state.server.restart(now, keeps));
        for client in 0..self.profile.clients {
            self.tell(client, &Push::Missed);
        }
    }

    /// What the server knows of a lock, without what has ended.
    fn current(&self, state: &State, name: &LockName) -> LockState {
        let now = self.time();
        let lock = state.server.locks.get(name);
        let mut lock = lock.cloned().unwrap_or_default();
        lock.holders.retain(|holder| holder.expiry > now);
        lock
    }

    pub(super) fn got(&self, client: usize, guard: Guard) -> Arc<Guard> {
        let now: Moment = self.clock.now();
        let mut state = self.state();
        let lock = self.current(&state, guard.name());
        state.judge.add(client, guard, &lock, now)
    }

    pub(super) fn gives_up(&self, guard: Arc<Guard>) -> Guard {
        let now = self.clock.now();
        let mut state = self.state();
        let lock = self.current(&state, guard.name());
        state.judge.remove(guard, &lock, now)
    }

    pub(super) fn with_judge<T>(&self, work: impl FnOnce(&mut Judge) -> T) -> T {
        work(&mut self.state().judge)
    }

    pub(super) fn found(&self) -> Option<Violation> {
        self.state().judge.found.clone()
    }

    /// Whether the server knows of anything that this client holds.
    pub(super) fn holds(&self, client: usize) -> bool {
        let state = self.state();
        let inbox = state.clients[client].ear.as_ref().map(|(inbox, _)| inbox);
        let mut holders = state.server.locks.values().flat_map(|it| &it.holders);
        holders.any(|holder| holder.anchor.as_ref() == inbox)
    }

    /// What is left at the server.
    pub(super) fn left(&self) -> Vec<String> {
        let now = self.time();
        self.state().server.left(now)
    }
}
