//! Replies of scripts as outcomes; see the header of each file in `scripts/`.

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::str::{FromStr, SplitAsciiWhitespace};

use percent_encoding::percent_decode_str;
use tenure_core::{
    Contention, Fence, ForcedRelease, Grant, HolderView, Kind, Mode, Outcome, OwnerId, Party,
    Removed, Reply, Snapshot, Timestamp, WaiterView,
};

use super::errors::{self, Failure};
use super::step::Nonce;

/// What a script said to one request.
#[derive(Debug)]
pub(super) struct Answer {
    /// The decision; `None` from admit.lua, which only goes on with somebody else's.
    pub(super) reply: Option<Reply>,
    /// Where to go on in the queue, if the script had looked at enough waiters.
    pub(super) more: Option<String>,
}

impl Answer {
    /// Whether it gives away a lock.
    pub(super) fn is_grant(&self) -> bool {
        let outcome = self.reply.as_ref().map(|reply| &reply.outcome);
        matches!(outcome, Some(Outcome::Granted(_)))
    }
}

/// Reads the reply to the request with this nonce, owner and fence.
pub(super) fn answer(text: &str, nonce: Nonce, asked: &Asked) -> Result<Answer, Failure> {
    let mut words = Words(text.split_ascii_whitespace());
    let its_nonce = Nonce::from_word(words.next()?);
    let its_owner = words.optional()?.map(str::parse).transpose();
    if its_nonce != Some(nonce) || !its_owner.is_ok_and(|owner| owner == asked.owner) {
        return Err(Failure::protocol(
            "a reply belongs to another request: the connection is given up, please report this",
        ));
    }
    // It is ours: if it cannot be read, that is the fault of a key and not of the connection, which
    // others use for other keys.
    words.answer(asked).map_err(Failure::sparing_the_connection)
}

/// What the reply must fit to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) owner: Option<OwnerId>,
    pub(super) fence: Option<Fence>,
}

/// Undoes [`Word`](super::encode::Word).
pub(super) fn text(word: &str) -> String {
    match word {
        "-" => String::new(),
        word => percent_decode_str(word).decode_utf8_lossy().into_owned(),
    }
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn answer(mut self, asked: &Asked) -> Result<Answer, Failure> {
        let now = self.time()?;
        let more = self.optional()?.map(str::to_owned);
        let outcome = match self.next()? {
            "error" => {
                let message: Vec<_> = self.0.collect();
                return Err(errors::from_text(&message.join(" ")));
            }
            "admitted" => return Ok(Answer { reply: None, more }),
            said => self.outcome(said, asked)?,
        };
        let reply = Some(Reply { now, outcome });
        Ok(Answer { reply, more })
    }

    fn next(&mut self) -> Result<&'a str, Failure> {
        self.0.next().ok_or_else(unreadable)
    }

    fn optional(&mut self) -> Result<Option<&'a str>, Failure> {
        Ok(Some(self.next()?).filter(|word| *word != "-"))
    }

    fn parsed<T: FromStr>(&mut self) -> Result<T, Failure> {
        self.next()?.parse().map_err(|_| unreadable())
    }

    fn time(&mut self) -> Result<Timestamp, Failure> {
        self.parsed().map(Timestamp::from_micros)
    }

    fn outcome(&mut self, said: &str, asked: &Asked) -> Result<Outcome, Failure> {
        Ok(match said {
            "granted" => Outcome::Granted(Grant {
                fence: self.parsed()?,
                expiry: self.time()?,
            }),
            "queued" => Outcome::Queued {
                ahead: self.parsed()?,
                contention: self.contention()?,
            },
            "busy" => Outcome::Busy(self.contention()?),
            "late" => Outcome::TooLate,
            "conflict" => Outcome::Conflict {
                in_force: kind(self.next()?)?,
            },
            "renewed" => Outcome::Renewed {
                expiry: self.time()?,
            },
            "converted" => Outcome::Converted {
                expiry: self.time()?,
            },
            "released" => Outcome::Released,
            "cancelled" => Outcome::Cancelled(match self.next()? {
                "grant" => Removed::Grant,
                "waiter" => Removed::Waiter,
                "nothing" => Removed::Nothing,
                _ => return Err(unreadable()),
            }),
            "nothing" => Outcome::NotHeld { forced: None },
            "forced" => Outcome::NotHeld {
                forced: Some(self.forced(asked)?),
            },
            "forgotten" => Outcome::Forgotten {
                until: self.time()?,
            },
            "state" => Outcome::State(self.snapshot()?),
            _ => return Err(unreadable()),
        })
    }

    fn forced(&mut self, asked: &Asked) -> Result<ForcedRelease, Failure> {
        Ok(ForcedRelease {
            owner: asked.owner.ok_or_else(unreadable)?,
            fence: asked.fence.ok_or_else(unreadable)?,
            at: self.time()?,
            by: self.party()?,
            reason: text(self.next()?),
        })
    }

    fn contention(&mut self) -> Result<Contention, Failure> {
        Ok(Contention {
            holder_count: self.parsed()?,
            waiter_count: self.parsed()?,
            next_expiry: self.optional_time()?,
            recovering: self.optional_time()?,
            restless: false,
            holders: self.holders()?,
        })
    }

    fn snapshot(&mut self) -> Result<Snapshot, Failure> {
        let kind = self.optional()?.map(kind).transpose()?;
        let last_fence = self.parsed()?;
        let holders = self.holders()?;
        let count: usize = self.parsed()?;
        let waiters: Result<_, Failure> = (0..count).map(|_| self.waiter()).collect();
        Ok(Snapshot {
            kind,
            last_fence,
            holders,
            waiters: waiters?,
        })
    }

    fn holders(&mut self) -> Result<Vec<HolderView>, Failure> {
        let count: usize = self.parsed()?;
        (0..count).map(|_| self.holder()).collect()
    }

    fn holder(&mut self) -> Result<HolderView, Failure> {
        let owner = self.optional()?;
        let owner: Option<OwnerId> = owner
            .map(str::parse)
            .transpose()
            .map_err(|_| unreadable())?;
        let mode = mode(self.next()?)?;
        let fence = self.optional()?.map(str::parse).transpose();
        let since = self.optional_time()?;
        let expiry = self.optional_time()?;
        let _ttl = self.next()?;
        let party = self.party()?;
        Ok(HolderView {
            owner,
            mode,
            fence: fence.map_err(|_| unreadable())?,
            since,
            expiry,
            party: if owner.is_none() {
                foreign(party.who())
            } else {
                party
            },
        })
    }

    fn waiter(&mut self) -> Result<WaiterView, Failure> {
        Ok(WaiterView {
            owner: self.parsed()?,
            mode: mode(self.next()?)?,
            since: self.time()?,
            party: self.party()?,
        })
    }

    fn party(&mut self) -> Result<Party, Failure> {
        let pid = self.parsed()?;
        let (host, who, label) = (self.next()?, self.next()?, self.next()?);
        Ok(Party::new(&text(who), &text(label), &text(host), pid))
    }

    fn optional_time(&mut self) -> Result<Option<Timestamp>, Failure> {
        let micros = self.optional()?.map(str::parse).transpose();
        let micros: Option<u64> = micros.map_err(|_| unreadable())?;
        Ok(micros.map(Timestamp::from_micros))
    }
}

/// Who holds a key that tenure did not write, as far as can be said.
fn foreign(redis_type: &str) -> Party {
    let who = format!("{FOREIGN}{redis_type}");
    Party::new(&who, "another program", "", 0)
}

/// What the party of a foreign holder begins with, before the type of its key.
pub(super) const FOREIGN: &str = "a key of type ";

fn mode(text: &str) -> Result<Mode, Failure> {
    match text {
        "x" => Ok(Mode::Exclusive),
        "s" => Ok(Mode::Shared),
        text => {
            let permits = text.strip_prefix('p').and_then(|text| text.split_once('/'));
            let (count, capacity) = permits.ok_or_else(unreadable)?;
            let number = |text: &str| text.parse().map_err(|_| unreadable());
            Mode::permits(number(count)?, number(capacity)?).map_err(|_| unreadable())
        }
    }
}

fn kind(text: &str) -> Result<Kind, Failure> {
    if text == "lock" {
        return Ok(Kind::Lock);
    }
    let capacity: NonZeroU32 = text.parse().map_err(|_| unreadable())?;
    Ok(Kind::Semaphore {
        capacity: capacity.get(),
    })
}

fn unreadable() -> Failure {
    Failure::protocol(
        "a reply makes no sense: a newer version of tenure, or something else, writes to the same keys",
    )
}
