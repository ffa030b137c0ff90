//! [`Line`]: whose data a server has, by its replication id.

use std::sync::Arc;

use super::look::{Facts, is};

/// Whose data a server has: it has another id as soon as it was a replica for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Line {
    pub(super) id: Arc<str>,
    /// Whether it is a replica, or was one.
    pub(super) took_over: bool,
}

impl Line {
    /// Read from `INFO replication`.
    pub(in super::super) fn of(replication: &Facts) -> Option<Self> {
        let id = replication.get("master_replid")?;
        let earlier = replication.get("master_replid2");
        let earlier = earlier.is_some_and(|earlier| earlier.contains(|c| c != '0'));
        Some(Self {
            id: id.as_str().into(),
            took_over: earlier || !is(replication, "role", "master"),
        })
    }

    /// Whether a life that began with this id goes on, as far as this tells.
    pub(in super::super) fn goes_on_from(&self, id: &str) -> bool {
        *self.id == *id || !self.took_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, earlier: &str, role: &str) -> Line {
        let facts = [
            ("master_replid", id),
            ("master_replid2", earlier),
            ("role", role),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Line::of(&facts.into()).expect("it says which")
    }

    #[test]
    fn a_life_does_not_go_on_once_its_server_was_a_replica() {
        assert!(line("a", "0", "master").goes_on_from("a"));
        assert!(
            line("b", "0", "master").goes_on_from("a"),
            "nobody's replica"
        );
        assert!(
            line("a", "z", "master").goes_on_from("a"),
            "it was one before"
        );
        assert!(!line("b", "a", "master").goes_on_from("a"));
        assert!(!line("b", "0", "slave").goes_on_from("a"));
        assert_eq!(Line::of(&Facts::new()), None);
    }
}
