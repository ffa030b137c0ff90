//! Random faults on the members of a quorum, in virtual time: whatever happens, no two are valid at the
//! same time, fences grow, and when the storm is over everybody gets in and nothing is left.

use std::sync::{Arc, Mutex};

use tenure::clock::Clock;
use tenure::test_util::{Fault, Rule};
use tenure::{Fence, Moment, Tenure};

use super::world::Quorum;
use crate::client_world::{millis, secs};

const SEEDS: u64 = 12;
const CLIENTS: usize = 4;

/// One hold, from when it was known to its holder until it was given up or lost.
#[derive(Clone, Debug)]
struct Interval {
    from: Moment,
    until: Moment,
    fence: Fence,
}

#[tokio::test(start_paused = true)]
async fn no_storm_makes_two_hold_or_a_fence_go_back() {
    let mut held = 0;
    for seed in 0..SEEDS {
        held += storm(seed).await;
    }
    assert!(held > 100, "only {held} holds: the storm is too strong");
}

async fn storm(seed: u64) -> usize {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let quorum = Arc::new(Quorum::of(if seed.is_multiple_of(3) { 5 } else { 3 }));
    let history = Arc::new(Mutex::new(Vec::new()));
    let over = quorum.clock.now().plus(secs(60));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let tenure = quorum.client().await;
        let (quorum, history) = (quorum.clone(), history.clone());
        let dice = Dice(dice.next() | 1);
        clients.push(tokio::spawn(async move {
            client(&quorum, &tenure, dice, over, &history).await;
            tenure
        }));
    }
    while quorum.clock.now() < over {
        let member = dice.below(quorum.members.len() as u64);
        let member = &quorum.members[usize::try_from(member).unwrap()];
        match dice.below(8) {
            0 => member.script(Rule::on_everything().times(5).does(Fault::Fail)),
            1 => member.script(Rule::on_everything().times(5).does(Fault::LoseReply)),
            2 => member.script(Rule::on_everything().does(Fault::Hang)),
            3 => member.script(
                Rule::on("vote")
                    .times(3)
                    .does(Fault::Delay(millis(dice.below(900)))),
            ),
            4 => {
                let delay = Fault::DelayReply(millis(dice.below(900)));
                member.script(Rule::on_everything().times(4).does(delay));
            }
            5 => member.script(
                Rule::on("cancel")
                    .times(3)
                    .does(Fault::Delay(millis(dice.below(3_000)))),
            ),
            _ => member.resume().await,
        }
        quorum.pass(millis(1 + dice.below(1_500))).await;
    }
    for member in &quorum.members {
        member.resume().await;
    }
    for client in clients {
        let tenure = client.await.unwrap();
        let guard = tenure.lock("x").wait(secs(120)).acquire().await;
        guard
            .expect("everybody gets in after the storm")
            .release()
            .await
            .unwrap();
    }
    quorum.pass(secs(30)).await;
    assert_eq!(quorum.votes("x").await, 0, "seed {seed}: something is left");
    check(seed, &mut history.lock().unwrap())
}

/// Takes the lock again and again, holds it for a while and notes for how long it was valid.
async fn client(
    quorum: &Quorum,
    tenure: &Tenure,
    mut dice: Dice,
    over: Moment,
    history: &Mutex<Vec<Interval>>,
) {
    while quorum.clock.now() < over {
        let lock = tenure.lock("x").ttl(secs(2)).wait(secs(10));
        // Some give up at any moment.
        let patience = millis(if dice.below(4) == 0 {
            dice.below(200)
        } else {
            10_000
        });
        let acquired = tokio::select! {
            biased;
            guard = lock.acquire() => guard.ok(),
            () = quorum.pass(patience) => None,
        };
        let Some(guard) = acquired else { continue };
        let from = quorum.clock.now();
        let fence = guard.fence();
        tokio::select! {
            biased;
            _ = guard.lost() => {}
            () = quorum.pass(millis(dice.below(3_000))) => {}
        }
        let until = quorum.clock.now();
        history
            .lock()
            .unwrap()
            .push(Interval { from, until, fence });
        if dice.below(3) == 0 {
            drop(guard);
        } else {
            let _ = guard.release().await;
        }
        quorum.pass(millis(dice.below(300))).await;
    }
}

fn check(seed: u64, history: &mut [Interval]) -> usize {
    history.sort_by_key(|interval| interval.from);
    for pair in history.windows(2) {
        assert!(
            pair[0].until <= pair[1].from,
            "seed {seed}: two held: {pair:?}"
        );
        assert!(
            pair[0].fence < pair[1].fence,
            "seed {seed}: fences: {pair:?}"
        );
    }
    history.len()
}

/// Random enough, and the same for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
