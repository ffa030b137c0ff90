//! One simulation, from its seed to its verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tenure::clock::Clock;
use tenure::test_util::seed_chance;
use tenure::{Moment, Tenure};
use tokio::task::JoinHandle;

use super::dice::Dice;
use super::flaws::Flaw;
use super::judge::{Violation, Wrong};
use super::network::SimulatedLink;
use super::person::Person;
use super::profile::{Mishap, Planned, Profile};
use super::world::{Way, World};
use crate::client_world::secs;

/// What a simulation came to.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) found: Option<Violation>,
    pub(crate) grants: usize,
    pub(crate) handed_on: usize,
    /// What happened, line by line, if it was to be told.
    pub(crate) story: Vec<String>,
    /// When it ended, to the nanosecond: two runs of one seed agree on it.
    pub(crate) ended: Moment,
}

/// Runs one seed. The same seed does the same each time.
pub(crate) fn run(seed: u64, profile: Profile, flaw: Option<Flaw>, tells: bool) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    seed_chance(Some(seed));
    let verdict = runtime.block_on(simulate(seed, profile, flaw, tells));
    drop(runtime);
    seed_chance(None);
    verdict
}

async fn simulate(seed: u64, profile: Profile, flaw: Option<Flaw>, tells: bool) -> Verdict {
    let world = World::new(seed, profile, flaw, tells);
    let mut town = Town::build(seed, &world).await;
    let plan = profile.plan(seed);
    world.note(|| format!("the plan: {plan:?}"));
    world.set_calm(false);
    let storm_ends = world.clock.now().plus(profile.storm);
    for planned in plan {
        let at = storm_ends.minus(profile.storm).plus(planned.at);
        world.clock.sleep_until(at).await;
        town.happens(planned);
    }
    world.clock.sleep_until(storm_ends).await;
    // What still lasts ends before the storm does: see `Profile::plan`.
    world.set_calm(true);
    town.over.store(true, Ordering::SeqCst);
    world.note(|| "the storm is over".to_owned());
    town.everybody_goes_home().await;
    let found = world.found();
    let (grants, handed_on) = world.with_judge(|judge| (judge.grants, judge.handed_on));
    Verdict {
        found,
        grants,
        handed_on,
        story: world.story(),
        ended: world.clock.now(),
    }
}

/// All clients and their tasks.
struct Town {
    world: Arc<World>,
    clients: Vec<Option<Inhabited>>,
    over: Arc<AtomicBool>,
}

struct Inhabited {
    tenure: Tenure,
    people: Vec<JoinHandle<()>>,
}

impl Town {
    async fn build(seed: u64, world: &Arc<World>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for client in 0..world.profile.clients {
            let link = Arc::new(SimulatedLink::new(world, client));
            let store = Flaw::around(world.flaw, world, link);
            let tenure = Tenure::new(store, Arc::new(world.clock.clone())).await;
            let tenure = tenure.expect("nothing is wrong yet");
            if world.profile.tidy {
                // From its first answer on, a client can say how late is too late.
                tenure.inspect("x").await.expect("nothing is wrong yet");
            }
            let people = (0..world.profile.tasks).map(|task| {
                let person = Person {
                    world: world.clone(),
                    client,
                    tenure: tenure.clone(),
                    dice: Dice::new(seed, 10 + (client * 10 + task) as u64),
                    over: over.clone(),
                };
                tokio::spawn(person.live())
            });
            let people = people.collect();
            clients.push(Some(Inhabited { tenure, people }));
        }
        let world = world.clone();
        Self {
            world,
            clients,
            over,
        }
    }

    fn happens(&mut self, planned: Planned) {
        let Planned {
            what, whom, lasts, ..
        } = planned;
        let world = self.world.clone();
        world.note(|| format!("{what:?} of {whom} for {lasts:?}"));
        let later = |undo: Box<dyn FnOnce(&World) + Send>| {
            let world = world.clone();
            tokio::spawn(async move {
                world.pass(lasts).await;
                undo(&world);
            });
        };
        match what {
            Mishap::Pause => {
                world.set_paused(whom, true);
                later(Box::new(move |world| world.set_paused(whom, false)));
            }
            Mishap::Cut | Mishap::Silence => {
                let way = if what == Mishap::Cut {
                    Way::Held
                } else {
                    Way::Lossy
                };
                world.set_cut(whom, Some(way));
                later(Box::new(move |world| world.set_cut(whom, None)));
            }
            Mishap::Stop => {
                world.set_stopped(true);
                later(Box::new(|world| world.set_stopped(false)));
            }
            Mishap::Restart => world.restart(true),
            Mishap::Forget => world.restart(false),
            Mishap::SetBack => world.set_back(lasts),
            Mishap::Crash if whom > 0 => self.kill(whom),
            Mishap::CrashOfAWaiter if whom > 0 && !world.holds(whom) => self.kill(whom),
            Mishap::Crash | Mishap::CrashOfAWaiter => {}
        }
    }

    /// Kill −9: nothing that its tasks do while they are dropped reaches anybody.
    fn kill(&mut self, client: usize) {
        let Some(inhabited) = self.clients[client].take() else {
            return;
        };
        self.world.kill(client);
        for person in &inhabited.people {
            person.abort();
        }
    }

    /// Everybody gets in once more, gives everything back, and nothing is left.
    async fn everybody_goes_home(self) {
        let world = self.world;
        let (mut people, mut tenures) = (Vec::new(), Vec::new());
        for inhabited in self.clients.into_iter().flatten() {
            people.extend(inhabited.people);
            tenures.push(inhabited.tenure);
        }
        // Whoever waited without a limit first, and then everybody once more.
        let all = join_all(people);
        let done = tokio::select! {
            biased;
            done = all => Some(done),
            () = world.pass(world.profile.served_within * 3) => None,
        };
        match done {
            Some(done) => done.into_iter().for_each(|it| it.expect("nobody panics")),
            None => world.with_judge(|judge| {
                judge.find(Wrong::Starved, "somebody waits for ever".to_owned());
            }),
        }
        if world.found().is_some() {
            return;
        }
        join_all(tenures.iter().map(Tenure::settle)).await;
        if world.profile.tidy {
            // What travels with others, or was asked when the store could not say how late is too
            // late, is undone a moment later.
            world.pass(secs(3)).await;
            nothing_is_left(&world);
        }
        drop(tenures);
        // A place is kept for 15 s and a pushed grant for half of that; and the server's clock may have
        // been set back.
        world.pass(world.profile.longest_ttl() + secs(34)).await;
        nothing_is_left(&world);
    }
}

fn nothing_is_left(world: &World) {
    let left = world.left();
    if !left.is_empty() {
        world.note(|| format!("left: {left:?}"));
        world.with_judge(|judge| judge.find(Wrong::Leak, format!("{left:?}")));
    }
}
