//! The server: it runs the core's own `hello` and `decide_in`, and can forget in every way.

use std::time::Duration;

use tenure_core::{
    Action, Cause, Decision, Everyone, Fence, Greeting, Hello, Life, LockState, Mode, Outcome,
    OwnerId, Phase, Record, Recovery, Seen, Timestamp, decide_in, hello,
};

use super::model::{Kind, Rule, Rules};

/// Time passes in ticks of two seconds: as long as the age of a server may be off.
pub(super) const TICK: Duration = Duration::from_secs(2);
/// In ticks: of every lease, and the longest that is protected.
pub(super) const TTL: u8 = 2;

pub(super) fn time(tick: u8) -> Timestamp {
    Timestamp::from_micros(1_000_000_000).plus(TICK * u32::from(tick))
}

pub(super) fn ticks(length: Duration) -> u8 {
    u8::try_from(length.as_secs() / TICK.as_secs()).unwrap_or(u8::MAX)
}

/// What is kept, and lost together.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    pub(super) lock: LockState,
    pub(super) record: Option<Record>,
}

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) data: Data,
    /// What it was before the last changes, newest first: what a restart may go back to.
    pub(super) earlier: Vec<Data>,
    pub(super) run: u8,
    pub(super) started: u8,
    pub(super) took_over: bool,
    pub(super) wiped: bool,
    /// Whether anybody has said hello since it started: before that it knows no script.
    pub(super) greeted: bool,
    pub(super) lives: u8,
    /// By how much its clock is ahead of the others'.
    pub(super) ahead: u8,
    pub(super) kind: Kind,
}

/// The ways to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    RestartEmpty,
    /// Forgets nothing this time.
    RestartKept,
    /// From what it was before this many changes, and one.
    RestartFromCopy(usize),
    /// A replica that lags behind takes over; it has been running all the time.
    Promotion(usize),
    /// The same, and its clock is a tick ahead.
    PromotionAhead(usize),
    Wipe,
}

impl Fault {
    pub(super) const ALL: [Self; 8] = [
        Self::RestartKept,
        Self::RestartEmpty,
        Self::RestartFromCopy(0),
        Self::RestartFromCopy(1),
        Self::Promotion(0),
        Self::Promotion(1),
        Self::PromotionAhead(0),
        Self::Wipe,
    ];
}

impl Server {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            data: Data::default(),
            earlier: Vec::new(),
            run: 0,
            started: 0,
            took_over: false,
            wiped: false,
            greeted: false,
            lives: 0,
            ahead: 0,
            kind,
        }
    }

    /// What its clock shows.
    pub(super) fn time(&self, now: u8) -> Timestamp {
        time(now + self.ahead)
    }

    /// Drops what every step would drop first, so that states that differ in nothing else are one.
    pub(super) fn tidy(&mut self, now: u8) {
        let now = self.time(now);
        for data in std::iter::once(&mut self.data).chain(&mut self.earlier) {
            data.lock.holders.retain(|it| it.expiry > now);
            data.lock.queue.retain(|it| it.alive_until > now);
        }
    }

    /// Forgets; `None` if it cannot do so now.
    pub(super) fn forget(&self, fault: Fault, now: u8) -> Option<Self> {
        if !self.kind.allows(fault) {
            return None;
        }
        let mut server = self.clone();
        match fault {
            Fault::Wipe => {
                server.data = Data::default();
                server.wiped = true;
                return Some(server);
            }
            Fault::RestartEmpty => server.data = Data::default(),
            Fault::RestartKept => {}
            Fault::RestartFromCopy(back) | Fault::Promotion(back) | Fault::PromotionAhead(back) => {
                server.data = self.earlier.get(back)?.clone();
            }
        }
        server.run += 1;
        server.took_over = matches!(fault, Fault::Promotion(_) | Fault::PromotionAhead(_));
        server.ahead += u8::from(matches!(fault, Fault::PromotionAhead(_)));
        server.started = if server.took_over { 0 } else { now };
        server.wiped = false;
        server.greeted = false;
        server.earlier.clear();
        Some(server)
    }

    /// Somebody says hello; answers the life to speak to.
    pub(super) fn hello(&mut self, knew: bool, now: u8, rules: Rules<'_>) -> Life {
        let seen = self.seen(now, rules);
        let greeting = Greeting {
            recovery: Recovery::Careful,
            knew,
            knew_this_run: false,
            max_ttl: TICK * u32::from(TTL),
            no_replicas: self.kind.is_said_to_be_alone(),
        };
        self.greeted = true;
        let mut verdict = hello(self.data.record.as_ref(), &seen, &greeting);
        if self.data.record.is_none() && !rules.keep(Rule::NoOpeningWithoutARecord) {
            verdict = Hello::Begin {
                wait: Duration::ZERO,
                cause: Cause::Unknown,
            };
        }
        match verdict {
            Hello::Known(life) => life,
            Hello::Begin { wait, .. } => self.begin(&seen, self.time(now).plus(wait), &greeting),
            Hello::Disagree { .. } => unreachable!("all protect the same"),
        }
    }

    fn begin(&mut self, seen: &Seen, until: Timestamp, greeting: &Greeting) -> Life {
        self.lives += 1;
        let life = Life::from_u64(u64::from(self.lives));
        self.data.record = Some(Record {
            life,
            run: seen.run.clone(),
            line: seen.line.clone(),
            until,
            max_ttl: greeting.max_ttl,
            durable: seen.keeps_everything(greeting),
            cause: Cause::Unknown,
            began: Vec::new(),
        });
        life
    }

    fn seen(&self, now: u8, rules: Rules<'_>) -> Seen {
        let run = self.run.to_string();
        Seen {
            run: run.as_str().into(),
            line: run.into(),
            took_over: self.took_over && rules.keep(Rule::ATakeoverIsNoAge),
            // The first one is as old as the hills.
            age: TICK * u32::from(now - self.started)
                + if self.run == 0 {
                    TICK * 100
                } else {
                    Duration::ZERO
                },
            durable: self.kind != Kind::Forgetful,
            // One that attaches after anybody said hello is seen by nobody.
            has_replicas: false,
            wiped: self.wiped,
            now: if rules.keep(Rule::RecoveryGoesOn) {
                self.time(now)
            } else {
                time(u8::MAX)
            },
        }
    }

    /// Carries out a request that was sent to `life`; `None` if it is refused because of that.
    pub(super) fn decide(
        &mut self,
        life: Life,
        action: &Action,
        now: u8,
        rules: Rules<'_>,
    ) -> Option<Decision> {
        if !self.greeted && rules.keep(Rule::HelloComesFirst) {
            return None;
        }
        let record = self.data.record.as_ref();
        let phase = match Record::phase_for(record, life, self.time(now)) {
            Some(phase) => phase,
            None if rules.keep(Rule::RequestsAreBoundToALife) => return None,
            None => record?.phase(self.time(now)),
        };
        let lock = self.data.lock.clone();
        if !rules.keep(Rule::TheHigherFenceWins) && gives_way(&lock, action, phase) {
            return Some(refused(lock));
        }
        let phase = weakened(phase, action, rules);
        let last = lock.last_fence;
        let mut decision = decide_in(phase, lock, action, self.time(now), &Everyone);
        if !rules.keep(Rule::FencesFollowTheClock) {
            count(&mut decision, last);
        }
        if parties(&decision.state) != parties(&self.data.lock) {
            self.earlier.insert(0, self.data.clone());
            self.earlier.truncate(2);
        }
        self.data.lock = decision.state.clone();
        Some(decision)
    }
}

/// Who holds and who waits.
fn parties(lock: &LockState) -> Vec<OwnerId> {
    let holders = lock.holders.iter().map(|holder| holder.owner);
    let waiters = lock.queue.iter().map(|waiter| waiter.owner);
    let between = OwnerId::from_bytes([u8::MAX; 16]);
    holders.chain([between]).chain(waiters).collect()
}

/// Whether a server where stored holders never give way would refuse this renewal.
fn gives_way(lock: &LockState, action: &Action, phase: Phase) -> bool {
    let Action::Renew(renew) = action else {
        return false;
    };
    let mut others = lock.holders.iter();
    !phase.is_open() && others.any(|holder| holder.owner != renew.owner)
}

fn refused(state: LockState) -> Decision {
    Decision {
        state,
        outcome: Outcome::NotHeld { forced: None },
        handovers: Vec::new(),
    }
}

/// What a bare counter would have given.
fn count(decision: &mut Decision, last: Fence) {
    let next = Fence::from_u64(last.as_u64() + 1);
    let clock = time(0).as_micros();
    for holder in &mut decision.state.holders {
        if holder.fence.as_u64() >= clock && holder.mode == Mode::Exclusive {
            holder.fence = next;
            decision.state.last_fence = next;
        }
    }
    if let Outcome::Granted(grant) = &mut decision.outcome
        && grant.fence.as_u64() >= clock
    {
        grant.fence = next;
    }
    for handover in &mut decision.handovers {
        handover.fence = next;
    }
}

/// The phase in which a server decides that does not keep all rules.
fn weakened(phase: Phase, action: &Action, rules: Rules<'_>) -> Phase {
    let weak = match action {
        Action::Acquire(_) => !rules.keep(Rule::NobodyIsLetIn),
        Action::Release(_) | Action::Cancel(_) => {
            !rules.keep(Rule::NobodyIsLetIn) || !rules.keep(Rule::ReleasesLetNobodyIn)
        }
        _ => false,
    };
    if weak { Phase::ALWAYS_OPEN } else { phase }
}
