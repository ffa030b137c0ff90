//! A storm: many clients, every fault at random, virtual time. Whatever happens, no two incompatible
//! guards are valid at the same time, and in the end nothing is left in the store.
//!
//! `TENURE_TEST_STORMS=500` for more of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tenure::test_util::{Fault, Rule};
use tenure::{Fence, Guard, Lock, Mode, Tenure};

use crate::client_world::{World, millis, secs};

/// A small generator of our own, so that a seed means the same for ever.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn fault(&mut self) -> Fault {
        match self.roll(6) {
            0 => Fault::Fail,
            1 => Fault::LoseReply,
            2 => Fault::Delay(millis(self.roll(2500))),
            3 => Fault::DelayReply(millis(self.roll(300))),
            4 => Fault::DelayReply(millis(self.roll(2500))),
            _ => Fault::Hang,
        }
    }

    fn lock(&mut self, tenure: &Tenure, crowd: Crowd) -> Lock {
        if crowd == Crowd::Alike {
            return tenure.lock("x").ttl(millis(400));
        }
        let lock = match self.roll(5) {
            0 | 1 => tenure.lock("x"),
            2 => tenure.rwlock("x").read(),
            3 => tenure.semaphore("s", 2),
            _ => tenure.semaphore("s", 2).permits(2),
        };
        let lock = lock.ttl(millis(200 + self.roll(1500)));
        match self.roll(5) {
            0 | 1 => lock.no_renew(),
            2 => lock.hold_at_most(millis(100 + self.roll(3000))),
            _ => lock,
        }
    }
}

/// Who is in the storm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crowd {
    /// Everything there is, held for long.
    Mixed,
    /// Only what can be handed on from task to task, held for a moment.
    Alike,
}

impl Crowd {
    fn lives_for(self) -> Duration {
        match self {
            Self::Mixed => secs(40),
            Self::Alike => secs(8),
        }
    }

    fn hold(self, dice: &mut Dice) -> Duration {
        millis(dice.roll(match self {
            Self::Mixed => 2500,
            Self::Alike => 6,
        }))
    }
}

/// Everybody who believes to hold something.
#[derive(Default)]
struct Believers {
    guards: RefCell<Vec<Rc<Guard>>>,
    grants: RefCell<usize>,
    /// The last grant that excludes all others.
    last: Cell<Fence>,
    /// How many of them were handed on from task to task.
    handed_on: Cell<usize>,
}

impl Believers {
    fn check(&self) {
        let guards = self.guards.borrow();
        for name in ["x", "s"] {
            let valid: Vec<_> = guards
                .iter()
                .filter(|guard| guard.name().as_str() == name && guard.is_valid())
                .collect();
            let mut held = Vec::new();
            for guard in &valid {
                let mode = guard.mode();
                assert!(mode.fits(held.iter().copied()), "two holders: {valid:?}");
                held.push(mode);
            }
        }
    }

    fn add(&self, guard: Guard) -> Rc<Guard> {
        *self.grants.borrow_mut() += 1;
        if guard.mode() == Mode::Exclusive && guard.is_valid() {
            let last = self.last.replace(guard.fence());
            assert!(guard.fence() > last, "{} after {last}", guard.fence());
            let handed_on = guard.fence().as_u64() < last.as_u64() + 2;
            self.handed_on
                .set(self.handed_on.get() + usize::from(handed_on));
        }
        let guard = Rc::new(guard);
        self.guards.borrow_mut().push(guard.clone());
        self.check();
        guard
    }

    fn remove(&self, guard: Rc<Guard>) -> Guard {
        self.check();
        let fence = guard.fence();
        self.guards
            .borrow_mut()
            .retain(|other| other.fence() != fence);
        Rc::into_inner(guard).expect("only the list and its holder had it")
    }
}

/// Takes and gives back, in every way there is, until `end`.
async fn live(
    world: &World,
    tenure: Tenure,
    believers: &Believers,
    (crowd, mut dice): (Crowd, Dice),
    end: Duration,
) {
    let started = world.now();
    while world.now().since(started) < end {
        let lock = dice.lock(&tenure, crowd);
        let acquired = match dice.roll(3) {
            0 => lock
                .try_acquire()
                .await
                .and_then(tenure::Attempt::into_guard),
            _ => lock.wait(millis(1 + dice.roll(6000))).acquire().await,
        };
        let Ok(guard) = acquired else {
            world.pass(millis(dice.roll(50))).await;
            continue;
        };
        let guard = believers.add(guard);
        world.pass(crowd.hold(&mut dice)).await;
        if dice.roll(4) == 0 && crowd == Crowd::Mixed {
            let _ = guard.extend(millis(200 + dice.roll(3000))).await;
        }
        if guard.mode() == Mode::Exclusive && dice.roll(3) == 0 && crowd == Crowd::Mixed {
            let _ = guard.downgrade().await;
            world.pass(millis(dice.roll(500))).await;
        }
        let guard = believers.remove(guard);
        match dice.roll(4) {
            0 => drop(guard),
            1 => tokio::select! {
                _ = guard.release() => {}
                () = world.pass(millis(dice.roll(20))) => {}
            },
            2 if crowd == Crowd::Mixed => drop(guard.leave_for(millis(dice.roll(400))).await),
            _ => drop(guard.release().await),
        }
        world.pass(millis(dice.roll(30))).await;
    }
}

async fn weather(world: &World, believers: &Believers, mut dice: Dice, end: Duration) {
    let started = world.now();
    while world.now().since(started) < end {
        for _ in 0..1 + dice.roll(6) {
            let words = ["acquire", "renew", "release", "cancel", "convert"];
            let index = usize::try_from(dice.roll(5)).expect("below five");
            let times = usize::try_from(1 + dice.roll(5)).expect("a few");
            world.script(Rule::on(words[index]).times(times).does(dice.fault()));
        }
        if dice.roll(3) == 0 {
            world
                .store
                .lose_pushes(usize::try_from(dice.roll(3)).expect("below three"));
        }
        for _ in 0..dice.roll(200) {
            world.pass(millis(5)).await;
            believers.check();
        }
        world.store.resume().await;
        world.pass(millis(dice.roll(300))).await;
    }
}

async fn storm(seed: u64, crowd: Crowd) -> Believers {
    let world = World::new().await;
    let believers = Believers::default();
    let end = crowd.lives_for();
    let dice = |number: u64| Dice((seed * 1000 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut lives = Vec::new();
    for client in 0..3 {
        let tenure = world.other_client().await;
        for task in 0..3 {
            let dice = dice(client * 10 + task);
            let tenure = tenure.clone();
            lives.push(live(&world, tenure, &believers, (crowd, dice), end));
        }
    }
    tokio::join!(
        futures_util::future::join_all(lives),
        weather(&world, &believers, dice(99), end)
    );
    world.store.resume().await;
    // The longest ttl is 3.2 s; a place is kept for 15 s, and a pushed grant for 7.5 s.
    world.pass(secs(23)).await;
    for name in ["x", "s"] {
        assert!(world.is_idle(name).await, "{:?}", world.peek(name).await);
    }
    believers
}

#[tokio::test(start_paused = true)]
async fn no_storm_gives_two_incompatible_holders_or_leaves_anything_behind() {
    for seed in 1..=storms() {
        let grants = storm(seed, Crowd::Mixed).await.grants.into_inner();
        // Usually about 50.
        assert!(grants > 10, "seed {seed}: only {grants} grants");
    }
}

#[tokio::test(start_paused = true)]
async fn no_storm_gives_two_holders_where_holds_are_handed_on_from_task_to_task() {
    let mut handed_on = 0;
    for seed in 1..=storms() {
        handed_on += storm(seed, Crowd::Alike).await.handed_on.get();
    }
    let expected = usize::try_from(storms()).expect("a few") * 5;
    assert!(handed_on > expected, "only {handed_on} were handed on");
}

fn storms() -> u64 {
    let storms = std::env::var("TENURE_TEST_STORMS").ok();
    storms.map_or(12, |number| number.parse().expect("a number"))
}
