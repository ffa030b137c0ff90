//! Every event in words, for those who do not look at pictures.

use crate::timeline::{Event, What};

/// What happened, or nothing if that is not worth a line. `rank` numbers the fences of a play from one.
pub(super) fn of(event: &Event, rank: impl Fn(u64) -> Option<usize>) -> Option<String> {
    let who = &event.who;
    let fence = |fence: Option<u64>| {
        let number = fence.and_then(&rank);
        number.map_or_else(String::new, |number| format!(" (fence {number})"))
    };
    Some(match &event.what {
        What::Wants => format!("{who} asks for the lock"),
        What::At { point } => format!("{who} stands still {point}"),
        What::Holds {
            shared: false,
            fence: with,
            ..
        } => {
            format!("{who} believes: the lock is mine{}", fence(*with))
        }
        What::Holds {
            shared: true,
            fence: with,
            ..
        } => {
            format!("{who} believes: I may read{}", fence(*with))
        }
        What::Busy => format!("{who} is told: busy"),
        What::GaveUp => format!("{who} gives up waiting"),
        What::Released => format!("{who} releases"),
        What::Lost { .. } => format!("{who} is told that the lock is lost"),
        What::Declined { .. } => {
            format!("{who} looks, sees that the lock is lost, and does not write")
        }
        What::Unwilling { why } => format!("{who} refuses to work like this: {why}"),
        What::Wrote {
            accepted: true,
            fence: with,
        } => {
            format!("the resource accepts {who}'s write{}", fence(*with))
        }
        What::Wrote {
            accepted: false,
            fence: with,
        } => {
            format!(
                "the resource refuses {who}'s write{}: it has seen a newer one",
                fence(*with)
            )
        }
        What::Paused => format!("{who} is paused (SIGSTOP)"),
        What::Resumed => format!("{who} goes on"),
        What::Killed => format!("{who} dies (SIGKILL)"),
        What::Holder { names } if names.is_empty() => "the store: nobody holds it".to_owned(),
        What::Holder { names } => format!("the store: held by {}", names.join(" and ")),
        What::Fault { text } | What::Note { text } => text.clone(),
        What::Ready | What::End | What::Extended { .. } | What::Done { .. } => return None,
    })
}

/// Whether it gets a number in the picture; what the bars show needs none.
pub(super) fn is_remarkable(what: &What) -> bool {
    let refused = matches!(
        what,
        What::Wrote {
            accepted: false,
            ..
        }
    );
    let told = matches!(
        what,
        What::Lost { .. } | What::Declined { .. } | What::Unwilling { .. }
    );
    let stands = matches!(
        what,
        What::At { .. } | What::GaveUp | What::Note { .. } | What::Resumed
    );
    is_fault(what) || refused || told || stands
}

/// Whether it was done to them.
pub(super) fn is_fault(what: &What) -> bool {
    matches!(what, What::Fault { .. } | What::Paused | What::Killed)
}
