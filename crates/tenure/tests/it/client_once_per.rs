//! Once per period: who may run, what is counted, and what is left of runs that fail, hang or die.

use std::time::Duration;

use tenure::test_util::{Fault, Rule};
use tenure::{CountedRun, Ending, ErrorKind, Once, OnceGuard, OncePer, Turn};

use crate::client_world::{World, others_act, secs};

const DAY: Duration = secs(24 * 60 * 60);
const RECORD: &str = "~once:nightly";

fn yours(turn: Turn) -> OnceGuard {
    match turn {
        Turn::Yours(guard) => guard,
        Turn::Counted(run) => panic!("counted: {run:?}"),
    }
}

fn counted(turn: Turn) -> CountedRun {
    match turn {
        Turn::Counted(run) => run,
        Turn::Yours(_) => panic!("it was run in this period already"),
    }
}

async fn succeed(once: &OncePer) {
    let run = once.run(async |_| Ok::<_, String>(())).await.unwrap();
    let Once::Ran { result, recorded } = run else {
        panic!("not run: {run:?}");
    };
    result.unwrap();
    recorded.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_success_counts_until_the_period_ends_and_says_who_when_and_how() {
    let world = World::new().await;
    let other = world.other_client().await;
    let run = yours(
        world
            .tenure
            .once_per("nightly", DAY)
            .who("ann")
            .begin()
            .await
            .unwrap(),
    );
    let started = run.started();
    world.pass(secs(90)).await;
    run.succeeded().await.unwrap();
    world.pass(secs(10)).await;
    let once = other.once_per("nightly", DAY);
    let before = counted(once.begin().await.unwrap());
    assert_eq!(before.by.who(), "ann");
    assert_eq!(before.ending, Ending::Succeeded);
    assert_eq!(before.started, started);
    assert_eq!(before.took(), Some(secs(90)));
    assert_eq!(before.started_ago(), secs(100));
    assert!(world.is_idle("nightly").await, "the lock is free");
    // The clock of this world began 1000 s after midnight.
    let left = before.counts_for();
    assert!(
        left > DAY - secs(1101) && left < DAY - secs(1099),
        "{left:?}"
    );
    world.pass(left).await;
    succeed(&once).await;
}

#[tokio::test(start_paused = true)]
async fn a_sliding_period_begins_with_the_run() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", secs(3600)).sliding();
    let run = yours(once.begin().await.unwrap());
    world.pass(secs(600)).await;
    run.succeeded().await.unwrap();
    let left = counted(once.begin().await.unwrap()).counts_for();
    assert!(left > secs(2999) && left <= secs(3001), "{left:?}");
    world.pass(left).await;
    succeed(&once).await;
}

#[tokio::test(start_paused = true)]
async fn an_offset_moves_the_boundary() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY).offset(secs(1200));
    succeed(&once).await;
    let left = counted(once.begin().await.unwrap()).counts_for();
    assert!(left > secs(190) && left < secs(210), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_sat_out_as_by_a_lock() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY).wait(secs(60));
    world.script(Rule::on_everything().times(3).does(Fault::Fail));
    succeed(&once).await;
    world.script(Rule::on("inspect").of(RECORD).times(1).does(Fault::Fail));
    counted(once.begin().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_counted_and_the_next_who_waits_runs_it() {
    let world = World::new().await;
    let other = world.other_client().await;
    let run = yours(world.tenure.once_per("nightly", DAY).begin().await.unwrap());
    let next = tokio::spawn(async move { other.once_per("nightly", DAY).begin().await });
    others_act().await;
    assert!(!next.is_finished(), "never two at once");
    run.failed("disk full").await.unwrap();
    yours(next.await.unwrap().unwrap())
        .succeeded()
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_many_who_come_at_once_one_runs_and_the_others_are_told() {
    let world = World::new().await;
    let mut tasks = Vec::new();
    for _ in 0..30 {
        let (client, clock) = (world.other_client().await, world.clock.clone());
        tasks.push(tokio::spawn(async move {
            let work = async |_: &_| {
                tenure::Clock::sleep(&*clock, secs(5)).await;
                Ok::<_, String>(())
            };
            client.once_per("nightly", DAY).run(work).await.unwrap()
        }));
    }
    let mut ran = 0;
    for task in tasks {
        ran += usize::from(matches!(task.await.unwrap(), Once::Ran { .. }));
    }
    assert_eq!(ran, 1);
}

#[tokio::test(start_paused = true)]
async fn a_counted_start_keeps_others_out_at_once_and_then_says_how_it_ended() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY).count_starts();
    let run = yours(once.begin().await.unwrap());
    world.pass(secs(60)).await;
    let other = world.other_client().await.once_per("nightly", DAY);
    let running = counted(other.begin().await.unwrap());
    assert_eq!((running.ending, running.ended), (Ending::Unknown, None));
    let until = running.until;
    run.failed("exit code 3").await.unwrap();
    let ended = counted(other.begin().await.unwrap());
    assert_eq!(ended.ending, Ending::Failed("exit code 3".to_owned()));
    assert_eq!(ended.took(), Some(secs(60)));
    assert_eq!(
        ended.until.as_micros().abs_diff(until.as_micros()) / 1000,
        0
    );
    let (_, record) = world.peek(RECORD).await;
    assert_eq!(record.holders.len(), 1, "the start gave way to the end");
}

#[tokio::test(start_paused = true)]
async fn a_counted_start_whose_runner_died_stays_counted() {
    let world = World::new().await;
    let dying = world.other_client().await;
    let once = dying.once_per("nightly", DAY).count_starts();
    drop(yours(once.begin().await.unwrap()));
    dying.settle().await;
    assert!(world.is_idle("nightly").await);
    let run = counted(world.tenure.once_per("nightly", DAY).begin().await.unwrap());
    assert_eq!(run.ending, Ending::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_died_before_its_success_was_recorded_is_run_again() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY);
    drop(yours(once.begin().await.unwrap()));
    world.tenure.settle().await;
    succeed(&once).await;
}

#[tokio::test(start_paused = true)]
async fn a_success_that_cannot_be_recorded_says_so() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY).ttl(secs(5));
    world.script(Rule::on("acquire").of(RECORD).does(Fault::Fail));
    let Once::Ran { result, recorded } = once.run(async |_| Ok::<_, String>(())).await.unwrap()
    else {
        panic!("nobody ran it before");
    };
    result.unwrap();
    assert_eq!(recorded.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_the_record_does_not_count_it_twice_or_not_at_all() {
    for word in ["acquire", "renew", "convert", "release"] {
        for starts in [false, true] {
            let world = World::new().await;
            let once = world.tenure.once_per("nightly", DAY);
            let once = if starts { once.count_starts() } else { once };
            let rule = Rule::on(word).of(RECORD).times(1);
            world.script(rule.does(Fault::LoseReply));
            if let Turn::Yours(run) = once.begin().await.unwrap() {
                let _ = run.succeeded().await;
            }
            counted(once.begin().await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_outlasts_its_period_keeps_the_next_waiting_and_counts_for_its_own() {
    for starts in [false, true] {
        let world = World::new().await;
        let once = world.tenure.once_per("nightly", secs(3600));
        let once = if starts { once.count_starts() } else { once };
        let run = yours(once.begin().await.unwrap());
        world.pass(secs(4000)).await;
        let other = world.other_client().await;
        let next = tokio::spawn(async move { other.once_per("nightly", secs(3600)).begin().await });
        others_act().await;
        assert!(!next.is_finished(), "never two at once");
        run.succeeded().await.unwrap();
        yours(next.await.unwrap().unwrap())
            .succeeded()
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_was_paused_past_its_lease_neither_runs_nor_counts() {
    let world = World::new().await;
    let late = world.tenure.once_per("nightly", DAY);
    let run = yours(late.begin().await.unwrap());
    world.clock.jump(secs(31));
    let other = world.other_client().await;
    succeed(&other.once_per("nightly", DAY).who("second")).await;
    assert_eq!(run.succeeded().await.unwrap_err().kind(), ErrorKind::Lost);
    let before = counted(late.begin().await.unwrap());
    assert_eq!(before.by.who(), "second");
}

#[tokio::test(start_paused = true)]
async fn a_start_cannot_be_counted_twice_even_by_one_who_lost_the_lock_without_knowing() {
    let world = World::new().await;
    let late = world.tenure.once_per("nightly", DAY).count_starts();
    let guard = world.tenure.lock("nightly").acquire().await.unwrap();
    // It has looked, and found nothing; while it hangs, its lease ends and somebody else runs it.
    world.script(
        Rule::on("acquire")
            .of(RECORD)
            .times(1)
            .does(Fault::Delay(secs(1))),
    );
    world.script(Rule::on("renew").of("nightly").does(Fault::Fail));
    let beginning = late.begin_under(guard);
    let rival = async {
        let other = world.other_client().await;
        let claim = other
            .lock(RECORD)
            .reserved()
            .who("rival")
            .acquire()
            .await
            .unwrap();
        claim.leave_for(DAY).await.unwrap();
    };
    let (turn, ()) = futures(beginning, rival).await;
    assert_eq!(counted(turn.unwrap()).by.who(), "rival");
}

#[tokio::test(start_paused = true)]
async fn force_release_of_the_record_lets_it_run_again() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY);
    succeed(&once).await;
    let run = counted(once.begin().await.unwrap());
    let record = once.record_name();
    world
        .tenure
        .force_release(&record, run.lease.unwrap(), "again, please")
        .await
        .unwrap();
    succeed(&once).await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_another_lock_and_a_senseless_period_are_refused() {
    let world = World::new().await;
    let once = world.tenure.once_per("nightly", DAY);
    let guard = world.tenure.lock("other").acquire().await.unwrap();
    let error = once.begin_under(guard).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let guard = world
        .tenure
        .rwlock("nightly")
        .read()
        .acquire()
        .await
        .unwrap();
    let error = once.begin_under(guard).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    for period in [Duration::ZERO, DAY * 400] {
        let error = world
            .tenure
            .once_per("x", period)
            .begin()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

async fn futures<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    tokio::join!(one, other)
}
