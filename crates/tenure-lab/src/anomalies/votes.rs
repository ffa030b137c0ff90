//! Not an anomaly: what naive algorithms with several servers have in common. A vote is a key with our value.

use std::io;

use crate::stage::Ask;
use crate::worker::naive::{COMPARE_AND_DELETE, KEY, Naive};

/// Asks one server after the other; more than half of the votes, counted at the end, are a lock.
pub(super) fn take_majority(me: &mut Naive, ask: &Ask) -> io::Result<bool> {
    if vote_everywhere(me, ask) > me.servers() / 2 {
        return Ok(true);
    }
    give_back_everywhere(me, ask)?;
    Ok(false)
}

/// Asks all servers, and counts.
pub(super) fn vote_everywhere(me: &mut Naive, ask: &Ask) -> usize {
    let servers = 0..me.servers();
    servers.filter(|server| vote(me, *server, ask)).count()
}

/// Asks one server for its vote; one that cannot be asked says no.
pub(super) fn vote(me: &mut Naive, server: usize, ask: &Ask) -> bool {
    let (token, ttl) = (me.token.clone(), ask.ttl.as_millis().to_string());
    let answer = me.call_server(server, &["SET", KEY, &token, "NX", "PX", &ttl]);
    answer.is_ok_and(|answer| answer.is_yes())
}

/// Takes back the vote of one server.
pub(super) fn give_back(me: &mut Naive, server: usize) {
    let token = me.token.clone();
    // One that cannot be asked keeps it until it ends.
    let _ = me.call_server(server, &["EVAL", COMPARE_AND_DELETE, "1", KEY, &token]);
}

/// Takes back the votes of all servers.
pub(super) fn give_back_everywhere(me: &mut Naive, _: &Ask) -> io::Result<()> {
    for server in 0..me.servers() {
        give_back(me, server);
    }
    Ok(())
}
