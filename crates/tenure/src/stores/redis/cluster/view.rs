//! [`View`]: what one node of a cluster says about all of them, and [`incarnation`]: what it says about itself, read
//! from `CLUSTER NODES`.

use std::collections::HashMap;

use tenure_core::ErrorKind;

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::listing::ask;
use super::super::memory::{Line, facts};
use super::slots::SLOTS;

/// What the node at the other end of `link` says.
pub(super) async fn view(link: &Link) -> Result<View, Failure> {
    let mut command = redis::cmd("CLUSTER");
    command.arg("NODES");
    let said = ask(link, &command, link.deadline()).await?;
    let text: Option<String> = redis::from_redis_value(said).ok();
    text.and_then(|text| View::read(&text)).ok_or_else(|| {
        Failure::protocol("the server's answer to CLUSTER NODES has the wrong shape")
            .sparing_the_connection()
    })
}

/// The same as [`view`], with whose data the node has, said not before the rest.
pub(super) async fn own_view(link: &Link) -> Result<(View, Option<Line>), Failure> {
    let view = view(link);
    let replication = async {
        let mut command = redis::cmd("INFO");
        command.arg("replication");
        let said = ask(link, &command, link.deadline()).await?;
        facts(said)
    };
    // Sent one after the other on one connection, so carried out in this order.
    let (view, replication) = tokio::join!(biased; view, replication);
    let line = match replication {
        Ok(replication) => Line::of(&replication),
        Err(failure) if failure.kind == ErrorKind::Forbidden => None,
        Err(failure) => return Err(failure),
    };
    Ok((view?, line))
}

/// What one node says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The node that says so, by its id.
    pub(super) myself: String,
    /// Its configuration epoch, also if it has no slots: that of its primary, if it has one.
    epoch: u64,
    /// Primaries that have slots, by id: only they vote when a primary is to be replaced.
    primaries: HashMap<String, Primary>,
    /// Where primaries are that have no slots and are not there: others may have been given theirs.
    gone: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Primary {
    /// Heard of lately, and not said to have failed.
    sound: bool,
    /// Its configuration epoch: higher each time that it takes the place of another.
    epoch: u64,
    /// First and last of each range.
    slots: Vec<(u16, u16)>,
}

impl View {
    /// Reads lines of `id address flags primary ping pong epoch link slots...`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut myself = None;
        let (mut primaries, mut gone) = (HashMap::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.split(' ');
            let (id, address, flags) = (words.next()?, words.next()?, words.next()?);
            let [_primary, _ping, _pong, epoch, link] = [(); 5].map(|()| words.next());
            let has = |flag: &str| flags.split(',').any(|it| it == flag);
            let epoch = epoch?.parse().ok()?;
            if has("myself") {
                myself = Some((id.to_owned(), epoch));
            }
            let slots: Vec<_> = words.filter_map(range).collect();
            let sound = !has("fail") && !has("fail?");
            if has("master") && !slots.is_empty() {
                let primary = Primary {
                    sound,
                    epoch,
                    slots,
                };
                primaries.insert(id.to_owned(), primary);
            } else if has("master") && !has("myself") && (!sound || link == Some("disconnected")) {
                let bus = address.find('@').unwrap_or(address.len());
                gone.push(address[..bus].to_owned());
            }
        }
        let (myself, epoch) = myself?;
        Some(Self {
            myself,
            epoch,
            primaries,
            gone,
        })
    }

    /// Whether its voice counts.
    pub(super) fn votes(&self) -> bool {
        self.primaries.contains_key(&self.myself)
    }

    /// How many there are that have one.
    pub(super) fn voices(&self) -> usize {
        self.primaries.len()
    }

    /// Where a primary is, or was, that has no slots and cannot be reached.
    pub(super) fn gone(&self) -> Option<&str> {
        self.gone.first().map(String::as_str)
    }

    /// Whether it takes `node` for the one that has `slot`, and for alive.
    pub(super) fn confirms(&self, node: &str, slot: u16) -> bool {
        let has = |(first, last): &(u16, u16)| (*first..=*last).contains(&slot);
        let primary = self.primaries.get(node);
        primary.is_some_and(|primary| primary.sound && primary.slots.iter().any(has))
    }

    /// Whether it knows of something that has happened to the node that says `own` since it said so: perhaps it was
    /// replaced, and has its place back.
    pub(super) fn knows_later(&self, own: &Self) -> bool {
        let primary = self.primaries.get(&own.myself);
        primary.is_some_and(|primary| primary.epoch > own.epoch)
    }
}

/// Which node has said this, by its id, and since when: its configuration epoch, which a promotion raises and a restart
/// does not.
pub(in super::super) fn incarnation(nodes: &str) -> Option<String> {
    let View { myself, epoch, .. } = View::read(nodes)?;
    Some(format!("{myself}/{epoch}"))
}

/// `7` or `0-5460`; `[93->-id]` is on its way, and still where it was.
fn range(word: &str) -> Option<(u16, u16)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let slot = |text: &str| text.parse().ok().filter(|slot| *slot < SLOTS);
    Some((slot(first)?, slot(last)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
aa 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-99 200 [93->-bb] [94-<-bb]
bb 127.0.0.1:7001@17001,host master,fail? - 5 9 2 connected 100-199
cc 127.0.0.1:7002@17002 master,fail - 5 9 3 disconnected 201-16383
dd 127.0.0.1:7003@17003 slave cc 0 9 3 connected
ee 127.0.0.1:7004@17004 master - 0 9 0 connected
";

    #[test]
    fn a_primary_counts_while_it_is_sound_and_has_the_slot() {
        let view = View::read(NODES).expect("well formed");
        assert!(view.votes());
        assert!(view.confirms("aa", 99) && view.confirms("aa", 200));
        assert!(view.confirms("aa", 93), "it is still there");
        assert!(!view.confirms("aa", 100));
        assert!(!view.confirms("bb", 150), "nobody has heard of it lately");
        assert!(!view.confirms("cc", 300), "it has failed");
        assert!(!view.confirms("dd", 300), "a replica");
        assert!(!view.confirms("nobody", 1));
    }

    #[test]
    fn what_a_node_said_before_it_was_promoted_is_not_the_latest() {
        let view = View::read(NODES).expect("well formed");
        let own = |id: &str, epoch: u64| {
            let line = format!("{id} host:1@2 myself,master - 0 0 {epoch} connected\n");
            View::read(&line).expect("well formed")
        };
        assert!(view.knows_later(&own("bb", 1)));
        assert!(!view.knows_later(&own("bb", 2)) && !view.knows_later(&own("bb", 3)));
        assert!(!view.knows_later(&own("nobody", 0)));
    }

    #[test]
    fn a_node_says_who_it_is_and_since_when_also_without_slots() {
        assert_eq!(incarnation(NODES).as_deref(), Some("aa/1"));
        let others = NODES.replace("myself,", "");
        assert_eq!(incarnation(&others), None);
        let empty = others.replace("master - 0 9 0", "myself,master - 0 9 7");
        assert_eq!(incarnation(&empty).as_deref(), Some("ee/7"));
        let replica = others.replace("slave", "myself,slave");
        assert_eq!(incarnation(&replica).as_deref(), Some("dd/3"));
    }

    #[test]
    fn a_primary_that_is_not_there_and_has_no_slots_may_have_had_some() {
        assert_eq!(View::read(NODES).expect("well formed").gone(), None);
        for (flags, link) in [
            ("master", "disconnected"),
            ("master,fail", "connected"),
            ("master,fail?", "connected"),
        ] {
            let (there, gone) = (
                "master - 0 9 0 connected",
                format!("{flags} - 0 9 0 {link}"),
            );
            let view = View::read(&NODES.replace(there, &gone)).expect("well formed");
            assert_eq!(view.gone(), Some("127.0.0.1:7004"), "{gone}");
        }
    }

    #[test]
    fn only_primaries_with_slots_have_a_voice() {
        let view = View::read(NODES).expect("well formed");
        assert_eq!(view.voices(), 3);
        let replica = NODES
            .replace("myself,", "")
            .replace("slave", "myself,slave");
        assert!(!View::read(&replica).expect("well formed").votes());
        assert_eq!(View::read("?"), None);
    }
}
