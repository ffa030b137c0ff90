//! [`Log`]: what has happened so far, and waiting for what happens next.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::servers::wait::{PATIENCE, is_interrupted, now};
use crate::timeline::{Event, What};

/// Shared by everybody who takes part in a play.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<(Mutex<Vec<Event>>, Condvar)>);

impl Log {
    /// Writes down that something happens now.
    pub(crate) fn note(&self, who: &str, what: What) {
        let at = now().as_nanos();
        let who = who.to_owned();
        self.add(Event { at, who, what });
    }

    /// Writes down what somebody else saw.
    pub(crate) fn add(&self, event: Event) {
        self.events().push(event);
        self.0.1.notify_all();
    }

    /// How much is written down.
    pub(crate) fn len(&self) -> usize {
        self.events().len()
    }

    /// Waits for something that is said about `who` after the first `from` events.
    pub(crate) fn wait<T>(
        &self,
        who: &str,
        from: usize,
        mut wanted: impl FnMut(&What) -> Option<T>,
    ) -> Option<T> {
        let start = now();
        let mut seen = from;
        let mut events = self.events();
        loop {
            for event in &events[seen..] {
                if event.who == who
                    && let Some(found) = wanted(&event.what)
                {
                    return Some(found);
                }
            }
            seen = events.len();
            if now().since(start) > PATIENCE || is_interrupted() {
                return None;
            }
            let nap = Duration::from_millis(100);
            let woken = self.0.1.wait_timeout(events, nap);
            events = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What was said about `who` after the first `from` events, if it was.
    pub(crate) fn find<T>(
        &self,
        who: &str,
        from: usize,
        wanted: impl FnMut(&What) -> Option<T>,
    ) -> Option<T> {
        let events = self.events();
        let about = events[from..].iter().filter(|event| event.who == who);
        about.map(|event| &event.what).find_map(wanted)
    }

    /// Everything, in order of time.
    pub(crate) fn in_order(&self) -> Vec<Event> {
        let mut events = self.events().clone();
        events.sort_by_key(|event| event.at);
        events
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
