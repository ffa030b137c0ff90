//! Before a life begins, those who decide which server is the primary are asked whether this is the one.
//!
//! Nobody is let in until `max_ttl` after a life has begun, so that whatever another server granted has ended by
//! then. A primary that does not know that it was replaced goes on granting, and those who confirm what it
//! grants may not know either. But as soon as so many of them name *this* server that they share a witness with
//! any majority, none of them confirms the other one any more: only then does the waiting begin to count.
//!
//! Whoever knows a server only by its own address asks nobody. What it writes says so, and does not count for
//! those who need witnesses: for them the life begins once more. So it does under Sentinel if the record is of
//! another configuration than the one in which they name the server now: another had its place meanwhile.

use std::time::Duration;

use tenure_core::{ErrorKind, Moment};

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::options::Options;
use super::Part;
use super::look::Look;
use super::record::{Beginning, place_of, says_witnessed};

/// Witnesses that need longer are not heard: whoever asks is to be told why it has to wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Whether another server may have the place of this one, and there is somebody to ask.
pub(super) fn needs_witnesses(link: &Link) -> bool {
    link.sentinels.is_some() || link.options.keys.member().is_some()
}

/// Whether each of these parts is known to belong to the server at the other end, by witnesses that were asked
/// since it was looked at. A server of its own needs none.
pub(super) async fn confirmed(
    link: &Link,
    begins: &[(Part, Look, Beginning)],
    deadline: Moment,
) -> Vec<Result<(), Failure>> {
    if begins.is_empty() {
        return Vec::new();
    }
    if link.sentinels.is_some() {
        // They were asked already, when we looked: what they said is what will be written.
        let named = |(_, look, _): &(Part, Look, Beginning)| look.place.clone().map(drop);
        return begins.iter().map(named).collect();
    }
    let Some(member) = link.options.keys.member() else {
        return vec![Ok(()); begins.len()];
    };
    let Some((node, nodes)) = member.clone().all() else {
        return vec![Err(gone()); begins.len()];
    };
    let mut outcomes = vec![Err(gone()); begins.len()];
    // What needs more of them holds up nothing that does not, so that comes first.
    for promoted in [false, true] {
        let (indices, slots): (Vec<usize>, Vec<u16>) = begins
            .iter()
            .enumerate()
            .filter(|(_, (_, look, _))| is_promoted(look) == promoted)
            .map(|(index, (part, ..))| (index, part.unwrap_or_default()))
            .unzip();
        // Those who do not agree on the first ones are asked again for a while: the others have their own time.
        let deadline = deadline.min(link.clock.now().plus(patience(&link.options)));
        let confirming = nodes.confirm_beginning(node, &slots, promoted, deadline);
        for (index, confirmed) in indices.into_iter().zip(confirming.await) {
            outcomes[index] = confirmed;
        }
    }
    outcomes
}

/// Whether a record says that the server has had its place all the time since it was written, as far as anybody
/// who has to be asked can say that.
pub(super) fn is_witnessed(link: &Link, look: &Look) -> bool {
    if !needs_witnesses(link) {
        return true;
    }
    let since = place_of(&look.text);
    let same = match &look.place {
        _ if link.sentinels.is_none() => true,
        Ok(now) => since == now.as_deref(),
        // Whoever relies on it asks again, and for the one that it says.
        Err(_) => since.is_some(),
    };
    says_witnessed(&look.text) && same
}

/// Whether a node may have its voice from another, whose place it took. A record tells who had the slot when its
/// data was written, and in which epoch: a promotion raises it, so that one who was promoted *back* is found out, too.
/// Without one it has to be asked of the server, which shows it also after a restart if it has had replicas itself. So it
/// has with one that was written without asking anybody: that this very node wrote it does not say that it had the place.
fn is_promoted(look: &Look) -> bool {
    match (place_of(&look.text), &look.place) {
        (Some(wrote), Ok(Some(place))) if wrote != place => true,
        (Some(_), Ok(Some(_))) if says_witnessed(&look.text) => false,
        _ => look.seen.took_over,
    }
}

/// For how long a cluster's majority is waited for. If calls may last long, longer than usual: a machine that stands still for
/// a second is no reason to refuse a slot. A client may have given up its call by then, but the hello goes on without it, and
/// the next call finds it done; within what a lease can afford, also if two groups of slots need it, one after the other.
fn patience(options: &Options) -> Duration {
    let affordable = options.caution.max_ttl.duration() / 6;
    PATIENCE.max(affordable.min(options.call_timeout / 4))
}

fn gone() -> Failure {
    Failure::new(ErrorKind::Unavailable, "the store was dropped")
}

#[cfg(test)]
mod tests {
    use tenure_core::{Seen, Timestamp};

    use super::*;

    fn look(text: &str, took_over: bool) -> Look {
        let now = Timestamp::from_micros(100_000_000);
        Look {
            text: text.to_owned(),
            record: None,
            seen: Seen {
                run: "run".into(),
                line: "line".into(),
                took_over,
                age: Duration::ZERO,
                durable: false,
                has_replicas: false,
                wiped: false,
                now,
            },
            wipes: None,
            now,
            place: Ok(Some("node/2".to_owned())),
            pending: Duration::ZERO,
            is_replica: false,
        }
    }

    #[test]
    fn only_what_witnesses_have_confirmed_tells_that_a_node_was_not_promoted() {
        let record = |words| format!("v1 0000000000000007 1 run line 1 - missed 1 - {words}");
        let is = |words, took_over| is_promoted(&look(&record(words), took_over));
        assert!(!is("witnessed node/2", true), "it has written so itself");
        assert!(is("witnessed node/1", false), "it has another epoch now");
        assert!(is("witnessed other/2", false), "another has written so");
        assert!(is("- node/2", true), "nobody was asked");
        assert!(!is("- node/2", false));
        assert!(is("- node/1", false) && is("- other/2", false), "as above");
        assert!(is_promoted(&look("", true)) && !is_promoted(&look("", false)));
    }
}
