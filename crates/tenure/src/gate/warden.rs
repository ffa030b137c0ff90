//! [`Warden`]: sees to it that a run ends in time while others wait, also if its hold is held for
//! long, and that the next in line then speaks to the store.
//!
//! One small task per name, only while tasks of this process wait for one another.

use std::sync::{Arc, MutexGuard, Weak};

use tenure_core::Moment;

use super::{Gate, Line, Whose};
use crate::clock::Clock;
use crate::link::Link;

#[must_use = "without a warden a run may last for ever"]
pub(super) struct Warden {
    gate: Weak<Gate>,
    clock: Arc<dyn Clock>,
    on_duty: bool,
}

impl Gate {
    /// To be called whenever somebody waits or a run begins: the warden, if one is needed now. It
    /// starts once the line is free.
    pub(super) fn watch(self: &Arc<Self>, line: &mut Line, link: &Link) -> Option<Warden> {
        let runs = matches!(line.turn, Whose::Run { .. });
        if !runs || line.waiting.0.is_empty() || line.watched {
            return None;
        }
        line.watched = true;
        Some(Warden {
            gate: Arc::downgrade(self),
            clock: link.clock().clone(),
            on_duty: true,
        })
    }
}

impl Warden {
    pub(super) fn start(self, link: &Link) {
        link.lanes().runtime().spawn(self.stand_by());
    }

    async fn stand_by(mut self) {
        while let Some(until) = self.look() {
            let rest = until.since(self.clock.now());
            self.clock.sleep(rest).await;
        }
    }

    /// When to look again; `None` when nobody waits for a run any more.
    fn look(&mut self) -> Option<Moment> {
        let gate = self.gate.upgrade()?;
        let line = gate.line();
        if let Whose::Run { progress, .. } = &line.turn
            && !line.waiting.0.is_empty()
        {
            let until = progress.until;
            if self.clock.now() < until {
                return Some(until);
            }
        }
        self.leave(&gate, line);
        None
    }

    fn leave(&mut self, gate: &Arc<Gate>, mut line: MutexGuard<'_, Line>) {
        self.on_duty = false;
        line.watched = false;
        if matches!(line.turn, Whose::Run { .. }) && !line.waiting.0.is_empty() {
            gate.pass_on(line);
        }
    }
}

impl Drop for Warden {
    /// Without a runtime nobody looks after the run, so it ends now.
    fn drop(&mut self) {
        if self.on_duty
            && let Some(gate) = self.gate.upgrade()
        {
            self.leave(&gate, gate.line());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::super::Call;
    use super::*;
    use crate::clock::VirtualClock;
    use crate::handover::tests::likeness;
    use crate::stores::memory::MemoryStore;

    #[test]
    fn without_a_runtime_the_next_in_line_speaks_at_once() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let clock = Arc::new(VirtualClock::new());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let link = Link::new(store, clock, runtime.handle().clone());
        drop(runtime);
        let gate = Arc::new(Gate::default());
        let Call::Speak(turn) = gate.enter(None, &link).now_or_never().unwrap() else {
            panic!("nothing was handed on");
        };
        let run = turn.run(likeness(), &link).unwrap();
        let next = gate.enter(Some(likeness()), &link).now_or_never();
        assert!(matches!(next, Some(Call::Speak(_))), "{next:?}");
        assert!(run.next(Moment::from_nanos(u64::MAX), link.now()).is_none());
    }
}
