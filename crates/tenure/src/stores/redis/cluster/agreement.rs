//! What the primaries say, asked and counted: whether so many of them take a node for the one that has a slot that
//! nobody need doubt it.
//!
//! What that is good for is in `confirm`; how many it takes, and why, in `docs/decisions/010-redis-cluster.md`.

use std::collections::{HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tenure_core::{ErrorKind, Moment};

use super::super::errors::Failure;
use super::super::memory::Line;
use super::nodes::Nodes;
use super::view::{View, own_view, view};
use crate::clock::bounded;

/// For so long a majority that does not agree is asked again: word of a slot that has moved spreads from
/// node to node.
const HEARSAY: Duration = Duration::from_millis(500);

/// Before it is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// Nodes that are confirmed at the same time, each for its own.
const TURNS: usize = 16;

/// Who has answered: the number of the node, and the slot.
pub(super) type Place = (usize, u16);

/// How many have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A majority of the primaries, the node itself among them.
    Majority,
    /// So many others that one of them is in every majority for the node that this one has replaced. Its own
    /// voice does not count: it has it only because the other one has lost it, so that two majorities that
    /// count it and the other one need have nobody in common.
    OneOfEach,
}

/// The last confirmation of every place, and what it takes to get one.
#[derive(Default)]
pub(super) struct Confirmed {
    last: std::sync::Mutex<HashMap<Place, Confirmation>>,
    /// What the last asking has found out, by node: it serves all who waited for it.
    heard: std::sync::Mutex<HashMap<usize, Heard>>,
    /// Held while they are asked.
    turns: [tokio::sync::Mutex<()>; TURNS],
}

/// A majority has taken a node for the one that has a slot.
#[derive(Clone, Debug)]
pub(super) struct Confirmation {
    /// When that was asked for.
    pub(super) asked: Moment,
    /// Whose data the node had then; `None` only if this user may not see that: the node itself has answered.
    line: Option<Line>,
}

impl Confirmation {
    /// Whether the life that began at the node with this replication id has gone on until it was asked. It has not if the node
    /// was replaced for a while, also if it has its place back, so that all name it again.
    pub(super) fn is_of(&self, line: Option<&str>) -> bool {
        let both = self.line.as_ref().zip(line);
        both.is_none_or(|(now, line)| now.goes_on_from(line))
    }
}

/// What those who were asked about a node have said, by their numbers.
struct Heard {
    asked: Moment,
    views: Vec<(usize, View)>,
    /// Whose data the node had then; `None` if this user may not see that, or the node is not among those who have
    /// answered, so that nothing is confirmed.
    line: Option<Line>,
    /// Some may not be asked by this user.
    forbidden: Option<Failure>,
}

impl Nodes {
    /// Which of these places of one node so many as are `wanted`, asked at or after `since`, take for that node's.
    pub(super) async fn agreed(
        &self,
        places: &[Place],
        wanted: Wanted,
        since: Moment,
        deadline: Moment,
    ) -> HashSet<Place> {
        let Some((node, _)) = places.first() else {
            return HashSet::new();
        };
        let turn = self.confirmed.turns[node % TURNS].lock();
        let left = deadline.since(self.clock.now());
        let Some(_turn) = bounded(&*self.clock, left, turn).await else {
            return HashSet::new();
        };
        let patience = deadline.min(self.clock.now().plus(HEARSAY));
        loop {
            let confirmed = self.confirmed_by_hearsay(*node, places, wanted, since);
            let all = places.iter().all(|place| confirmed.contains(place));
            if all || self.clock.now() >= deadline {
                return confirmed;
            }
            let first = self.heard(*node).is_none_or(|asked| asked < since);
            if !first {
                if self.clock.now().plus(PAUSE) >= patience {
                    return confirmed;
                }
                self.clock.sleep(PAUSE).await;
            }
            // In a box: it is large, and so is whatever asks.
            Box::pin(self.ask_all(*node, places, wanted, deadline)).await;
        }
    }

    /// What the last asking says, if it was at or after `since`.
    fn confirmed_by_hearsay(
        &self,
        node: usize,
        places: &[Place],
        wanted: Wanted,
        since: Moment,
    ) -> HashSet<Place> {
        let heard = self.confirmed.heard.lock();
        let heard = heard.unwrap_or_else(PoisonError::into_inner);
        let heard = heard.get(&node).filter(|heard| heard.asked >= since);
        let Some(Heard {
            asked, views, line, ..
        }) = heard
        else {
            return HashSet::new();
        };
        let agreed = |place: &Place| agree(views, *place, wanted);
        let agreed: HashSet<_> = places.iter().copied().filter(agreed).collect();
        if wanted != Wanted::Majority {
            return agreed;
        }
        let mut last = self.confirmations();
        for place in &agreed {
            if last.get(place).is_none_or(|latest| latest.asked < *asked) {
                let (asked, line) = (*asked, line.clone());
                last.insert(*place, Confirmation { asked, line });
            }
        }
        agreed
    }

    /// Asks all primaries at once, until enough of them agree.
    async fn ask_all(&self, node: usize, places: &[Place], wanted: Wanted, deadline: Moment) {
        let asked = self.clock.now();
        let (mut views, mut line, mut forbidden) = (Vec::new(), None, None);
        let mut asking: FuturesUnordered<_> = self
            .numbered()
            .into_iter()
            .map(async |(number, link)| match number == node {
                true => (number, own_view(&link).await),
                false => (number, view(&link).await.map(|view| (view, None))),
            })
            .collect();
        let hearing = async {
            while let Some((number, view)) = asking.next().await {
                match view {
                    Ok((view, own)) => {
                        views.push((number, view));
                        line = line.take().or(own);
                    }
                    Err(why) if why.kind == ErrorKind::Forbidden => forbidden = Some(why),
                    Err(_) => {}
                }
                if places.iter().all(|place| agree(&views, *place, wanted)) {
                    break;
                }
            }
        };
        // Whoever takes longer is not heard; its connection may be fine all the same.
        let _ = bounded(&*self.clock, deadline.since(asked), hearing).await;
        if is_outdated(&views, node) {
            // It was promoted since it has answered: what others say of it may be of then.
            views.retain(|(number, _)| *number != node);
            let left = deadline.since(self.clock.now());
            let link = self.numbered().into_iter().find(|(it, _)| *it == node);
            let again = Box::pin(async { own_view(&link?.1).await.ok() });
            let again = bounded(&*self.clock, left, again).await.flatten();
            line = again.as_ref().and_then(|(_, line)| line.clone());
            views.extend(again.map(|(view, _)| (node, view)));
        }
        let heard = self.confirmed.heard.lock();
        let mut heard = heard.unwrap_or_else(PoisonError::into_inner);
        let said = Heard {
            asked,
            views,
            line,
            forbidden,
        };
        heard.insert(node, said);
    }

    /// Why a node is not believed, in words.
    pub(super) fn why_unconfirmed(&self, node: usize) -> Failure {
        let heard = self.confirmed.heard.lock();
        let heard = heard.unwrap_or_else(PoisonError::into_inner);
        let forbidden = heard.get(&node).and_then(|heard| heard.forbidden.clone());
        forbidden.unwrap_or_else(unconfirmed)
    }

    /// When the last asking about this node was.
    fn heard(&self, node: usize) -> Option<Moment> {
        let heard = self.confirmed.heard.lock();
        let heard = heard.unwrap_or_else(PoisonError::into_inner);
        heard.get(&node).map(|heard| heard.asked)
    }

    /// The last confirmation of this place.
    pub(super) fn last(&self, place: Place) -> Option<Confirmation> {
        self.confirmations().get(&place).cloned()
    }

    fn confirmations(&self) -> MutexGuard<'_, HashMap<Place, Confirmation>> {
        let last = self.confirmed.last.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether so many primaries take the node of this place for the one that has the slot.
fn agree(views: &[(usize, View)], (node, slot): Place, wanted: Wanted) -> bool {
    // Who it is, it says itself.
    let Some((_, own)) = views.iter().find(|(number, _)| *number == node) else {
        return false;
    };
    let agreeing = views
        .iter()
        .map(|(_, view)| view)
        .filter(|view| view.votes() && view.confirms(&own.myself, slot));
    // One that was asked at two addresses has one voice.
    let mut agreeing: HashSet<_> = agreeing.map(|view| &view.myself).collect();
    let all = views.iter().map(|(_, view)| view.voices()).max();
    let all = all.unwrap_or_default();
    match wanted {
        Wanted::Majority => agreeing.len() > all / 2,
        Wanted::OneOfEach => {
            agreeing.remove(&own.myself);
            agreeing.len() >= (all - all / 2).min(all - 1)
        }
    }
}

/// Whether somebody knows of something that has happened to the node since it has answered.
fn is_outdated(views: &[(usize, View)], node: usize) -> bool {
    let own = views.iter().find(|(number, _)| *number == node);
    own.is_some_and(|(_, own)| views.iter().any(|(_, view)| view.knows_later(own)))
}

fn unconfirmed() -> Failure {
    Failure::new(
        ErrorKind::Unavailable,
        "no majority of the cluster's primaries confirms that the node which answers for this lock has \
         its slot: that node may have been replaced or have just taken over, or too many others cannot \
         be reached",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What node `myself` of three says, if it takes `owner` for the one that has slot 7.
    fn view_of(myself: usize, owner: usize, flags: &str) -> (usize, View) {
        let line = |node: usize| {
            let me = if node == myself { "myself," } else { "" };
            let (flags, slots) = match node == owner {
                true => (flags, "0-7"),
                false => ("master", "8"),
            };
            format!("n{node} host:1@2 {me}{flags} - 0 0 1 connected {slots}\n")
        };
        let text: String = (0..3).map(line).collect();
        (myself, View::read(&text).expect("well formed"))
    }

    fn majority(views: &[(usize, View)], place: Place) -> bool {
        agree(views, place, Wanted::Majority)
    }

    #[test]
    fn a_majority_of_all_primaries_must_agree_and_the_node_itself_must_answer() {
        let fine = |node| view_of(node, 0, "master");
        assert!(majority(&[fine(0), fine(1)], (0, 7)));
        let dissent = [fine(0), fine(1), view_of(2, 2, "master")];
        assert!(majority(&dissent, (0, 7)));
        assert!(!majority(&[fine(0)], (0, 7)), "alone");
        let others = [fine(1), fine(2)];
        assert!(!majority(&others, (0, 7)), "it says nothing itself");
        let twice = [fine(0), fine(0)];
        assert!(!majority(&twice, (0, 7)), "one voice, asked twice");
        assert!(!majority(&[fine(0), fine(1)], (0, 8)), "another slot");
        for flags in ["master,fail?", "master,fail"] {
            let views = [fine(0), view_of(1, 0, flags)];
            assert!(!majority(&views, (0, 7)), "{flags}");
        }
        let replaced = [fine(0), view_of(1, 2, "master"), view_of(2, 2, "master")];
        assert!(!majority(&replaced, (0, 7)), "the others name another");
        assert!(majority(&replaced, (2, 7)));
    }

    #[test]
    fn a_life_begins_only_if_no_majority_can_confirm_another_node() {
        let fine = |node| view_of(node, 0, "master");
        let begins = |views: &[(usize, View)]| agree(views, (0, 7), Wanted::OneOfEach);
        assert!(begins(&[fine(0), fine(1), fine(2)]));
        let dissent = [fine(0), fine(1), view_of(2, 2, "master")];
        assert!(!begins(&dissent), "it and the one it replaced make two");
        let alone = "n0 host:1@2 myself,master - 0 0 1 connected 0-7\n";
        let alone = View::read(alone).expect("well formed");
        assert!(begins(&[(0, alone)]), "nobody else has a voice");
    }
}
