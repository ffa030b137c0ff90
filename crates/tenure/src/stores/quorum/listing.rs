//! Listing: every name that a member knows of and that somebody holds by enough votes. With so few answers that the other
//! members could keep a lock alone, under write-all or while some recover, a list that shows some may lack others; an empty one is an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use tenure_core::{Error, Fence, Listing, LockName, Snapshot};

use super::Shared;
use super::epoch::Reading;
use super::look::RollCall;
use super::rivals::Rivals;
use crate::clock::bounded;

/// How many times as long as usual a member may take to list everything.
const LONGER: u32 = 40;

pub(super) async fn list(shared: &Arc<Shared>, prefix: &str) -> Result<Listing, Error> {
    let electorate = shared.electorate;
    let sent = shared.clock.now();
    let limit = shared.node_timeout * LONGER;
    let asked = shared.members.iter().map(|member| {
        let listing = member.store.list(prefix);
        async move { bounded(&*shared.clock, limit, listing).await }
    });
    let mut answers = RollCall::new(electorate);
    let mut found: BTreeMap<LockName, (Rivals, Fence)> = BTreeMap::new();
    for (member, listing) in join_all(asked).await.into_iter().enumerate() {
        if shared.twin(member).is_some() {
            answers.skip(member);
            continue;
        }
        let heard = listing.transpose().map(|listing| {
            let Some(Listing { now, locks }) = listing else {
                return false;
            };
            for (name, snapshot) in locks {
                let (rivals, fence) = found
                    .entry(name)
                    .or_insert_with(|| (Rivals::new(electorate), Fence::NONE));
                rivals.see(member, Reading { sent, now }, &snapshot.holders);
                *fence = (*fence).max(snapshot.last_fence);
            }
            true
        });
        match heard {
            Ok(true) => answers.hear(member, Ok(())),
            Ok(false) => answers.skip(member),
            Err(error) => answers.hear(member, Err(error)),
        }
    }
    answers.enough("list")?;
    let silent = answers.silent();
    let unsure = found.values().any(|(rivals, _)| rivals.is_unsure(silent));
    if unsure || silent > 0 && found.is_empty() {
        let answered = (0..electorate.members).filter(|member| answers.has_answered(*member));
        for member in shared.forgetful(answered, None, limit).await {
            answers.forgot(member);
            found.values_mut().for_each(|(it, _)| it.forgot(member));
        }
    }
    let locks: Vec<_> = found
        .into_iter()
        .filter_map(|(name, (rivals, last_fence))| {
            let snapshot = rivals.snapshot(shared.epoch, silent);
            let snapshot = Snapshot {
                last_fence,
                ..snapshot
            };
            (!snapshot.holders.is_empty()).then_some((name, snapshot))
        })
        .collect();
    if locks.is_empty() {
        answers.nobody_else()?;
    }
    Ok(Listing {
        now: shared.epoch.timestamp(sent),
        locks,
    })
}
