//! A quorum of memory stores in virtual time, each of which can be told to misbehave.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::Clock;
use tenure::core::{Action, Ballot, Cancel, LockName, Outcome, Snapshot, Vote};
use tenure::stores::memory::MemoryStore;
use tenure::stores::quorum::{QuorumStore, Rule, Settings};
use tenure::test_util::{Fault, ScriptedStore, VirtualClock};
use tenure::{Error, Fence, Mode, Party, Store, Tenure, Ttl};

use crate::support::peer::bid;

pub(crate) struct Quorum {
    pub(crate) clock: Arc<VirtualClock>,
    /// What each member really knows.
    pub(crate) memories: Vec<Arc<MemoryStore>>,
    /// What clients see of it.
    pub(crate) members: Vec<Arc<ScriptedStore>>,
    pub(crate) settings: Settings,
}

impl Quorum {
    pub(crate) fn of(members: usize) -> Self {
        Self::with(members, Settings::new(Rule::Majority))
    }

    pub(crate) fn with(members: usize, settings: Settings) -> Self {
        let clock = Arc::new(VirtualClock::new());
        Self::made_of(&vec![clock.clone(); members], clock, settings)
    }

    /// Of members with these clocks, none of which is the client's.
    pub(crate) fn on(clocks: &[Arc<VirtualClock>]) -> Self {
        let settings = Settings::new(Rule::Majority);
        Self::made_of(clocks, Arc::new(VirtualClock::new()), settings)
    }

    fn made_of(clocks: &[Arc<VirtualClock>], clock: Arc<VirtualClock>, settings: Settings) -> Self {
        let memory = |clock: &Arc<VirtualClock>| Arc::new(MemoryStore::new(clock.clone()));
        let memories: Vec<_> = clocks.iter().map(memory).collect();
        let scripted =
            |memory: &Arc<MemoryStore>| ScriptedStore::new(memory.clone(), clock.clone());
        Self {
            members: memories.iter().map(scripted).collect(),
            memories,
            clock,
            settings,
        }
    }

    /// A store as another process would have it.
    pub(crate) async fn store(&self) -> Arc<QuorumStore> {
        Arc::new(self.try_store().await.unwrap())
    }

    pub(crate) async fn try_store(&self) -> Result<QuorumStore, Error> {
        let members = self.members.iter().enumerate();
        let members = members.map(|(index, member)| {
            let member: Arc<dyn Store> = member.clone();
            (format!("member {index}"), member)
        });
        QuorumStore::connect(members.collect(), self.settings, self.clock.clone()).await
    }

    /// A client as another process would have it.
    pub(crate) async fn client(&self) -> Tenure {
        let store = self.store().await;
        Tenure::new(store, self.clock.clone()).await.unwrap()
    }

    /// From now on these members do this to everything.
    pub(crate) fn all(&self, members: impl IntoIterator<Item = usize>, fault: Fault) {
        for member in members {
            let rule = tenure::test_util::Rule::on_everything().does(fault);
            self.members[member].script(rule);
        }
    }

    /// Asks a member behind everybody's back.
    pub(crate) async fn ask(&self, member: usize, name: &str, action: Action) -> Outcome {
        let request = [action.on(LockName::new(name).unwrap())];
        let replies = self.memories[member].apply(&request).await;
        replies.into_iter().next().unwrap().unwrap().outcome
    }

    /// Has a member give a fence of `name` that is not below this, to somebody who does not want it.
    pub(crate) async fn leap_ahead(&self, member: usize, name: &str, proposal: Fence) {
        let owner = bid().owner;
        let vote = Vote {
            owner,
            mode: Mode::Exclusive,
            ttl: Ttl::DEFAULT,
            party: Party::default(),
            not_after: None,
            ballot: Ballot::New { proposal },
        };
        self.ask(member, name, Action::Vote(vote)).await;
        let cancel = Action::Cancel(Cancel { owner });
        self.ask(member, name, cancel).await;
    }

    /// What a member really knows of `name`.
    pub(crate) async fn peek(&self, member: usize, name: &str) -> Snapshot {
        match self.ask(member, name, Action::Inspect).await {
            Outcome::State(snapshot) => snapshot,
            other => panic!("inspect answered {other:?}"),
        }
    }

    /// How many members have a vote for `name`.
    pub(crate) async fn votes(&self, name: &str) -> usize {
        let mut votes = 0;
        for member in 0..self.members.len() {
            votes += usize::from(!self.peek(member, name).await.holders.is_empty());
        }
        votes
    }

    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// Runs `work` and tells how long it took in virtual time.
    pub(crate) async fn elapsed<T>(&self, work: impl Future<Output = T>) -> (T, Duration) {
        let started = self.clock.now();
        let result = work.await;
        (result, self.clock.now().since(started))
    }
}
