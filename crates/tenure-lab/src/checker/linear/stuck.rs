//! Tells where the longest attempt of a search ended.

use std::collections::HashSet;

use tenure::OwnerId;
use tenure::core::Action;

use super::Asking;
use super::search::{Happens, Search, Stuck};

impl Search<'_> {
    /// The step that no order explains, what came from those who were in its way, and what it asked
    /// itself before.
    pub(super) fn stuck(&self) -> Stuck {
        let steps = &self.course.steps;
        let Some(node) = &self.best else {
            let (sentence, evidence) = ("nothing can be explained".to_owned(), Vec::new());
            return Stuck { sentence, evidence };
        };
        let (candidates, _) = self.candidates(node);
        let mut candidates = candidates.iter().filter_map(|next| match next.what {
            Happens::Step(step) => Some(&steps[step]),
            _ => None,
        });
        let stuck = candidates.find(|step| step.said.is_some());
        let (word, said) = stuck.map_or(("", String::new()), |it| {
            let said = it.said.as_ref().map(|(_, said)| said);
            let said = serde_json::to_string(&said).unwrap_or_default();
            (it.action.word(), said)
        });
        let holders = node.memory.state.holders.iter();
        let holders: Vec<String> = holders
            .map(|it| format!("{} {} (fence {})", it.owner.short(), it.mode, it.fence))
            .collect();
        let sentence = format!(
            "no order of the steps explains that {word} was answered {said}: held by {}, {} wait",
            if holders.is_empty() {
                "nobody".to_owned()
            } else {
                holders.join(", ")
            },
            node.memory.state.queue.len()
        );
        let owners: HashSet<_> = node
            .memory
            .state
            .holders
            .iter()
            .map(|it| it.owner)
            .collect();
        let concerned = |asking: &&Asking| {
            owner(&asking.action).is_some_and(|it| {
                owners.contains(&it) || stuck.is_some_and(|stuck| owner(&stuck.action) == Some(it))
            })
        };
        let last = stuck.map_or(u64::MAX, |it| it.answered);
        let before = steps.iter().filter(|it| it.asked <= last).filter(concerned);
        let mut evidence: Vec<usize> = before.flat_map(|it| it.evidence.clone()).collect();
        evidence.sort_unstable();
        let spare = evidence.len().saturating_sub(12);
        Stuck {
            sentence,
            evidence: evidence.split_off(spare),
        }
    }
}

fn owner(action: &Action) -> Option<OwnerId> {
    Some(match action {
        Action::Acquire(it) => it.owner,
        Action::Renew(it) => it.owner,
        Action::Convert(it) => it.owner,
        Action::Release(it) => it.owner,
        Action::Cancel(it) => it.owner,
        Action::ForceRelease(it) => it.owner,
        Action::Vote(_) | Action::Inspect => return None,
    })
}
