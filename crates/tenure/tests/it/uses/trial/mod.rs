//! [`Trial`]: all that is built on locks, used by several clients at the same time, for as long as something goes
//! wrong. What each of them promises is checked all the time; see its file.

mod election;
mod loads;
mod numbers;
mod runs;
mod workers;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tenure::core::Retry;
use tenure::{Error, ErrorKind, Tenure};
use tokio::task::JoinSet;

use crate::support::wait::{eventually_async, real_time};

/// All leases are this short, and a store that forgot waits no longer.
pub(super) const TTL: Duration = Duration::from_secs(3);

/// How long any one attempt waits, so that it is seen what goes wrong.
const WAIT: Duration = Duration::from_secs(4);

/// What is built on locks.
#[derive(Clone, Copy, Debug)]
enum Helper {
    Coalesce,
    Election,
    OncePer,
    Sequence,
    Worker,
}

const ALL: [Helper; 5] = [
    Helper::Coalesce,
    Helper::Election,
    Helper::OncePer,
    Helper::Sequence,
    Helper::Worker,
];

/// Everything in use, until it is told to end.
pub(super) struct Trial {
    course: Arc<Course>,
    runs: Arc<runs::Runs>,
    tasks: JoinSet<()>,
}

/// How far all have come, over all clients.
#[derive(Default)]
struct Course {
    over: AtomicBool,
    steps: [AtomicUsize; ALL.len()],
}

impl Trial {
    /// Each of these clients uses everything.
    pub(super) fn begin(clients: &[Tenure]) -> Self {
        let course = Arc::<Course>::default();
        let runs = Arc::<runs::Runs>::default();
        let loads = Arc::<loads::Loads>::default();
        let numbers = Arc::<numbers::Numbers>::default();
        let terms = Arc::<election::Terms>::default();
        let workers = Arc::<workers::Workers>::default();
        let mut tasks = JoinSet::new();
        for (turn, tenure) in clients.iter().enumerate() {
            let (tenure, course) = (|| tenure.clone(), || course.clone());
            tasks.spawn(election::stand(tenure(), course(), terms.clone(), turn));
            tasks.spawn(workers::work(tenure(), course(), workers.clone()));
            tasks.spawn(runs::run(tenure(), course(), runs.clone()));
            for _ in 0..2 {
                tasks.spawn(loads::get(tenure(), course(), loads.clone()));
                tasks.spawn(numbers::take(tenure(), course(), numbers.clone()));
            }
        }
        Self {
            course,
            runs,
            tasks,
        }
    }

    /// Waits until each helper has come so many steps further.
    pub(super) async fn goes_on(&mut self, steps: usize, when: &str) {
        let goals = ALL.map(|helper| self.course.steps(helper) + steps);
        for (helper, goal) in ALL.into_iter().zip(goals) {
            let what = format!("{helper:?} makes progress {when}");
            eventually_async(&what, async || {
                self.nobody_has_failed();
                (self.course.steps(helper) >= goal).then_some(())
            })
            .await;
        }
    }

    /// From now on records may be lost: a server that has not got them will take over.
    pub(super) fn may_forget(&self) {
        self.runs.may_be_forgotten();
    }

    /// From now on none may be lost that is not written yet.
    pub(super) fn forgets_no_more(&self) {
        self.runs.are_kept();
    }

    /// Lets all come to an end.
    pub(super) async fn end(mut self, one: &Tenure) {
        self.course.over.store(true, Ordering::SeqCst);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.runs.are_in_order(one).await;
    }

    fn nobody_has_failed(&mut self) {
        // None ends before it is told to.
        while let Some(ended) = self.tasks.try_join_next() {
            ended.unwrap();
        }
    }
}

impl Course {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn step(&self, helper: Helper) {
        self.steps[helper as usize].fetch_add(1, Ordering::SeqCst);
    }

    fn steps(&self, helper: Helper) -> usize {
        self.steps[helper as usize].load(Ordering::SeqCst)
    }

    /// Whatever passes; any other error is a failure.
    async fn sit_out(&self, helper: Helper, error: &Error) {
        let passes = error.kind() == ErrorKind::Lost || error.retry() == Retry::Later;
        assert!(passes, "{helper:?}: {error}");
        real_time(Duration::from_millis(5)).await;
    }
}

/// Those who have, or had, what only one may have at a time.
struct Living<T>(Mutex<Vec<Weak<T>>>);

impl<T> Default for Living<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Living<T> {
    /// One more. `clash` says whether it and an older one have the same now: it is asked about the older one first, so whatever
    /// it finds true of both was true at the same time.
    fn join(&self, one: T, clash: impl Fn(&T, &T) -> bool) -> Arc<T> {
        let one = Arc::new(one);
        let mut living = self.0.lock().unwrap();
        living.retain(|older| older.strong_count() > 0);
        for older in living.iter().filter_map(Weak::upgrade) {
            assert!(!clash(&older, &one), "two at once");
        }
        living.push(Arc::downgrade(&one));
        one
    }
}
