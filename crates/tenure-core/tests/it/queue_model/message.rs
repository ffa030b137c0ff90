//! What is under way, and what has happened.

use std::rc::Rc;

use tenure_core::Fence;

use super::client::Ask;

/// How it came to this.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) event: Event,
    pub(super) before: Option<Rc<Trail>>,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by people, as it is shown")]
pub(super) enum Event {
    Tick,
    Sent { from: u8, ask: Ask },
    LostOnItsWay,
    LateOnItsWay,
    ReplyLost,
    ReplyLate,
    PushLost,
    PushLate,
    Arrived(Message),
    Died(u8),
    Paused(u8),
    Resumed(u8),
    Restarted,
}

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Message {
    Request {
        from: u8,
        ask: Ask,
        life: u8,
        sent: u16,
    },
    /// An answer to what was asked at that time, or a push.
    News {
        to: u8,
        ask: Ask,
        news: News,
        sent: u16,
    },
}

/// What a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    /// It lasts for this many ticks from when it was asked for.
    Yours {
        fence: Fence,
        lasts: u16,
    },
    /// It was pushed, and lasts until then.
    Pushed {
        fence: Fence,
        until: u16,
    },
    NotYours,
    Wait,
    OtherLife(u8),
}
