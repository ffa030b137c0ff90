//! Every future of the client is dropped at every await on a network where messages take their time:
//! whatever was asked by then, nothing is left of it.

use std::sync::Arc;

use tenure::Tenure;
use tenure::test_util::seed_chance;

use super::network::SimulatedLink;
use super::profile::Profile;
use super::world::World;
use crate::client_cancel::leaves_nothing_behind;

/// Messages stay in order: one that overtook its own cancellation would be undone by time alone.
const SLOW_BUT_ORDERLY: Profile = Profile {
    name: "cancelled",
    clients: 2,
    loss: 0,
    slow: 20,
    slowness: 40,
    mishaps: &[],
    most: 0,
    ..Profile::ORDERLY
};

#[test]
fn dropping_at_every_await_leaves_nothing_behind_on_any_network() {
    for seed in 0..12 {
        println!("seed {seed}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        seed_chance(Some(seed));
        runtime.block_on(async {
            let world = World::new(seed, SLOW_BUT_ORDERLY, None, false);
            let [one, other] = [client(&world, 0).await, client(&world, 1).await];
            world.set_calm(false);
            leaves_nothing_behind(&one, &other).await;
        });
        seed_chance(None);
    }
}

async fn client(world: &Arc<World>, number: usize) -> Tenure {
    let link = Arc::new(SimulatedLink::new(world, number));
    let clock = Arc::new(world.clock.clone());
    Tenure::new(link, clock)
        .await
        .expect("nothing is wrong yet")
}
