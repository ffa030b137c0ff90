//! The scripts of a server that recovers, and is open again, against `decide_in`: random requests, the same answers.

use std::time::Duration;

use tenure::core::{
    Acquire, Action, Cancel, Convert, Everyone, Fence, ForceRelease, Inbox, LockState, Outcome,
    Phase, Release, Renew, Terms, Timestamp, Waiting, decide_in,
};
use tenure::{Mode, OwnerId, Party, Ttl};

use crate::redis_store::store;
use crate::support::peer::Peer;
use crate::support::redis_server::RedisServer;

const TRACES: u64 = 200;
const STEPS: u64 = 18;
const RECORD: &str = "~tenure:{tenure:}:life";

#[tokio::test]
async fn a_server_that_recovers_answers_as_the_core_decides() {
    let server = RedisServer::start();
    let peer = Peer::new(store(&server.url()).await).await;
    peer.inspect("warm up").await;
    peer.cancel("warm up", owner(0)).await;
    for seed in 0..TRACES {
        let mut dice = Dice(seed);
        let mut state = LockState::default();
        let mut fences = vec![7];
        let since = Timestamp::from_micros(1);
        let mut phase = Phase::Open { since };
        recover_until(&server, since);
        let turn = 1 + dice.below(STEPS - 1);
        let opens = turn + 1 + dice.below(STEPS / 2);
        for step in 0..STEPS {
            if step == turn {
                // Longer than a trace takes, and no longer than a lease.
                let until = time(&server).plus(Ttl::DEFAULT.duration());
                recover_until(&server, until);
                phase = Phase::Recovering { until };
            }
            if step == opens {
                let since = time(&server);
                recover_until(&server, since);
                phase = Phase::Open { since };
            }
            let action = dice.action(&fences, &peer.inbox);
            let name = format!("lock {seed}");
            let reply = peer.try_ask(&name, action.clone()).await.unwrap();
            let before = state.clone();
            let decision = decide_in(phase, state, &action, reply.now, &Everyone);
            let told = format!("seed {seed}, {phase:?}, {action:?}\nof {before:?}");
            assert_eq!(reply.outcome, decision.outcome, "{told}");
            state = decision.state;
            fences.extend(state.holders.iter().map(|holder| holder.fence.as_u64()));
            let look = decide_in(phase, state.clone(), &Action::Inspect, reply.now, &Everyone);
            let Outcome::State(expected) = look.outcome else {
                panic!("inspect shows the state");
            };
            assert_eq!(peer.inspect(&name).await, expected, "{told}");
        }
    }
}

/// What the server's clock shows.
fn time(server: &RedisServer) -> Timestamp {
    let time = server.command(&["TIME"]);
    let mut parts = time.lines().map(|part| part.trim().parse::<u64>().unwrap());
    let (seconds, micros) = (parts.next().unwrap(), parts.next().unwrap());
    Timestamp::from_micros(seconds * 1_000_000 + micros)
}

/// Lets the server recover until then, without another life.
fn recover_until(server: &RedisServer, until: Timestamp) {
    let record = server.command(&["GET", RECORD]);
    let mut words: Vec<&str> = record.split(' ').collect();
    let until = until.as_micros().to_string();
    words[2] = &until;
    assert_eq!(server.command(&["SET", RECORD, &words.join(" ")]), "OK");
}

fn owner(number: u64) -> OwnerId {
    OwnerId::from_bytes([u8::try_from(number).unwrap(); 16])
}

/// A small generator (splitmix64): the same seed gives the same trace.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % limit
    }

    fn mode(&mut self) -> Mode {
        match self.below(4) {
            0 | 1 => Mode::Exclusive,
            2 => Mode::Shared,
            _ => Mode::permits(1, 2).unwrap(),
        }
    }

    /// One that was given, or nearly.
    fn fence(&mut self, fences: &[u64]) -> Fence {
        let index = self.below(fences.len() as u64);
        let fence = fences[usize::try_from(index).unwrap()];
        Fence::from_u64(match self.below(6) {
            0 => fence + 1,
            1 => fence + 40,
            _ => fence,
        })
    }

    fn action(&mut self, fences: &[u64], inbox: &Inbox) -> Action {
        let (owner, fence) = (owner(self.below(4)), self.fence(fences));
        let party = Party::new("somebody@here", "a test", "here", 7);
        let ttl = Ttl::DEFAULT;
        match self.below(12) {
            0..=3 => Action::Acquire(Acquire {
                owner,
                mode: self.mode(),
                ttl,
                party,
                waiting: match self.below(2) {
                    0 => Waiting::No,
                    _ => Waiting::Queue {
                        inbox: inbox.clone(),
                        alive_for: Duration::from_secs(600),
                    },
                },
                anchor: None,
                not_after: None,
            }),
            4..=7 => Action::Renew(Renew {
                owner,
                fence,
                ttl,
                detach: self.below(8) == 0,
                terms: (self.below(6) > 0).then(|| Terms {
                    mode: self.mode(),
                    party,
                }),
            }),
            8 => Action::Convert(Convert { owner, fence }),
            9 => Action::Release(Release { owner, fence }),
            10 => Action::Cancel(Cancel { owner }),
            _ => Action::ForceRelease(ForceRelease {
                owner,
                fence,
                by: party,
                reason: "because".to_owned(),
            }),
        }
    }
}
