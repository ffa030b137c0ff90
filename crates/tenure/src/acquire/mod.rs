//! The conversation that ends in a hold: ask, queue, wait for the push, ask again now and then.

mod attempt;
mod progress;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::{
    Acquire, Action, Error, ErrorKind, Fence, LockName, Mode, Order, Outcome, Party,
    PushedValidity, Renew, Retry, Spelled, Ttl, Validity, Waiting,
};
use tokio::sync::watch;

use crate::client::Client;
use crate::gate::{Call, Gate, News, Run, Turn};
use crate::handover::Likeness;
use crate::hold::{Hold, NewHold, Renewing};
use crate::link::{Anchor, out_of_place};
use crate::mailbox::Letter;
use crate::random;

use attempt::Attempt;
pub use progress::{Blocked, Silence, WaitReport};

/// How long the store keeps our place without a sign of life.
pub(crate) const ALIVE_FOR: Duration = Duration::from_secs(15);
/// How often we give one, and a little later now and then, so that not all do it at once. Not more
/// often: a thousand processes that wait should not be a load.
const HEARTBEAT: Duration = Duration::from_secs(5);
const HEARTBEAT_SPREAD: Duration = Duration::from_millis(300);
/// A foreign holder will not tell us of its release, so it is looked at this often.
const FOREIGN_POLL: Duration = Duration::from_millis(300);
/// The first and the longest pause between tries to reach a store that cannot be asked.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long at most to stay out of the way of others after a race that nobody won.
const RACE_PAUSE: Duration = Duration::from_millis(30);
/// For how long whoever does not wait goes on racing. It ends when somebody is seen to hold it, which is soon: without that,
/// all of a crowd would skip what nobody does.
const RACING: Duration = Duration::from_secs(10);
/// How often the pause may be doubled for whoever loses one race after the other: many do so then, and
/// each needs a moment of its own.
const RACE_DOUBLINGS: u32 = 5;

/// What is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: LockName,
    pub(crate) mode: Mode,
    pub(crate) ttl: Ttl,
    pub(crate) renewing: Renewing,
    pub(crate) hold_at_most: Option<Duration>,
    /// The hold outlives this process.
    pub(crate) detached: bool,
    /// It may come from, and go to, another task of this process without a word to the store.
    pub(crate) local_handover: bool,
    pub(crate) party: Party,
    pub(crate) report: Option<watch::Sender<WaitReport>>,
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Forever,
    For(Duration),
}

impl Wait {
    /// What is left of it after `passed`. A wait that has run out still asks for an instant: only
    /// one that was zero from the start may take as long as an answer takes.
    pub(crate) fn less(self, passed: Duration) -> Self {
        match self {
            Self::For(limit) if !limit.is_zero() => {
                Self::For(limit.saturating_sub(passed).max(Duration::from_nanos(1)))
            }
            _ => self,
        }
    }
}

/// What was got.
pub(crate) struct Held {
    pub(crate) hold: Arc<Hold>,
    /// Set if it may be handed on to others who wait here.
    pub(crate) run: Option<Run>,
}

/// What one question to the store led to.
enum Turnout {
    Held(Arc<Hold>),
    Blocked(Blocked),
    /// The answer came too late to be of use; this is what to say if it goes on like that.
    TooLate(Error),
}

/// Asks once and never waits for whoever holds it. As long as nobody does, and several got in each other's way, it asks again.
///
/// # Cancel safety
/// Dropping the future leaves neither hold nor queue place behind: [`Attempt`] cancels.
pub(crate) async fn try_once(
    client: &Arc<Client>,
    wanted: &Wanted,
) -> Result<Result<Held, Blocked>, Error> {
    let mut attempt = Attempt::new(client, wanted)?;
    let (mut again, mut crowd) = (0, Crowd::default());
    let clock = client.link.clock();
    let enough = clock.now().plus(RACING);
    loop {
        match ask(&mut attempt, Waiting::No).await {
            Ok(Turnout::Held(hold)) => return Ok(Ok(Held { hold, run: None })),
            // Nobody holds it, and nobody has won: somebody must.
            Ok(Turnout::Blocked(blocked)) if is_race(client, &blocked) && clock.now() < enough => {
                attempt.settled();
                clock.sleep(crowd.lost_a_race()).await;
            }
            Ok(Turnout::Blocked(blocked)) => {
                attempt.settled();
                return Ok(Err(blocked));
            }
            Ok(Turnout::TooLate(_)) if again < 2 => again += 1,
            Ok(Turnout::TooLate(error)) | Err(error) => return Err(error),
        }
    }
}

/// Waits for the lock for as long as `wait` says, whatever the store does meanwhile. A wait of zero
/// asks once.
///
/// # Cancel safety
/// Dropping the future leaves neither hold nor queue place behind: [`Attempt`] cancels.
pub(crate) async fn wait_for(
    client: &Arc<Client>,
    wanted: &Wanted,
    wait: Wait,
) -> Result<Held, Error> {
    // Made when there is something to tell: a lock that is free needs none.
    let report = OnceLock::new();
    let gate = client.gates.gate(&wanted.name);
    let conversation = converse(client, wanted, &gate, &report);
    match wait {
        Wait::Forever => conversation.await,
        Wait::For(Duration::ZERO) => match try_once(client, wanted).await? {
            Ok(held) => Ok(held),
            Err(blocked) => Err(progress::busy(&wanted.name, Duration::ZERO, &blocked)),
        },
        Wait::For(limit) => {
            let deadline = client.link.now().plus(limit);
            tokio::select! {
                biased;
                result = conversation => result,
                () = client.link.clock().sleep_until(deadline) => {
                    let report = report.get_or_init(watch::Sender::default).borrow();
                    Err(report.ran_out(&wanted.name, limit, gate.news()))
                }
            }
        }
    }
}

/// The error for a wait that ran out before we could even stand in line.
pub(crate) fn ran_out(client: &Client, name: &LockName, limit: Duration) -> Error {
    let news = client.gates.gate(name).news();
    WaitReport::default().ran_out(name, limit, news)
}

async fn converse(
    client: &Arc<Client>,
    wanted: &Wanted,
    gate: &Arc<Gate>,
    report: &OnceLock<watch::Sender<WaitReport>>,
) -> Result<Held, Error> {
    let report = || report.get_or_init(|| wanted.report.clone().unwrap_or_default());
    let likeness = Likeness::of(wanted);
    let turn = loop {
        match gate.enter(likeness.clone(), &client.link).await {
            Call::Speak(turn) => break turn,
            // If it has ended on its way to us, it is given back, and we line up again.
            Call::Take(baton) => match baton.take()? {
                Some(held) => return Ok(held),
                None => continue,
            },
        }
    };
    let held = |turn: Turn, hold| {
        let run = likeness.and_then(|likeness| turn.run(likeness, &client.link));
        Held { hold, run }
    };
    let mut attempt = Attempt::new(client, wanted)?;
    let waiting = Waiting::Queue {
        inbox: client.inbox.clone(),
        alive_for: ALIVE_FOR,
    };
    let mut pause = FIRST_PAUSE;
    let mut crowd = Crowd::default();
    loop {
        let blocked = match ask(&mut attempt, waiting.clone()).await {
            Ok(Turnout::Held(hold)) => return Ok(held(turn, hold)),
            Ok(Turnout::Blocked(blocked)) => blocked,
            Ok(Turnout::TooLate(error)) | Err(error) if error.retry() == Retry::Later => {
                turn.tell(News::Silent(error.to_string()));
                report().send_modify(|report| report.store_failed(error, client.link.now()));
                client.link.clock().sleep(random::jittered(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            Ok(Turnout::TooLate(error)) | Err(error) => return Err(error),
        };
        pause = FIRST_PAUSE;
        if blocked.ahead.is_none() {
            attempt.settled(); // There is no queue, so nothing is left of the question.
        }
        let clock = client.link.clock();
        let raced = is_race(client, &blocked);
        let ask_again = ask_again_after(&blocked);
        turn.tell(News::Blocked(blocked.clone()));
        report().send_modify(|report| report.store_answered(blocked));
        if raced {
            clock.sleep(crowd.lost_a_race()).await;
            continue;
        }
        let letter = tokio::select! {
            biased;
            letter = attempt.slot.letter() => letter,
            () = clock.sleep(ask_again) => Letter::AskAgain,
        };
        if let Some(hold) = pushed(&mut attempt, letter)? {
            return Ok(held(turn, hold));
        }
        let pause = crowd.was_told();
        if !pause.is_zero() {
            clock.sleep(pause).await;
        }
    }
}

/// How many seem to race for the same lock, by the races that were lost of late.
#[derive(Default)]
struct Crowd(u32);

impl Crowd {
    /// How long to stay out of the way of those who won neither.
    fn lost_a_race(&mut self) -> Duration {
        let pause = random::up_to(RACE_PAUSE * (1 << self.0));
        self.0 = (self.0 + 1).min(RACE_DOUBLINGS);
        pause
    }

    /// Everybody else was told as well: how long to let others go first. If none was in the way before, not
    /// at all.
    fn was_told(&mut self) -> Duration {
        let pause = RACE_PAUSE * ((1 << self.0) - 1) / 2;
        self.0 = self.0.saturating_sub(1);
        random::up_to(pause)
    }
}

/// Whether nobody holds it, but several who race for it got in each other's way.
fn is_race(client: &Client, blocked: &Blocked) -> bool {
    blocked.nobody_won() && client.link.store().guarantees().order == Order::Race
}

/// When to ask again if nothing is pushed: as a sign of life, at the holder's expiry if we are next,
/// and often if the holder is not one of ours; the less often, the more wait before us.
fn ask_again_after(blocked: &Blocked) -> Duration {
    let mut after = HEARTBEAT + random::up_to(HEARTBEAT_SPREAD);
    if blocked.contention.is_foreign() {
        let place = blocked.ahead.unwrap_or(0).saturating_add(1);
        after = after.min(FOREIGN_POLL.saturating_mul(place));
    }
    if blocked.ahead.unwrap_or(0) == 0
        && let Some(left) = blocked.recovering()
    {
        // Nobody else will serve the queue when the store opens.
        return after.min(left + Duration::from_millis(5));
    }
    if blocked.ahead.unwrap_or(0) == 0
        && let Some(expiry) = blocked.contention.next_expiry
    {
        // A little later, so that the store agrees that it has expired.
        after = after.min(expiry.since(blocked.now) + Duration::from_millis(5));
    }
    after
}

/// Asks the store once.
async fn ask(attempt: &mut Attempt, waiting: Waiting) -> Result<Turnout, Error> {
    let link = attempt.client.link.clone();
    if attempt.has_asked() && link.store().guarantees().order == Order::Race {
        attempt.start_over()?;
    }
    let wanted = attempt.wanted.clone();
    let anchor = (!wanted.detached).then(|| attempt.client.inbox.clone());
    let request = Acquire {
        owner: attempt.owner,
        mode: wanted.mode,
        ttl: wanted.ttl,
        party: wanted.party.clone(),
        waiting,
        anchor,
        not_after: link.not_after(&wanted.name),
    };
    attempt.sent(request.not_after);
    let answer = link.ask(&wanted.name, Action::Acquire(request)).await?;
    attempt.answered((answer.sent, answer.now));
    match answer.outcome {
        Outcome::Granted(grant) => {
            // Never longer than a lease: a store that forgets waits no longer than for that.
            let validity = answer.validity(grant.expiry, wanted.ttl.duration());
            // What was granted a while ago, to a push or a reply that we missed, ends soon.
            let whole = grant.expiry.since(answer.now) >= wanted.ttl.duration() * 9 / 10;
            let confirmed = whole.then_some(answer.sent);
            match attempt.hold(grant.fence, validity, confirmed)? {
                Some(hold) => Ok(Turnout::Held(hold)),
                // The reply took so long that the grant is worth nothing any more.
                None => prolong(attempt, grant.fence).await,
            }
        }
        Outcome::Queued { ahead, contention } => Ok(Turnout::Blocked(Blocked {
            now: answer.now,
            ahead: Some(ahead),
            contention,
        })),
        Outcome::Busy(contention) => Ok(Turnout::Blocked(Blocked {
            now: answer.now,
            ahead: None,
            contention,
        })),
        Outcome::TooLate => Ok(Turnout::TooLate(Error::new(
            ErrorKind::Unavailable,
            "requests reach the store too late, or its clock jumps",
        ))),
        Outcome::Conflict { in_force } => Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "the name {:?} is in use as {in_force}, and {} was asked for: use another name, or \
                 the same kind and capacity everywhere",
                wanted.name.as_str(),
                wanted.mode.kind(),
            ),
        )),
        other => Err(out_of_place("acquire", &other)),
    }
}

/// The longest that a lease of this ttl can last without a further renewal: it may have begun as the
/// claim window of a pushed grant.
pub(crate) fn longest(ttl: Ttl) -> Duration {
    ttl.duration().max(claim_window())
}

/// How long a pushed grant lasts until it is renewed (`Waiter::claim_window`).
pub(crate) fn claim_window() -> Duration {
    ALIVE_FOR / 2
}

/// Makes a hold of what was pushed, if it can be relied upon; else we ask again.
fn pushed(attempt: &mut Attempt, letter: Letter) -> Result<Option<Arc<Hold>>, Error> {
    let (Letter::Grant(grant, received), Some(anchor)) = (letter, attempt.anchor) else {
        return Ok(None);
    };
    if grant.now < anchor.1 {
        // The store has said since that we do not hold it, or its clock was set back.
        return Ok(None);
    }
    let longest = grant.now.plus(attempt.wanted.ttl.duration());
    let expiry = grant.expiry.min(longest);
    match Validity::of_push(anchor, received, grant.now, expiry) {
        PushedValidity::Trusted(validity) => attempt.hold(grant.fence, validity, None),
        PushedValidity::ConfirmFirst => Ok(None),
    }
}

async fn prolong(attempt: &mut Attempt, fence: Fence) -> Result<Turnout, Error> {
    let link = attempt.client.link.clone();
    let ttl = attempt.wanted.ttl;
    let renew = Renew {
        owner: attempt.owner,
        fence,
        ttl,
        detach: false,
        // What is not valid must not be taken back from a store that forgot it.
        terms: None,
    };
    let name = attempt.wanted.name.clone();
    let answer = link.ask(&name, Action::Renew(renew)).await?;
    let hold = match answer.outcome {
        Outcome::Renewed { expiry } => {
            let validity = answer.validity(expiry, ttl.duration());
            attempt.hold(fence, validity, Some(answer.sent))?
        }
        _ => None,
    };
    Ok(hold.map_or_else(|| Turnout::TooLate(too_slow(ttl)), Turnout::Held))
}

fn too_slow(ttl: Ttl) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the store answers too slowly for a ttl of {}: choose a longer one",
            Spelled(ttl.duration())
        ),
    )
}
