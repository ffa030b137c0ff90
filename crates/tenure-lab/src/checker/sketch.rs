//! [`Sketch`]: histories written by hand, for tests. Times are in milliseconds.

use tenure::core::{Order, PromiseId};
use tenure::{Fence, OwnerId};

use crate::history::{
    Asked, Event, Fault, Granted, History, LostBy, Memory, Said, Step, Terms, Wanted, What, Write,
};

#[derive(Clone)]
pub(super) struct Sketch {
    events: Vec<Event>,
    name: String,
    calls: u64,
    asked: Option<u64>,
    /// For how long those who ask wait at most.
    patience: Option<u64>,
    /// The last hold: its process and call.
    last: (u32, u64),
}

impl Sketch {
    pub(super) fn new() -> Self {
        Self {
            events: Vec::new(),
            name: "x".to_owned(),
            calls: 0,
            asked: None,
            patience: None,
            last: (0, 0),
        }
    }

    /// A run with these bounds.
    pub(super) fn promising(idle_ms: u64, recovery_ms: u64) -> Self {
        let mut sketch = Self::new();
        sketch.note(
            0,
            What::Run(Terms {
                store: "sketch".to_owned(),
                seed: 0,
                order: Order::Arrival,
                one_machine: true,
                sees_death: false,
                shortens: false,
                idle_ms,
                recovery_ms,
            }),
        );
        sketch
    }

    pub(super) fn history(&self) -> History {
        // As from a file, so that reading and writing are tested along the way.
        let lines = self
            .events
            .iter()
            .map(|event| serde_json::to_string(event).unwrap());
        let text = lines.collect::<Vec<_>>().join("\n");
        let history: History = text.parse().unwrap();
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.at);
        assert_eq!(history.events, events);
        history
    }

    pub(super) fn on(&mut self, name: &str) -> &mut Self {
        self.name = name.to_owned();
        self
    }

    /// The next hold was asked for at this time.
    pub(super) fn asked(&mut self, _process: u32, at: u64) -> &mut Self {
        self.asked = Some(at * 1_000_000);
        self
    }

    /// Asks, and is not answered.
    pub(super) fn asks(&mut self, process: u32, at: u64) -> &mut Self {
        self.invoke(process, at * 1_000_000, "exclusive");
        self
    }

    /// Asks, and does not get it.
    pub(super) fn fails(&mut self, process: u32, at: u64, until: u64, wait: Option<u64>) {
        self.patience = wait;
        let call = self.invoke(process, at * 1_000_000, "exclusive");
        let why = "held".to_owned();
        self.push(until * 1_000_000, process, What::Fail { call, why });
    }

    pub(super) fn holds(&mut self, process: u32, at: u64, mode: &str, fence: u64) -> &mut Self {
        let at = at * 1_000_000;
        let asked = self.asked.take().unwrap_or(at - 1_000);
        let call = self.invoke(process, asked, mode);
        let grant = Some(Granted {
            fence: Fence::from_u64(fence),
            owner: Some(owner(process)),
            valid_until: 0,
        });
        self.push(at, process, What::Ok { call, grant });
        self
    }

    pub(super) fn until(&mut self, until: u64) -> &mut Self {
        let (_, last) = self.last;
        for event in &mut self.events {
            if let What::Ok {
                call,
                grant: Some(grant),
            } = &mut event.what
                && *call == last
            {
                grant.valid_until = until * 1_000_000;
            }
        }
        self
    }

    pub(super) fn renewed(&mut self, at: u64, until: u64) -> &mut Self {
        let (process, hold) = self.last;
        let valid_until = until * 1_000_000;
        self.push(at * 1_000_000, process, What::Renewed { hold, valid_until });
        self
    }

    pub(super) fn released(&mut self, at: u64) -> &mut Self {
        let (process, hold) = self.last;
        let call = self.next();
        let wanted = Wanted::Release { hold };
        let grant = None;
        self.push(at * 1_000_000, process, What::Invoke { call, wanted });
        self.push(at * 1_000_000 + 1, process, What::Ok { call, grant });
        self
    }

    pub(super) fn downgraded(&mut self, at: u64) -> &mut Self {
        let (process, hold) = self.last;
        let call = self.next();
        let wanted = Wanted::Downgrade { hold };
        self.push(at * 1_000_000, process, What::Invoke { call, wanted });
        self
    }

    pub(super) fn lost(&mut self, at: u64, why: &str) -> &mut Self {
        let (process, hold) = self.last;
        let why: LostBy = serde_json::from_value(why.into()).unwrap();
        self.push(at * 1_000_000, process, What::Lost { hold, why });
        self
    }

    /// The process that asked or held last is killed.
    pub(super) fn killed(&mut self, at: u64) -> &mut Self {
        let kills = Some(self.last.0);
        self.broken(at, "kill", &[], kills)
    }

    pub(super) fn fault(&mut self, at: u64, kind: &str, breaks: &[PromiseId]) -> &mut Self {
        self.broken(at, kind, breaks, None)
    }

    pub(super) fn note(&mut self, at: u64, what: What) -> &mut Self {
        self.push(at * 1_000_000, 0, what);
        self
    }

    pub(super) fn accepted(&mut self, at: u64, fence: u64, before: u64) -> &mut Self {
        let write = self.write(fence, before);
        self.note(at, What::WriteAccepted(write))
    }

    pub(super) fn refused(&mut self, at: u64, fence: u64, before: u64) -> &mut Self {
        let write = self.write(fence, before);
        self.note(at, What::WriteRefused(write))
    }

    /// Gives back a hold of its own once more; `ends` if the store says that this ended it.
    pub(super) fn releases_again(&mut self, process: u32, at: u64, fence: u64, ends: bool) {
        let call = self.next();
        let wanted = Wanted::LateRelease {
            name: self.name.clone(),
            owner: owner(process),
            fence: Fence::from_u64(fence),
        };
        self.push(at * 1_000_000, process, What::Invoke { call, wanted });
        let (grant, why) = (None, "lost".to_owned());
        let answer = match ends {
            true => What::Ok { call, grant },
            false => What::Fail { call, why },
        };
        self.push(at * 1_000_000 + 1, process, answer);
    }

    /// Queues up at the store, and is granted a while later.
    pub(super) fn queues(&mut self, process: u32, at: u64, fence: u64) -> &mut Self {
        let (at, call) = (at * 1_000_000, self.next());
        let name = self.name.clone();
        let step = Step {
            owner: Some(owner(process)),
            fence: None,
            ask: Asked::Acquire {
                mode: tenure::Mode::Exclusive,
                ttl_ms: 1_000,
                alive_ms: Some(15_000),
                inbox: Some(format!("{process}")),
                not_after: None,
            },
        };
        self.push(at, process, What::Asked { call, name, step });
        let said = Said::Queued { recovering: None };
        let now = at / 1_000;
        self.push(at + 1, process, What::Answered { call, now, said });
        let pushed = What::Pushed {
            name: self.name.clone(),
            owner: owner(process),
            fence: Fence::from_u64(fence),
            now: fence,
        };
        self.push(at + 100_000_000, process, pushed);
        self
    }

    fn broken(
        &mut self,
        at: u64,
        kind: &str,
        breaks: &[PromiseId],
        kills: Option<u32>,
    ) -> &mut Self {
        self.note(
            at,
            What::Fault(Fault {
                kind: kind.to_owned(),
                detail: String::new(),
                breaks: breaks.to_vec(),
                kills,
                memory: Memory::Kept,
            }),
        )
    }

    fn write(&self, fence: u64, before: u64) -> Write {
        Write {
            name: self.name.clone(),
            fence: Fence::from_u64(fence),
            writer: 1,
            before,
        }
    }

    fn invoke(&mut self, process: u32, at: u64, mode: &str) -> u64 {
        let call = self.next();
        self.last = (process, call);
        let json = serde_json::json!({
            "op": "acquire", "name": self.name, "mode": mode, "ttl_ms": 1000, "waits": true,
            "wait_ms": self.patience,
        });
        let wanted = serde_json::from_value(json).unwrap();
        self.push(at, process, What::Invoke { call, wanted });
        call
    }

    fn next(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    fn push(&mut self, at: u64, process: u32, what: What) {
        let task = 0;
        self.events.push(Event {
            at,
            process,
            task,
            what,
        });
    }
}

/// The owner of everything that this process does.
pub(super) fn owner(process: u32) -> OwnerId {
    OwnerId::from_bytes([u8::try_from(process).unwrap(); 16])
}
