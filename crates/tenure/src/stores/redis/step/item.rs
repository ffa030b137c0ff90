//! Requests on their way: one is an [`Item`], those that travel together are a [`Call`].

use std::collections::HashMap;

use tenure_core::{Action, Ballot, Fence, LockName, Request};

use super::super::decode::Asked;
use super::super::encode::{self, FROM_THE_HEAD, Texts};
use super::super::keys::Keys;
use super::super::scripts::ScriptName;
use super::nonce::{Nonce, Nonces};

/// One request on its way to one script.
pub(super) struct Item<'a> {
    /// Of the request, in the batch.
    pub(super) index: usize,
    request: &'a Request,
    keys: &'a Keys,
    /// In a cluster.
    pub(super) slot: Option<u16>,
    pub(super) script: ScriptName,
    pub(super) nonce: Nonce,
    pub(super) asked: Asked,
    /// Where to go on in the queue, if this is not the first call for the request; its outcome is
    /// then known already.
    cursor: Option<String>,
}

impl<'a> Item<'a> {
    pub(super) fn first(
        index: usize,
        request: &'a Request,
        nonces: &Nonces,
        keys: &'a Keys,
    ) -> Self {
        Self {
            index,
            request,
            keys,
            slot: keys.slot(&request.name),
            script: encode::script(&request.action),
            nonce: nonces.next(),
            asked: Asked {
                owner: encode::owner(&request.action),
                fence: fence(&request.action),
            },
            cursor: None,
        }
    }

    /// The rest of a step that had looked at enough waiters. An acquire asks again, because its
    /// outcome may change; for all others it is enough that somebody is let in.
    pub(super) fn going_on(&self, cursor: String, nonces: &Nonces) -> Self {
        let nobody = Asked {
            owner: None,
            fence: None,
        };
        let (script, asked) = match self.script {
            ScriptName::Acquire => (ScriptName::Acquire, self.asked),
            _ => (ScriptName::Admit, nobody),
        };
        Self {
            index: self.index,
            request: self.request,
            keys: self.keys,
            slot: self.slot,
            script,
            nonce: nonces.next(),
            asked,
            cursor: Some(cursor),
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.cursor.is_some()
    }

    pub(super) fn name(&self) -> &LockName {
        &self.request.name
    }

    /// Adds its KEYS and ARGV to those of its call.
    pub(super) fn write(&self, prefix: &str, keys: &mut Texts, arguments: &mut Texts) {
        self.keys.write(self.name(), keys);
        match self.asked.owner {
            Some(owner) => arguments.push(format_args!("{} {owner}", self.nonce)),
            None => arguments.push(format_args!("{} -", self.nonce)),
        }
        let cursor = self.cursor.as_deref().unwrap_or(FROM_THE_HEAD);
        match self.script {
            ScriptName::Admit => arguments.push(cursor),
            _ => encode::arguments(prefix, self.request, cursor, arguments),
        }
    }
}

/// Requests that travel in one call, as indices of items.
pub(super) struct Call {
    pub(super) script: ScriptName,
    pub(super) slot: Option<u16>,
    pub(super) items: Vec<usize>,
}

/// Sorts items into calls, each request after all earlier ones of its name; answers too whether all
/// calls are about different names.
pub(super) fn sorted(items: &[Item<'_>]) -> (Vec<Call>, bool) {
    if let [item] = items {
        let call = Call {
            script: item.script,
            slot: item.slot,
            items: vec![0],
        };
        return (vec![call], true);
    }
    let mut calls: Vec<Call> = Vec::new();
    let mut last_call: HashMap<&LockName, usize> = HashMap::new();
    let mut independent = true;
    for (index, item) in items.iter().enumerate() {
        let script = item.script;
        let slot = item.slot;
        let alike = |call: &Call| call.script == script && call.slot == slot;
        let room = |call: &Call| alike(call) && call.items.len() < script.batch_limit();
        let earlier = last_call.get(item.name()).copied();
        let place = calls
            .iter()
            .rposition(room)
            .filter(|place| earlier.is_none_or(|earlier| earlier <= *place));
        let place = place.unwrap_or_else(|| {
            calls.push(Call {
                script,
                slot,
                items: Vec::new(),
            });
            calls.len() - 1
        });
        independent &= earlier.is_none_or(|earlier| earlier == place);
        calls[place].items.push(index);
        last_call.insert(item.name(), place);
    }
    (calls, independent)
}

fn fence(action: &Action) -> Option<Fence> {
    match action {
        Action::Renew(request) => Some(request.fence),
        Action::Convert(request) => Some(request.fence),
        Action::Release(request) => Some(request.fence),
        Action::ForceRelease(request) => Some(request.fence),
        Action::Vote(request) => Some(match request.ballot {
            Ballot::New { proposal } => proposal,
            Ballot::Raise { to } => to,
            Ballot::Held { fence } => fence,
        }),
        Action::Acquire(_) | Action::Cancel(_) | Action::Inspect => None,
    }
}
