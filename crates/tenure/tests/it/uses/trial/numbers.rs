//! Sequences: no number twice, and each higher than all that anybody had before.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::Tenure;

use super::{Course, Helper, WAIT};
use crate::support::wait::real_time;

#[derive(Default)]
pub(super) struct Numbers {
    given: Mutex<HashSet<u64>>,
}

impl Numbers {
    fn highest(&self) -> u64 {
        let given = self.given.lock().unwrap();
        given.iter().copied().max().unwrap_or(0)
    }
}

pub(super) async fn take(tenure: Tenure, course: Arc<Course>, numbers: Arc<Numbers>) {
    let sequence = tenure.sequence("trial/orders").wait(WAIT);
    while !course.is_over() {
        let before = numbers.highest();
        match sequence.next().await {
            Ok(number) => {
                assert!(number > before, "{number} was given after {before}");
                let new = numbers.given.lock().unwrap().insert(number);
                assert!(new, "{number} was given twice");
                course.step(Helper::Sequence);
            }
            Err(error) => course.sit_out(Helper::Sequence, &error).await,
        }
        real_time(Duration::from_millis(10)).await;
    }
}
