//! [`Nodes`]: all nodes that are known, who of them has which slot, and who listens.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tenure_core::{ErrorKind, Inbox, Listener, Push};
use tokio::sync::Notify;

use super::super::connection::Link;
use super::super::errors::Failure;
use super::super::keys::{Keys, Member};
use super::super::options::{Address, Options};
use super::agreement::Confirmed;
use super::layout::{self, Layout};
use super::slots::{SLOTS, Slots};
use crate::clock::{Clock, bounded};

/// How long to wait for others once one node has said who has what: another may know better.
const SECOND_OPINION: Duration = Duration::from_millis(200);

/// The number of no node.
const NOBODY: usize = usize::MAX;

/// The nodes of a cluster.
pub(in super::super) struct Nodes {
    /// Of every node, but for its address.
    pub(super) options: Options,
    /// Where the URL says that nodes are.
    seeds: Vec<Address>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) slots: Arc<Slots>,
    /// Which lock is in which slot.
    pub(super) keys: Keys,
    known: Mutex<Known>,
    /// Told when somebody noticed that not all is as it is known to be.
    pub(super) outdated: Arc<Notify>,
    /// Held while asking around, so that one answer serves all.
    turn: tokio::sync::Mutex<()>,
    pub(super) confirmed: Confirmed,
    pub(super) me: Weak<Nodes>,
}

#[derive(Default)]
struct Known {
    /// By number. They are never taken away, because numbers stand for them.
    nodes: Vec<Node>,
    listeners: Vec<(Inbox, Weak<dyn Listener>)>,
}

struct Node {
    address: Address,
    /// `None` while it has no slots.
    link: Option<Arc<Link>>,
}

impl Nodes {
    pub(super) fn new(options: Options, seeds: Vec<Address>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let slots = Arc::new(Slots::default());
        Arc::new_cyclic(|me| {
            let member = Member {
                slots: slots.clone(),
                node: NOBODY,
                nodes: me.clone(),
            };
            Self {
                keys: options.keys.clone().of(member),
                options,
                seeds,
                clock,
                slots,
                known: Mutex::default(),
                outdated: Arc::default(),
                turn: tokio::sync::Mutex::default(),
                confirmed: Confirmed::default(),
                me: me.clone(),
            }
        })
    }

    /// No call lasts longer.
    pub(super) fn call_timeout(&self) -> Duration {
        self.options.call_timeout
    }

    /// Who has this slot.
    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Link>> {
        let owner = self.slots.owner(slot)?;
        self.known().nodes.get(owner)?.link.clone()
    }

    /// All that have slots.
    pub(super) fn serving(&self) -> Vec<Arc<Link>> {
        let numbered = self.numbered().into_iter();
        numbered.map(|(_, link)| link).collect()
    }

    /// The same with their numbers.
    pub(super) fn numbered(&self) -> Vec<(usize, Arc<Link>)> {
        let known = self.known();
        let nodes = known.nodes.iter().enumerate();
        let serving = nodes.filter_map(|(number, node)| Some((number, node.link.clone()?)));
        serving.collect()
    }

    /// Whether somebody listens and a node cannot be heard: a replica may have taken its place.
    pub(super) fn misses_somebody(&self) -> bool {
        let known = self.known();
        let gone = |node: &Node| {
            node.link
                .as_ref()
                .is_some_and(|link| link.current().is_none())
        };
        !known.listeners.is_empty() && known.nodes.iter().any(gone)
    }

    /// A node has said that another has this slot.
    pub(super) fn moved(&self, slot: u16, address: &Address) {
        let mut known = self.known();
        let owner = self.number(&mut known, address);
        if self.slots.learn(slot, owner) {
            known.missed();
        }
        drop(known);
        self.outdated.notify_one();
    }

    /// Asks who has what, and learns from the newest answer.
    ///
    /// # Errors
    /// If nobody says so: whatever kept them from it.
    pub(super) async fn refresh(&self) -> Result<(), Failure> {
        let _turn = self.turn.lock().await;
        let known = self.newest(self.serving()).await;
        let layout = match known {
            Ok(layout) => layout,
            Err(_) => {
                let seeds = self.seeds.iter().cloned();
                let links = seeds.map(|seed| Link::new(self.options.at(seed), self.clock.clone()));
                self.newest(links.collect()).await?
            }
        };
        self.learn(layout);
        Ok(())
    }

    /// Delivers what is pushed to `inbox` to `listener`, from every node that there is or will be.
    ///
    /// # Errors
    /// If no node lets us listen. One that is down is listened to as soon as it is there.
    pub(super) async fn listen(
        &self,
        inbox: &Inbox,
        listener: &Weak<dyn Listener>,
    ) -> Result<(), Failure> {
        let serving = {
            let mut known = self.known();
            known.listeners.retain(|(_, it)| it.strong_count() > 0);
            known.listeners.push((inbox.clone(), listener.clone()));
            let links = known.nodes.iter().filter_map(|node| node.link.clone());
            links.collect::<Vec<_>>()
        };
        let listening = serving
            .iter()
            .map(|link| link.listen(inbox, listener.clone()));
        let outcomes = join_all(listening).await;
        let mut failure = None;
        let mut reached = false;
        for (link, outcome) in serving.iter().zip(outcomes) {
            match outcome {
                Ok(()) => reached = true,
                Err(other) => {
                    link.listen_in_background(inbox, listener.clone());
                    failure = Some(other);
                }
            }
        }
        match failure {
            Some(failure) if !reached => Err(failure),
            _ => Ok(()),
        }
    }

    async fn newest(&self, links: Vec<Arc<Link>>) -> Result<Layout, Failure> {
        let mut asked: FuturesUnordered<_> = links.iter().map(|link| layout::ask(link)).collect();
        let mut failures = Vec::new();
        let mut newest = loop {
            match asked.next().await {
                Some(Ok(layout)) => break layout,
                Some(Err(failure)) => failures.push(failure),
                None => return Err(most_telling(failures)),
            }
        };
        let others = async {
            while let Some(answer) = asked.next().await {
                match answer {
                    Ok(layout) if layout.epoch > newest.epoch => newest = layout,
                    _ => {}
                }
            }
        };
        // Whoever takes longer is not heard.
        let _ = bounded(&*self.clock, SECOND_OPINION, others).await;
        Ok(newest)
    }

    fn learn(&self, layout: Layout) {
        let mut known = self.known();
        let mut owners = vec![None; usize::from(SLOTS)];
        for (first, last, address) in layout.ranges {
            let owner = self.number(&mut known, &address);
            for slot in first..=last {
                owners[usize::from(slot)] = Some(owner);
            }
        }
        let mut news = false;
        for (slot, owner) in (0..SLOTS).zip(&owners) {
            news |= match owner {
                Some(owner) => self.slots.learn(slot, *owner),
                None => self.slots.forget(slot),
            };
        }
        for (number, node) in known.nodes.iter_mut().enumerate() {
            if !owners.contains(&Some(number)) {
                node.link = None;
            }
        }
        if news {
            known.missed();
        }
    }

    /// The number of the node at `address`, which has slots: we are connected to it, or will be.
    fn number(&self, known: &mut Known, address: &Address) -> usize {
        let found = known.nodes.iter().position(|node| node.address == *address);
        let number = found.unwrap_or(known.nodes.len());
        if found.is_none() {
            known.nodes.push(Node {
                address: address.clone(),
                link: None,
            });
        }
        if known.nodes[number].link.is_none() {
            let member = Member {
                slots: self.slots.clone(),
                node: number,
                nodes: self.me.clone(),
            };
            let link = Link::new(
                self.options.at(address.clone()).of(member),
                self.clock.clone(),
            );
            for (inbox, listener) in &known.listeners {
                link.listen_in_background(inbox, listener.clone());
            }
            known.nodes[number].link = Some(link);
        }
        number
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whoever waits asks again, wherever its lock is now.
    fn missed(&self) {
        for listener in self.listeners.iter().filter_map(|(_, it)| it.upgrade()) {
            listener.pushed(Push::Missed);
        }
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = |node: &Node| node.address.to_string();
        let nodes: Vec<_> = self.known().nodes.iter().map(addresses).collect();
        f.debug_struct("Nodes")
            .field("nodes", &nodes)
            .finish_non_exhaustive()
    }
}

/// What a person can do something about, rather than that one of them is down.
fn most_telling(failures: Vec<Failure>) -> Failure {
    let is_down = |failure: &Failure| failure.kind == ErrorKind::Unavailable;
    let first = failures.into_iter().min_by_key(is_down);
    first.unwrap_or_else(|| Failure::new(ErrorKind::Unavailable, "no node of the cluster is known"))
}
