//! Worker numbers: no two of the living have the same, and no id is made twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{Error, Ids, Tenure};

use super::{Course, Helper, Living, TTL, WAIT};
use crate::support::wait::real_time;

#[derive(Default)]
pub(super) struct Workers {
    living: Living<Ids>,
    made: Mutex<HashSet<u64>>,
}

/// As few as there are who want one, so that each is wanted again and again.
const NUMBERS: u32 = 2;

pub(super) async fn work(tenure: Tenure, course: Arc<Course>, workers: Arc<Workers>) {
    while !course.is_over() {
        if let Err(error) = make_ids(&tenure, &workers).await {
            course.sit_out(Helper::Worker, &error).await;
        } else {
            course.step(Helper::Worker);
        }
    }
}

async fn make_ids(tenure: &Tenure, workers: &Workers) -> Result<(), Error> {
    let pool = tenure.worker_number("trial/ids", NUMBERS).ttl(TTL);
    let ids = pool.wait(WAIT).acquire().await?.into_ids().await?;
    let ids = workers.living.join(ids, |older, newer| {
        let same = older.worker().number() == newer.worker().number();
        assert!(!same || newer.worker().fence() > older.worker().fence());
        let lives = |ids: &Ids| ids.worker().ensure().is_ok();
        same && lives(older) && lives(newer)
    });
    for _ in 0..20 {
        let id = ids.next().await?;
        let new = workers.made.lock().unwrap().insert(id);
        assert!(new, "the id {id} was made twice");
        real_time(Duration::from_millis(2)).await;
    }
    Ok(())
}
