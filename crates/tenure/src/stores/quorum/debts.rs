//! [`Debts`]: the votes that a member has still to take back. Paid in the background, until the member
//! has confirmed it or the votes have ended by themselves; also when whoever asked for them is gone.
//! [`Lasting`] is the one place that says when that is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Acquire, Action, Cancel, Fence, LockName, Moment, OwnerId, Release, Request};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::Shared;
use super::holds::Held;
use super::member::Member;
use crate::clock::Clock;
use crate::random;

/// Debts paid in one call.
const BATCH: usize = 100;
/// Pauses before a member that did not answer is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
/// For how long a vote of unknown length is to be taken back.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// So many of these are remembered; of more, the oldest is left to end by itself.
const UNKNOWN: usize = 1_000;
/// So many are remembered of all. Of more, those that end soonest are left to: with all servers away, nobody can tell that nothing
/// was ever asked of them, and everybody who waits adds some every second.
const MOST: usize = 10_000;

/// For how long a vote may last, at the most, that is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Every vote of its owner was asked for here, and none for longer.
    UpTo(Duration),
    /// Somebody else asked for it.
    Unknown,
}

impl Lasting {
    /// Votes that were asked for by this, and by nothing since.
    pub(super) fn asked(acquire: &Acquire) -> Self {
        Self::UpTo(acquire.ttl.duration())
    }

    /// Votes of this hold, if this process took it. Whatever was asked for since is counted from now on, also what was not
    /// confirmed: the member may have done it all the same.
    pub(super) fn of(held: Option<&Held>) -> Self {
        held.map_or(Self::Unknown, |held| Self::UpTo(held.longest()))
    }
}

impl Shared {
    /// Sees to it that a member takes this vote back.
    pub(super) fn owe(&self, member: usize, debt: Debt) {
        if debt.fence.is_none() {
            self.spent.add(&debt, self.clock.now());
        }
        self.members[member].owes(debt, &self.clock, &self.runtime);
    }

    /// A vote that was asked for at `sent` and is to be taken back.
    pub(super) fn debt(
        &self,
        name: &LockName,
        owner: OwnerId,
        lasting: Lasting,
        sent: Moment,
    ) -> Debt {
        let now = self.clock.now();
        let longest = match lasting {
            Lasting::UpTo(longest) => longest,
            Lasting::Unknown => PATIENCE,
        };
        Debt {
            name: name.clone(),
            owner,
            fence: None,
            due: now,
            again: Some(sent.plus(self.adrift())),
            until: now.plus(longest + self.adrift()),
            is_unknown: lasting == Lasting::Unknown,
            paid: None,
        }
    }
}

/// What one member owes.
#[derive(Debug, Default)]
pub(super) struct Debts {
    account: Mutex<Account>,
    /// Told of new ones.
    added: Notify,
}

#[derive(Debug, Default)]
struct Account {
    open: Vec<Debt>,
    /// Whether somebody sees to them.
    attended: bool,
}

impl Account {
    fn add(&mut self, debt: Debt) {
        if debt.is_unknown {
            let mut unknown = (0..self.open.len()).filter(|index| self.open[*index].is_unknown);
            let oldest = unknown.next().filter(|_| unknown.count() + 1 >= UNKNOWN);
            if let Some(oldest) = oldest {
                self.open.remove(oldest);
            }
        }
        if self.open.len() >= MOST {
            self.open.sort_unstable_by_key(|debt| debt.until);
            self.open.drain(..MOST / 10);
        }
        self.open.push(debt);
    }
}

/// A vote to be taken back.
#[derive(Debug)]
pub(super) struct Debt {
    pub(super) name: LockName,
    pub(super) owner: OwnerId,
    /// Only the vote with this fence is meant, because the owner holds the lock: a vote that it has got
    /// back meanwhile counts, and must stay. `None`: whichever the owner has.
    pub(super) fence: Option<Fence>,
    /// When to ask for it.
    pub(super) due: Moment,
    /// When to ask once more: until then the request for the vote itself may still be under way.
    pub(super) again: Option<Moment>,
    /// After this the vote has ended by itself.
    pub(super) until: Moment,
    /// That is a guess.
    pub(super) is_unknown: bool,
    /// Dropped when the member has confirmed it.
    pub(super) paid: Option<oneshot::Sender<()>>,
}

impl Member {
    /// Sees to it that this vote is taken back.
    fn owes(self: &Arc<Self>, debt: Debt, clock: &Arc<dyn Clock>, runtime: &Handle) {
        let mut account = self.debts.account();
        account.add(debt);
        let attended = std::mem::replace(&mut account.attended, true);
        drop(account);
        if attended {
            self.debts.added.notify_one();
        } else {
            // On a runtime that has ended nothing can be sent any more; the votes end by themselves.
            runtime.spawn(pay(self.clone(), clock.clone()));
        }
    }
}

/// Pays what the member owes until it owes nothing.
async fn pay(member: Arc<Member>, clock: Arc<dyn Clock>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let batch = match member.debts.due(clock.now()) {
            Due::Nothing => return,
            Due::Now(batch) => batch,
            Due::At(moment) => {
                tokio::select! {
                    biased;
                    () = clock.sleep(moment.since(clock.now())) => {}
                    () = member.debts.added.notified() => {}
                }
                continue;
            }
        };
        let requests = batch.iter().map(Debt::request).collect();
        let answer = member.clone().ask(clock.now(), requests).await;
        let later = clock.now().plus(random::jittered(pause));
        let mut failed = false;
        let mut open = Vec::new();
        for (mut debt, reply) in batch.into_iter().zip(answer.replies) {
            if reply.is_err() {
                failed = true;
                debt.due = later;
            } else if let Some(again) = debt.again.take() {
                debt.paid = None;
                debt.due = again;
            } else {
                continue;
            }
            open.push(debt);
        }
        pause = if failed {
            (pause * 2).min(LONGEST_PAUSE)
        } else {
            FIRST_PAUSE
        };
        let mut account = member.debts.account();
        if failed {
            // The others would most likely fail, too; with hundreds of them that would be a call after the other.
            for debt in &mut account.open {
                debt.due = debt.due.max(later);
            }
        }
        account.open.extend(open);
    }
}

/// What there is to do.
enum Due {
    Nothing,
    Now(Vec<Debt>),
    At(Moment),
}

impl Debts {
    /// How many votes have still to be taken back.
    pub(super) fn count(&self) -> usize {
        self.account().open.len()
    }

    /// Takes what is due; if nothing is left, nobody attends to it any more.
    fn due(&self, now: Moment) -> Due {
        let mut account = self.account();
        account.open.retain(|debt| now < debt.until);
        let due = account.open.extract_if(.., |debt| debt.due <= now);
        let batch: Vec<_> = due.take(BATCH).collect();
        if !batch.is_empty() {
            return Due::Now(batch);
        }
        match account.open.iter().map(|debt| debt.due).min() {
            Some(next) => Due::At(next),
            None => {
                account.attended = false;
                Due::Nothing
            }
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debt {
    fn request(&self) -> Request {
        let owner = self.owner;
        let action = match self.fence {
            Some(fence) => Action::Release(Release { owner, fence }),
            None => Action::Cancel(Cancel { owner }),
        };
        action.on(self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_those_are_kept_that_last_longest() {
        let mut account = Account::default();
        let newest = 3 * MOST as u64;
        for number in 0..=newest {
            account.add(Debt {
                name: LockName::new("x").unwrap(),
                owner: OwnerId::from_bytes([1; 16]),
                fence: None,
                due: Moment::from_nanos(0),
                again: None,
                until: Moment::from_nanos(number),
                is_unknown: false,
                paid: None,
            });
            assert!(account.open.len() <= MOST);
        }
        assert!(account.open.len() >= MOST * 9 / 10);
        let mut ends = account.open.iter().map(|debt| debt.until.as_nanos());
        assert!(ends.all(|end| end >= newest - MOST as u64));
    }
}
