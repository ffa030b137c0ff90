//! What tells one state from another.

use tenure_core::Fence;

use super::client::{Ask, Client, Stage, client_of, ticks_after, time};
use super::message::{Message, News};
use super::model::Faults;
use super::world::World;

impl World {
    /// All that tells this state from others, as bytes. Times count from now, and of fences only the
    /// order matters.
    pub(super) fn key(&self) -> Box<[u8]> {
        let mut fences = vec![self.server.lock.last_fence, self.highest];
        fences.extend(self.server.lock.holders.iter().map(|it| it.fence));
        fences.extend(self.clients.iter().filter_map(Client::fence));
        fences.extend(self.late.iter().filter_map(Message::fence));
        fences.sort_unstable();
        fences.dedup();
        let rank = |fence: Fence| {
            let place = fences.binary_search(&fence).unwrap_or(usize::MAX);
            u8::try_from(place).unwrap_or(u8::MAX)
        };
        let now = self.now;
        let soon = |tick: u16| tick.saturating_sub(now) as u8;
        let ago = |tick: u16| now.saturating_sub(tick).min(20) as u8;
        let ahead = |it| ticks_after(it, now) as u8;
        let Faults {
            losses,
            delays,
            crashes,
            pauses,
            restarts,
            cancels,
        } = self.left;
        let mut key = vec![losses, delays, crashes, pauses, restarts, cancels];
        key.extend([
            self.waited,
            self.alone,
            self.server.life,
            soon(self.server.opens),
        ]);
        key.extend([rank(self.server.lock.last_fence), rank(self.highest)]);
        // Fences follow the clock only once it has passed them.
        key.push(u8::from(
            self.server.lock.last_fence.as_u64() >= time(now).as_micros(),
        ));
        for holder in &self.server.lock.holders {
            key.extend([
                1,
                client_of(holder.owner),
                rank(holder.fence),
                ahead(holder.expiry),
            ]);
        }
        for waiter in &self.server.lock.queue {
            key.extend([2, client_of(waiter.owner), ahead(waiter.alive_until)]);
        }
        for client in &self.clients {
            let marks = u8::from(client.renewed)
                | u8::from(client.whole) << 1
                | u8::from(client.ghost) << 2;
            key.extend([3, u8::from(client.paused), client.life, marks]);
            match client.stage {
                Stage::Idle => key.push(0),
                Stage::Waiting { asked } => key.extend([1, ago(asked).min(1)]),
                Stage::Holds {
                    fence,
                    since,
                    until,
                    unclaimed,
                } => key.extend([2, rank(fence), ago(since), soon(until), u8::from(unclaimed)]),
                Stage::Done => key.push(3),
                Stage::Dead => key.push(4),
                Stage::Lost { fence } => key.extend([5, rank(fence)]),
            }
        }
        for message in &self.late {
            match *message {
                Message::Request {
                    from,
                    ask,
                    life,
                    sent,
                } => {
                    key.extend([4, from, life, ago(sent), word(ask)]);
                    key.push(ask.fence().map_or(0, rank));
                }
                Message::News {
                    to,
                    ask,
                    news,
                    sent,
                } => {
                    key.extend([5, to, word(ask), ago(sent)]);
                    match news {
                        News::Yours { fence, lasts } => key.extend([0, rank(fence), lasts as u8]),
                        News::Pushed { fence, until } => key.extend([1, rank(fence), soon(until)]),
                        News::NotYours => key.push(2),
                        News::Wait => key.push(3),
                        News::OtherLife(life) => key.extend([4, life]),
                    }
                }
            }
        }
        key.into()
    }
}

fn word(ask: Ask) -> u8 {
    match ask {
        Ask::Acquire => 0,
        Ask::Renew(_) => 1,
        Ask::Release(_) => 2,
        Ask::Cancel => 3,
    }
}

impl Ask {
    fn fence(self) -> Option<Fence> {
        match self {
            Self::Renew(fence) | Self::Release(fence) => Some(fence),
            Self::Acquire | Self::Cancel => None,
        }
    }
}

impl Client {
    fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Holds { fence, .. } | Stage::Lost { fence } => Some(fence),
            _ => None,
        }
    }
}

impl Message {
    fn fence(&self) -> Option<Fence> {
        match *self {
            Self::Request { ask, .. } => ask.fence(),
            Self::News { news, .. } => match news {
                News::Yours { fence, .. } | News::Pushed { fence, .. } => Some(fence),
                _ => None,
            },
        }
    }
}
