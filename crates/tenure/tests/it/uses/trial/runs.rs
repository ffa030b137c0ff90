//! Runs once per period: at most one is counted, and none begins after one was.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Error, OncePer, Tenure, Turn};

use super::{Course, Helper, TTL, WAIT};
use crate::support::wait::real_time;

/// What is known of each job, one after the other.
#[derive(Default)]
pub(super) struct Runs {
    jobs: Mutex<HashMap<usize, Job>>,
    /// Of the jobs before this one a server may have forgotten that they were run.
    forgotten: AtomicUsize,
}

#[derive(Clone, Copy, Default)]
struct Job {
    begun: usize,
    /// Whether somebody was told that it is counted.
    counted: bool,
    /// Of those who run it now.
    running: usize,
}

/// Longer than any trial.
const PERIOD: Duration = Duration::from_secs(3_600);

impl Runs {
    pub(super) fn may_be_forgotten(&self) {
        self.forgotten.store(usize::MAX, Ordering::SeqCst);
    }

    pub(super) fn are_kept(&self) {
        let jobs = self.jobs.lock().unwrap();
        let latest = jobs.keys().max().copied().unwrap_or(0);
        self.forgotten.store(latest + 1, Ordering::SeqCst);
    }

    fn may_be_run_again(&self, job: usize) -> bool {
        job < self.forgotten.load(Ordering::SeqCst)
    }

    /// Every job has at most one counted run, as the store knows it.
    pub(super) async fn are_in_order(&self, tenure: &Tenure) {
        let jobs = self.jobs.lock().unwrap().clone();
        for (job, about) in jobs.iter().filter(|(job, _)| !counts_starts(**job)) {
            let record = once(tenure, *job).record_name();
            let (_, record) = tenure.inspect(&record).await.unwrap();
            let count = record.holders.len();
            let forgotten = self.may_be_run_again(*job);
            let least = usize::from(about.counted && !forgotten);
            assert!((least..=1).contains(&count), "job {job}: {record:?}");
        }
    }

    fn change(&self, job: usize, change: impl FnOnce(&mut Job)) -> Job {
        let mut jobs = self.jobs.lock().unwrap();
        let about = jobs.entry(job).or_default();
        let before = *about;
        change(about);
        before
    }

    /// Whether it is done with.
    async fn attempt(&self, tenure: &Tenure, job: usize) -> Result<(), Error> {
        let run = match once(tenure, job).begin().await? {
            Turn::Counted(_) => return Ok(()),
            Turn::Yours(run) => run,
        };
        let before = self.change(job, |job| {
            job.begun += 1;
            job.running += 1;
        });
        if !self.may_be_run_again(job) {
            // Whoever was told had the lock until then, so this one has looked later.
            assert!(!before.counted, "job {job} begins after it was counted");
            let starts = counts_starts(job) && before.begun > 0;
            assert!(!starts, "job {job} has been started before");
        }
        assert_eq!(before.running, 0, "job {job} is run by two at once");
        real_time(Duration::from_millis(20)).await;
        self.change(job, |job| job.running -= 1);
        if before.begun == 0 && job.is_multiple_of(3) {
            return run.failed("at first").await;
        }
        run.succeeded().await?;
        self.change(job, |job| job.counted = true);
        Ok(())
    }
}

pub(super) async fn run(tenure: Tenure, course: Arc<Course>, runs: Arc<Runs>) {
    let mut job = 0;
    while !course.is_over() {
        match runs.attempt(&tenure, job).await {
            Ok(()) => {
                course.step(Helper::OncePer);
                job += 1;
            }
            Err(error) => course.sit_out(Helper::OncePer, &error).await,
        }
    }
}

fn once(tenure: &Tenure, job: usize) -> OncePer {
    let once = tenure.once_per(format!("trial/job/{job}"), PERIOD);
    let once = once.sliding().ttl(TTL).wait(WAIT);
    if counts_starts(job) {
        once.count_starts()
    } else {
        once
    }
}

fn counts_starts(job: usize) -> bool {
    job % 2 == 1
}
