//! A quorum of three simulated servers, each behind its own bad network: whatever gets lost, is repeated, comes late
//! or is cancelled, and whichever servers stop, restart or forget, no two hold at once, fences grow, and everybody is
//! served when it is over. And mistakes made on purpose are caught.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tenure::clock::Clock;
use tenure::core::{
    Action, Ballot, BoxFuture, Finding, Grant, Guarantees, Inbox, Listener, Listing, LockName,
    LockState, Outcome, Recovering, Removed, Reply, Request, Shard,
};
use tenure::stores::quorum::{QuorumStore, Rule, Settings};
use tenure::test_util::{VirtualClock, seed_chance};
use tenure::{Attempt, Error, Store, Tenure};

use super::dice::Dice;
use super::flaws::Flaw;
use super::judge::{Judge, Violation, Wrong};
use super::network::{Replies, SimulatedLink, unavailable};
use super::person::poll_at_most;
use super::profile::{Mishap, Planned, Profile};
use super::seeds::seeds;
use super::world::{Way, World};
use crate::client_world::{millis, secs};

const MEMBERS: usize = 3;
/// Every store ends its calls by itself.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

const STORM: Profile = Profile {
    name: "quorum",
    tasks: 1,
    ttl: (600, 3_000),
    slow: 5,
    slowness: 1_500,
    mishaps: &[
        Mishap::Cut,
        Mishap::Silence,
        Mishap::Stop,
        Mishap::Restart,
        Mishap::Forget,
    ],
    most: 3,
    storm: secs(6),
    ..Profile::STORM
};

/// Messages stay in order and no server forgets: then nothing may be left behind, not even for a while.
const ORDERLY: Profile = Profile {
    name: "orderly quorum",
    ttl: (20_000, 30_000),
    ordered: true,
    repeat: 0,
    mishaps: &[Mishap::Cut, Mishap::Stop],
    most: 1,
    tidy: true,
    ..STORM
};

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// One vote too many is counted: one of the members says yes to everybody.
    OneVoteTooMany,
    /// Votes that came to nothing are not taken back.
    NoRollBack,
    /// A server that forgot votes again at once.
    RecoveryOff,
}

#[test]
fn no_storm_makes_two_hold_a_lock_of_a_quorum_or_a_fence_go_back() {
    let (mut grants, seeds) = (0, seeds(150));
    for seed in 0..seeds {
        let (found, held) = run(seed, STORM, None);
        assert!(found.is_none(), "seed {seed}: {found:?}");
        grants += held;
    }
    let grants = u64::try_from(grants).expect("some");
    assert!(grants > seeds * 5, "only {grants} grants");
}

#[test]
fn where_messages_stay_in_order_no_vote_is_left_behind() {
    for seed in 0..seeds(60) {
        let (found, _) = run(seed, ORDERLY, None);
        assert!(found.is_none(), "seed {seed}: {found:?}");
    }
}

#[test]
fn mistakes_of_a_quorum_are_caught() {
    for (mistake, profile, expected) in [
        (Mistake::OneVoteTooMany, STORM, Wrong::Overlap),
        (Mistake::RecoveryOff, STORM, Wrong::Overlap),
        (Mistake::NoRollBack, ORDERLY, Wrong::Leak),
    ] {
        let mut seeds = 0..250;
        let caught = seeds.find(|seed| {
            let (found, _) = run(*seed, profile, Some(mistake));
            found.is_some_and(|it| it.wrong == expected)
        });
        assert!(caught.is_some(), "{mistake:?} was not caught");
    }
}

/// What was wrong, and how often the lock was held.
fn run(seed: u64, profile: Profile, mistake: Option<Mistake>) -> (Option<Violation>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    seed_chance(Some(seed));
    let verdict = runtime.block_on(simulate(seed, profile, mistake));
    drop(runtime);
    seed_chance(None);
    verdict
}

async fn simulate(
    seed: u64,
    profile: Profile,
    mistake: Option<Mistake>,
) -> (Option<Violation>, usize) {
    let flaw = (mistake == Some(Mistake::RecoveryOff)).then_some(Flaw::RecoveryOff);
    let world = |member: u64| World::new(seed * 3 + member, profile, flaw, false);
    let members: Vec<_> = (0..MEMBERS as u64).map(world).collect();
    let town = Arc::new(Town {
        clock: members[0].clock.clone(),
        members,
        judge: Mutex::default(),
        over: AtomicBool::new(false),
        mistake,
        // Every third town needs the votes of all servers.
        rule: match seed % 3 == 2 && mistake.is_none() {
            true => Rule::All,
            false => Rule::Majority,
        },
    });
    let mut tenures = Vec::new();
    for client in 0..profile.clients {
        tenures.push(town.client(client).await);
    }
    // In every second town, three tasks share a client.
    let tasks = if seed % 2 == 1 && mistake.is_none() {
        3
    } else {
        1
    };
    let mut lives = Vec::new();
    for (client, tenure) in tenures.iter().enumerate() {
        for task in 0..tasks {
            let dice = Dice::new(seed, 10 + client as u64 + 100 * task);
            let life = town.clone().live(client, tenure.clone(), dice);
            lives.push(tokio::spawn(life));
        }
    }
    for (member, world) in town.members.iter().enumerate() {
        world.set_calm(false);
        tokio::spawn(happen(
            world.clone(),
            profile.plan(seed * 3 + member as u64),
        ));
    }
    town.clock.sleep(profile.storm).await;
    town.members.iter().for_each(|world| world.set_calm(true));
    town.over.store(true, Ordering::SeqCst);
    let lived = join_all(lives).await;
    lived.into_iter().for_each(|it| it.expect("nobody panics"));
    join_all(tenures.iter().map(Tenure::settle)).await;
    town.clock.sleep(secs(3)).await;
    if profile.tidy {
        let left = town.members.iter().map(|world| world.left());
        let left: Vec<_> = left.flatten().collect();
        if !left.is_empty() {
            town.judged(|judge| judge.find(Wrong::Leak, format!("{left:?}")));
        }
    }
    town.judged(|judge| (judge.found.clone(), judge.grants))
}

/// What goes wrong with one of the servers.
async fn happen(world: Arc<World>, plan: Vec<Planned>) {
    let began = world.clock.now();
    for Planned {
        at,
        what,
        whom,
        lasts,
    } in plan
    {
        world.clock.sleep_until(began.plus(at)).await;
        match what {
            Mishap::Cut | Mishap::Silence => {
                let way = match what {
                    Mishap::Cut => Way::Held,
                    _ => Way::Lossy,
                };
                world.set_cut(whom, Some(way));
                world.pass(lasts).await;
                world.set_cut(whom, None);
            }
            Mishap::Stop => {
                world.set_stopped(true);
                world.pass(lasts).await;
                world.set_stopped(false);
            }
            Mishap::Restart => world.restart(true),
            Mishap::Forget => world.restart(false),
            other => unreachable!("{other:?} is not planned"),
        }
    }
}

struct Town {
    clock: VirtualClock,
    members: Vec<Arc<World>>,
    judge: Mutex<Judge>,
    over: AtomicBool,
    mistake: Option<Mistake>,
    rule: Rule,
}

impl Town {
    async fn client(&self, client: usize) -> Tenure {
        let members = self.members.iter().enumerate().map(|(member, world)| {
            let store: Arc<dyn Store> = Arc::new(Spoiled {
                link: SimulatedLink::new(world, client),
                world: world.clone(),
                member,
                mistake: self.mistake,
            });
            (format!("member {member}"), store)
        });
        let settings = Settings::new(self.rule);
        let clock = Arc::new(self.clock.clone());
        let store = QuorumStore::connect(members.collect(), settings, clock.clone()).await;
        let store = Arc::new(store.expect("nothing is wrong yet"));
        let tenure = Tenure::new(store, clock).await;
        tenure.expect("nothing is wrong yet")
    }

    /// Takes the lock again and again, changes its mind at any moment, and gets in once more at the end.
    async fn live(self: Arc<Self>, client: usize, tenure: Tenure, mut dice: Dice) {
        while !self.over.load(Ordering::SeqCst) {
            let lock = match dice.below(4) {
                0 => tenure.rwlock("x").read(),
                _ => tenure.lock("x"),
            };
            let (shortest, longest) = self.members[0].profile.ttl;
            let lock = lock.ttl(millis(shortest + dice.below(longest - shortest)));
            let polls = 1 + usize::try_from(dice.below(12)).expect("a few");
            let patience = millis(1 + dice.below(4_000));
            let got = match dice.below(4) {
                0 => lock.try_acquire().await.and_then(Attempt::into_guard).ok(),
                1 => poll_at_most(polls, lock.acquire())
                    .await
                    .and_then(Result::ok),
                _ => lock.wait(patience).acquire().await.ok(),
            };
            if let Some(guard) = got {
                let guard = self.got(client, guard);
                let held = dice.millis(1_500);
                tokio::select! {
                    biased;
                    _ = guard.lost() => {}
                    () = self.clock.sleep(held) => {}
                }
                if self.mistake.is_none() {
                    self.change(&guard, &mut dice).await;
                }
                let guard = self.gives_up(guard);
                match dice.below(5) {
                    0 => drop(guard),
                    1 => drop(poll_at_most(polls, guard.release()).await),
                    2 if !self.members[0].profile.tidy => {
                        drop(poll_at_most(polls, guard.leave_for(dice.millis(400))).await);
                    }
                    3 => drop(poll_at_most(polls, tenure.release_all()).await),
                    _ => drop(guard.release().await),
                }
            }
            self.clock.sleep(dice.millis(200)).await;
        }
        let served = tenure.lock("x").wait(secs(60)).acquire().await;
        match served {
            Ok(guard) => {
                let guard = self.got(client, guard);
                drop(self.gives_up(guard).release().await);
            }
            Err(error) => self.judged(|judge| judge.find(Wrong::Starved, error.to_string())),
        }
    }

    /// Changes its mind about how it holds the lock, too, and holds it for a while longer.
    async fn change(&self, guard: &tenure::Guard, dice: &mut Dice) {
        let (shortest, longest) = self.members[0].profile.ttl;
        let polls = 1 + usize::try_from(dice.below(12)).expect("a few");
        if dice.percent(25) {
            let ttl = millis(shortest + dice.below(longest - shortest));
            drop(poll_at_most(polls, guard.extend(ttl)).await);
        }
        if dice.percent(25) {
            drop(poll_at_most(polls, guard.downgrade()).await);
        }
        let held = dice.millis(1_000);
        tokio::select! {
            biased;
            _ = guard.lost() => {}
            () = self.clock.sleep(held) => {}
        }
    }

    /// Each member has votes of its own; only what holders believe is judged.
    fn got(&self, client: usize, guard: tenure::Guard) -> Arc<tenure::Guard> {
        let now = self.clock.now();
        self.judged(|judge| judge.add(client, guard, &LockState::default(), now))
    }

    fn gives_up(&self, guard: Arc<tenure::Guard>) -> tenure::Guard {
        let now = self.clock.now();
        self.judged(|judge| judge.remove(guard, &LockState::default(), now))
    }

    fn judged<T>(&self, work: impl FnOnce(&mut Judge) -> T) -> T {
        work(&mut self.judge.lock().unwrap())
    }
}

/// A member as one client sees it, with a mistake in between if there is one.
#[derive(Debug)]
struct Spoiled {
    link: SimulatedLink,
    world: Arc<World>,
    member: usize,
    mistake: Option<Mistake>,
}

impl Spoiled {
    async fn spoiled(&self, batch: &[Request]) -> Replies {
        if self.mistake.is_none() {
            return self.link.apply(batch).await;
        }
        let mut replies = Vec::new();
        for request in batch {
            let reply = match self.invented(&request.action) {
                Some(outcome) => Some(Ok(Reply {
                    now: self.world.time(),
                    outcome,
                })),
                None => self.link.apply(std::slice::from_ref(request)).await.pop(),
            };
            replies.push(reply.expect("one reply to one request"));
        }
        replies
    }

    /// What the mistake says instead of asking.
    fn invented(&self, action: &Action) -> Option<Outcome> {
        let yes_man = self.mistake == Some(Mistake::OneVoteTooMany) && self.member == 0;
        let now = self.world.time();
        match action {
            Action::Cancel(_) if self.mistake == Some(Mistake::NoRollBack) => {
                Some(Outcome::Cancelled(Removed::Nothing))
            }
            Action::Vote(vote) if yes_man => {
                let (Ballot::New { proposal: fence }
                | Ballot::Raise { to: fence }
                | Ballot::Held { fence }) = vote.ballot;
                let expiry = now.plus(vote.ttl.duration());
                Some(Outcome::Granted(Grant { fence, expiry }))
            }
            Action::Renew(renew) if yes_man => {
                let expiry = now.plus(renew.ttl.duration());
                Some(Outcome::Renewed { expiry })
            }
            _ => None,
        }
    }
}

impl Store for Spoiled {
    fn guarantees(&self) -> Guarantees {
        self.link.guarantees()
    }

    fn apply<'a>(&'a self, batch: &'a [Request]) -> BoxFuture<'a, Replies> {
        Box::pin(async {
            tokio::select! {
                biased;
                replies = self.spoiled(batch) => replies,
                () = self.world.pass(CALL_TIMEOUT) => unavailable(batch, "no answer"),
            }
        })
    }

    fn shard(&self, name: &LockName) -> Shard {
        self.link.shard(name)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Listing, Error>> {
        self.link.list(prefix)
    }

    fn listen<'a>(
        &'a self,
        inbox: &'a Inbox,
        listener: Weak<dyn Listener>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.link.listen(inbox, listener)
    }

    fn recovering<'a>(
        &'a self,
        name: Option<&'a LockName>,
    ) -> BoxFuture<'a, Result<Option<Recovering>, Error>> {
        self.link.recovering(name)
    }

    fn diagnose(&self) -> BoxFuture<'_, Result<Vec<Finding>, Error>> {
        self.link.diagnose()
    }
}
