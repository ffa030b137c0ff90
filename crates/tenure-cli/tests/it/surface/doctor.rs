//! `tenure doctor` on the default store.

use super::world::World;

#[test]
fn a_healthy_store_is_described() {
    let world = World::new();
    let done = world.run(&["doctor"]).exits(0);
    assert!(done.stdout.contains("sqlite:"), "{}", done.stdout);
    assert!(done.stdout.contains("round trip"), "{}", done.stdout);
    assert!(done.stdout.contains("S2"), "{}", done.stdout);
    assert!(done.stdout.contains("Fit for locks"), "{}", done.stdout);
}

#[test]
fn the_findings_are_available_as_json() {
    let shown = World::new().json(&["doctor", "--json"]);
    assert!(
        shown["findings"].is_array() && shown["round_trip_us"].is_u64(),
        "{shown}"
    );
    assert_eq!(shown["fit"], true);
    assert!(shown["verdict"].as_str().unwrap().starts_with("Fit"));
}

#[test]
fn an_unreachable_store_is_69() {
    World::new()
        .run(&["doctor", "--store", "redis://127.0.0.1:1"])
        .exits(69)
        .says("T0101");
}
