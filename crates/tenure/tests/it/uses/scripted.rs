//! Lost replies, errors, delays, hangs and lost wake-ups on every store, while all that is built on locks is in use.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::SystemClock;
use tenure::stores::memory::MemoryStore;
use tenure::test_util::{Fault, Rule, ScriptedStore};
use tenure::{Clock, Store, Tenure};

use super::Place;
use super::trial::Trial;
use crate::support::wait::real_time;

const WORDS: [&str; 6] = [
    "acquire", "inspect", "release", "renew", "convert", "cancel",
];

const ROUNDS: usize = 12;

const FAULTS: [Fault; 4] = [
    Fault::LoseReply,
    Fault::Fail,
    Fault::Delay(Duration::from_millis(40)),
    Fault::DelayReply(Duration::from_millis(40)),
];

#[tokio::test]
async fn in_memory() {
    keeps_its_promises(&Place::memory("scripted")).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn in_sqlite() {
    keeps_its_promises(&Place::sqlite()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn on_one_server() {
    keeps_its_promises(&Place::redis()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn with_sentinels() {
    keeps_its_promises(&Place::sentinel()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn on_a_cluster() {
    keeps_its_promises(&Place::cluster()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn by_a_majority() {
    keeps_its_promises(&Place::redlock()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn by_all() {
    keeps_its_promises(&Place::all_of_two()).await;
}

async fn keeps_its_promises(place: &Place) {
    let clients = [Client::of(place).await, Client::of(place).await];
    let tenures = clients.each_ref().map(|client| client.tenure.clone());
    let mut trial = Trial::begin(&tenures);
    trial.goes_on(1, "at first").await;
    for client in &clients {
        client.store.forget_calls();
    }
    let asked = |word: &&str| clients.iter().map(|it| it.store.count(word)).sum::<usize>();
    let mut round = 0;
    // Long enough, and until all of it has gone wrong more than once.
    while round < ROUNDS || WORDS.iter().map(asked).any(|count| count < 4) {
        for (turn, client) in clients.iter().enumerate() {
            client.goes_wrong(round + turn);
        }
        real_time(Duration::from_millis(150)).await;
        for client in &clients {
            client.store.resume().await;
        }
        round += 1;
        assert!(
            round < 10 * ROUNDS,
            "all that happened: {:?}",
            WORDS.map(|word| asked(&word))
        );
    }
    trial.goes_on(2, "when nothing goes wrong any more").await;
    trial.end(&tenures[0]).await;
}

/// One process, as far as the store can tell, and what stands between the two.
struct Client {
    store: Arc<ScriptedStore>,
    tenure: Tenure,
}

impl Client {
    async fn of(place: &Place) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start().unwrap());
        let store = ScriptedStore::new(open(&place.url, &clock).await, clock.clone());
        let tenure = Tenure::new(store.clone(), clock).await.unwrap();
        Self { store, tenure }
    }

    /// In each round everything goes wrong, in another way and after another number of calls.
    fn goes_wrong(&self, round: usize) {
        let fault = |step| FAULTS[(round + step) % FAULTS.len()];
        for (number, word) in WORDS.iter().enumerate() {
            let rule = Rule::on(word).after((round + number) % 3).times(1);
            self.store.script(rule.does(fault(number)));
        }
        let rule = Rule::on("acquire").after(5).times(4);
        self.store.script(rule.does(fault(WORDS.len())));
        if round.is_multiple_of(4) {
            self.store
                .script(Rule::on_everything().after(10).does(Fault::Hang));
        }
        self.store.lose_pushes(3);
    }
}

/// The store alone, as [`tenure::connect`] would open it.
async fn open(url: &str, clock: &Arc<dyn Clock>) -> Arc<dyn Store> {
    let (scheme, rest) = url.split_once(':').unwrap();
    let clock = clock.clone();
    match scheme {
        "memory" => MemoryStore::shared(rest, clock),
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            use tenure::stores::sqlite::{Options, SqliteStore};
            let options = Options::parse(url).unwrap();
            Arc::new(SqliteStore::connect(options).await.unwrap())
        }
        #[cfg(feature = "redis")]
        "redis" | "redis+sentinel" => {
            let opening = tenure::stores::redis::RedisStore::connect(url, clock);
            Arc::new(opening.await.unwrap())
        }
        #[cfg(feature = "redis")]
        "redis+cluster" => {
            let opening = tenure::stores::redis::ClusterStore::connect(url, clock);
            Arc::new(opening.await.unwrap())
        }
        #[cfg(feature = "redis")]
        "redlock" | "redis+all" => {
            let opening = tenure::stores::quorum::QuorumStore::connect_redis(url, clock);
            Arc::new(opening.await.unwrap())
        }
        _ => panic!("which store is {scheme}?"),
    }
}
