//! [`Keys`]: where a lock is kept, and back from there to its name.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use percent_encoding::percent_decode_str;
use tenure_core::LockName;

use super::cluster::{Nodes, Slots, slot, tag};
use super::encode::Texts;

/// What is kept beside a lock; see prelude.lua.
const BESIDE: [&str; 5] = ["fence", "queue", "alive", "waiters", "forced"];

/// Which lock has which key.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// Put before each lock name to make its key.
    prefix: String,
    /// In a cluster: who has which slot, and which of its nodes this is.
    member: Option<Member>,
}

/// A node of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) slots: Arc<Slots>,
    pub(super) node: usize,
    /// All of them.
    pub(super) nodes: Weak<Nodes>,
}

impl Member {
    /// Its number, and all of them; `None` once the store is gone.
    pub(super) fn all(self) -> Option<(usize, Arc<Nodes>)> {
        Some((self.node, self.nodes.upgrade()?))
    }
}

impl Keys {
    pub(super) fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            member: None,
        }
    }

    /// The same on a node of a cluster. There all keys of a lock must be in one slot, whatever its
    /// name, so braces in it are percent-encoded.
    pub(super) fn of(self, member: Member) -> Self {
        Self {
            member: Some(member),
            ..self
        }
    }

    /// The key of a lock, or with a part of a name what its key begins with.
    pub(super) fn key(&self, name: &str) -> String {
        let key = format!("{}{name}", self.prefix);
        match self.member {
            Some(_) => clustered(&key),
            None => key,
        }
    }

    /// The lock that has this key.
    pub(super) fn name(&self, key: &str) -> Option<LockName> {
        let key = match self.member {
            Some(_) => percent_decode_str(key).decode_utf8().ok()?,
            None => Cow::from(key),
        };
        LockName::new(key.strip_prefix(&self.prefix)?).ok()
    }

    /// The KEYS of one request.
    pub(super) fn write(&self, name: &LockName, keys: &mut Texts) {
        if self.member.is_none() {
            // The scripts make the names of those beside it; see prelude.lua.
            return keys.push(format_args!("{}{name}", self.prefix));
        }
        let key = self.key(name.as_str());
        keys.push(&key);
        for what in BESIDE {
            keys.push(format_args!("~tenure:{{{key}}}:{what}"));
        }
        keys.push(self.record(Some(slot(&key))));
    }

    /// Where the record of the server's life is; in a cluster each slot has its own, which moves, is
    /// replicated and is lost together with the locks there.
    pub(super) fn record(&self, slot: Option<u16>) -> String {
        match slot {
            Some(slot) => format!("~tenure:{{{}}}:life:{}", tag(slot), self.prefix),
            None => format!("~tenure:{{{}}}:life", self.prefix),
        }
    }

    /// Which node of a cluster this is.
    pub(super) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// Whether the keys of locks are told from others by how they begin.
    pub(super) fn are_apart(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// The slot of a lock. Only requests of one slot travel in one call.
    pub(super) fn slot(&self, name: &LockName) -> Option<u16> {
        self.member.as_ref()?;
        Some(slot(&self.key(name.as_str())))
    }

    /// Whether a push about this lock is ours to pass on: in a cluster each node tells of those of
    /// all others, too.
    pub(super) fn is_told_here(&self, name: &LockName) -> bool {
        let owner = |member: &Member| member.slots.owner(self.slot(name)?);
        let member = self.member.as_ref();
        member.is_none_or(|member| owner(member) == Some(member.node))
    }
}

/// No braces, so that the whole key is what the slot is of, here and for all beside it.
fn clustered(key: &str) -> String {
    key.replace('%', "%25")
        .replace('{', "%7B")
        .replace('}', "%7D")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Keys {
        let slots = Arc::new(Slots::default());
        slots.learn(slot("tenure:a"), 1);
        Keys::new("tenure:").of(Member {
            slots,
            node: 1,
            nodes: Weak::new(),
        })
    }

    #[test]
    fn in_a_cluster_all_keys_of_any_name_have_one_slot() {
        let keys = member();
        for name in [
            "plain",
            "{a}b",
            "a{b}c",
            "}{",
            "{}",
            "100%",
            "%7B",
            "na\u{ef}ve {x",
        ] {
            let name = LockName::new(name).expect("a name");
            let mut texts = Texts::default();
            keys.write(&name, &mut texts);
            let slots: Vec<_> = texts.iter().map(slot).collect();
            assert_eq!(slots.len(), 7);
            assert!(
                slots.iter().all(|it| Some(*it) == keys.slot(&name)),
                "{name}"
            );
            let key = texts.iter().next().expect("its own");
            assert_eq!(keys.name(key), Some(name));
        }
    }

    #[test]
    fn a_single_server_has_the_name_as_it_is_and_is_told_everything() {
        let keys = Keys::new("tenure:");
        let name = LockName::new("a{b}%").expect("a name");
        assert_eq!(keys.key(name.as_str()), "tenure:a{b}%");
        assert_eq!(keys.name("tenure:a{b}%"), Some(name.clone()));
        assert_eq!((keys.slot(&name), keys.is_told_here(&name)), (None, true));
    }

    #[test]
    fn a_node_is_told_of_its_own_locks_only() {
        let name = |text| LockName::new(text).expect("a name");
        assert!(member().is_told_here(&name("a")));
        assert!(!member().is_told_here(&name("b")));
    }
}
