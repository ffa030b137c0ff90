//! A primary that comes back: another had its place, it never became a replica, and nothing on the server itself
//! shows that anything has happened. Only the sentinels know, by the epoch in which they name it.

use std::time::Duration;

use tenure::{Assurance, Attempt};

use super::*;

/// Longer than two failovers take, also on a busy machine.
const TTL: Duration = Duration::from_secs(15);

/// Three sentinels that name this server, in these epochs.
pub(super) async fn fakes(
    server: &RedisServer,
    epochs: [Option<u64>; 3],
) -> (Vec<FakeSentinel>, String) {
    let mut fakes = Vec::new();
    for (id, epoch) in ["one", "two", "three"].into_iter().zip(epochs) {
        let says = Says {
            id: id.to_owned(),
            epoch,
            ..Says::naming(server)
        };
        fakes.push(FakeSentinel::start(says).await);
    }
    let hosts: Vec<_> = fakes.iter().map(FakeSentinel::address).collect();
    let url = format!("redis+sentinel://{}/{SERVICE}", hosts.join(","));
    (fakes, url)
}

/// `tenure lab chaos --start sentinel --seed 305` found this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_was_replaced_and_took_its_place_back_before_it_was_demoted_waits() {
    let watched = Watched::start();
    let options = format!(
        "?recovery=strict&call_timeout=1s&max_ttl={}s",
        TTL.as_secs()
    );
    let url = watched.url_with("", &options);
    let open = async |what| {
        eventually_async(what, async || {
            tenure::initialize(&url, Assurance::NothingIsHeld)
                .await
                .ok()
        })
        .await
    };
    open("the first primary is open").await;
    let life = || watched.servers[0].command(&["GET", "~tenure:{tenure:}:life"]);
    let first_life = life();
    watched.servers[0].stop();
    watched.named(1);
    open("the second one is open").await;
    let holder = tenure::connect(&url).await.expect("served");
    let guard = holder.lock("lock").ttl(TTL).acquire().await.expect("free");
    // It wakes up as it was. Before anybody tells it to follow the other one, that one is gone.
    watched.servers[0].resume();
    assert_eq!(life(), first_life);
    watched.servers[1].stop();
    watched.named(0);

    let newcomer = tenure::connect(&url).await.expect("served");
    let owner = guard.lease().owner.to_string();
    eventually_async("the holder has taken it to the first one", async || {
        let taking = newcomer.lock("lock").ttl(TTL).try_acquire().await;
        if matches!(taking, Ok(Attempt::Acquired(_))) {
            guard.ensure().expect_err("two hold the same lock");
            return Some(());
        }
        let value = watched.servers[0].command(&["GET", "tenure:lock"]);
        // On a machine that is so slow that it has lost first, there is nothing to see.
        let over = guard.ensure().is_err() && life() != first_life;
        (value.contains(&owner) || over).then_some(())
    })
    .await;
    assert_ne!(life(), first_life, "it has begun another life");
}

#[tokio::test]
async fn a_life_of_another_epoch_confirms_nothing_and_holders_keep_what_they_have() {
    let server = RedisServer::start();
    let (fakes, url) = fakes(&server, [Some(1); 3]).await;
    store(&format!("{url}?recovery=open")).await;
    let peer = peer(&url).await;
    let held = peer.take("lock", &bid()).await;
    // What does not change is not looked at again.
    let life = || server.command(&["GET", "~tenure:{tenure:}:life"]);
    let first_life = life();
    store(&url).await;
    assert_eq!(life(), first_life);

    for fake in &fakes {
        fake.change(|says| says.epoch = Some(3));
    }
    let granted = peer.try_ask("other", Action::Acquire(bid())).await;
    let error = granted.expect_err("it was granted in a life that is over");
    assert!(error.to_string().contains("meanwhile"), "{error}");
    let asked = async || peer.try_ask("third", Action::Acquire(bid())).await.ok();
    let waits = eventually_async("it is met again", asked).await;
    assert!(matches!(waits.outcome, Outcome::Busy(_)), "{waits:?}");
    assert_ne!(life(), first_life);
    let renewed = answered(&peer, "the hold lives on", reclaim(held)).await;
    assert!(
        matches!(renewed.outcome, Outcome::Renewed { .. }),
        "{renewed:?}"
    );
}

#[tokio::test]
async fn sentinels_that_do_not_agree_on_the_epoch_confirm_nothing() {
    let server = RedisServer::start();
    let (fakes, url) = fakes(&server, [Some(1), Some(2), Some(3)]).await;
    let peer = peer(&format!("{url}?recovery=open")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("no two agree");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("do not agree"), "{error}");
    assert_eq!(server.command(&["EXISTS", "~tenure:{tenure:}:life"]), "0");
    fakes[0].change(|says| says.epoch = Some(3));
    let granted = answered(&peer, "two of three agree", Action::Acquire(bid())).await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

#[tokio::test]
async fn sentinels_that_tell_no_epoch_serve_only_those_who_want_no_recovery() {
    let server = RedisServer::start();
    let (_fakes, url) = fakes(&server, [None; 3]).await;
    let careful = peer(&url).await;
    let refused = careful.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("nobody says since when");
    assert!(error.to_string().contains("config-epoch"), "{error}");
    let careless = peer(&format!("{url}?recovery=off")).await;
    careless.take("lock", &bid()).await;
}

/// Whom it names, and since when, are two questions.
#[tokio::test]
async fn what_a_sentinel_says_while_it_changes_its_mind_does_not_count() {
    let server = RedisServer::start();
    let (fakes, url) = fakes(&server, [Some(1); 3]).await;
    let changing = |changing| {
        for fake in &fakes {
            fake.change(|says| says.changing = changing);
        }
    };
    changing(true);
    let peer = peer(&format!("{url}?recovery=open&call_timeout=1s")).await;
    let refused = peer.try_ask("lock", Action::Acquire(bid())).await;
    let error = refused.expect_err("nobody has said anything that counts");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(server.command(&["EXISTS", "~tenure:{tenure:}:life"]), "0");
    changing(false);
    for fake in &fakes {
        fake.change(|says| says.epoch = Some(7));
    }
    let granted = answered(
        &peer,
        "they have made up their minds",
        Action::Acquire(bid()),
    )
    .await;
    assert!(
        matches!(granted.outcome, Outcome::Granted(_)),
        "{granted:?}"
    );
}

/// It could not begin the next life, and would be kept out until somebody comes who may.
#[tokio::test]
async fn whoever_may_not_look_is_served_also_in_another_epoch() {
    let server = RedisServer::start();
    let rules = "on >secret ~tenure:* ~~tenure:* &tenure:in:* +@read +@write +@scripting +@pubsub \
                 +@connection +time +role -info";
    let words: Vec<_> = ["ACL", "SETUSER", "plain"]
        .into_iter()
        .chain(rules.split(' '))
        .collect();
    assert_eq!(server.command(&words), "OK");
    let (fakes, url) = fakes(&server, [Some(1); 3]).await;
    store(&format!("{url}?recovery=open")).await;
    let url = url.replace("redis+sentinel://", "redis+sentinel://plain:secret@");
    let plain = peer(&format!("{url}?recovery=careful")).await;
    plain.take("before", &bid()).await;
    for fake in &fakes {
        fake.change(|says| says.epoch = Some(3));
    }
    plain.take("after", &bid()).await;
}
