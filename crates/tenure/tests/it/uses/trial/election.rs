//! Elections: never two who lead at once, and each term with a higher fence.

use std::sync::Arc;
use std::time::Duration;

use tenure::{Tenure, Term};

use super::{Course, Helper, Living, WAIT};
use crate::support::wait::real_time;

pub(super) type Terms = Living<Term>;

/// Shorter than those of the others, so that it is renewed during a term; as short as three voters allow.
const SHORT: Duration = Duration::from_secs(2);

pub(super) async fn stand(tenure: Tenure, course: Arc<Course>, terms: Arc<Terms>, turn: usize) {
    let election = tenure.election("trial/leader").ttl(SHORT).wait(WAIT);
    let mut count = turn;
    while !course.is_over() {
        let term = match election.campaign().await {
            Ok(term) => term,
            Err(error) => {
                course.sit_out(Helper::Election, &error).await;
                continue;
            }
        };
        let term = terms.join(term, |older, newer| {
            assert!(newer.fence() > older.fence());
            older.is_leader() && newer.is_leader()
        });
        course.step(Helper::Election);
        count += 1;
        // Most are short, some are renewed, and one in three is left without a word.
        let long = if count.is_multiple_of(4) { 1_200 } else { 30 };
        tokio::select! {
            _ = term.lost() => {}
            () = real_time(Duration::from_millis(long)) => {}
        }
        if count.is_multiple_of(3) {
            continue;
        }
        if let Some(term) = Arc::into_inner(term)
            && let Err(error) = term.resign().await
        {
            course.sit_out(Helper::Election, &error).await;
        }
    }
}
