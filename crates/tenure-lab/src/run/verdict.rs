//! [`Verdict`]: what is concluded from both plays of a story. Pure.

use std::fmt;

use super::play::Shown;
use crate::stage::Upset;

/// What is concluded from both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The naive one failed as described, ours did not.
    AsDescribed,
    /// Ours failed, and how.
    OursFailed(String),
    /// The naive one did not fail as described.
    NaiveHeld,
    /// The fault took no effect, or the lab itself failed.
    Inconclusive(String),
}

impl Shown {
    /// Whether the naive one failed as described and ours did not.
    pub(crate) fn is_as_described(&self) -> bool {
        self.verdict() == Verdict::AsDescribed
    }

    /// What is concluded.
    pub(crate) fn verdict(&self) -> Verdict {
        for play in [&self.naive, &self.ours] {
            match &play.upset {
                Some(Upset::Failed(why)) => return Verdict::OursFailed(why.clone()),
                Some(Upset::Inconclusive(why) | Upset::Broken(why)) => {
                    return Verdict::Inconclusive(why.clone());
                }
                None => {}
            }
        }
        let unavoidable = self.anomaly.unavoidable;
        let harm = self
            .ours
            .harms
            .iter()
            .find(|harm| !unavoidable.contains(harm));
        if let Some(harm) = harm {
            return Verdict::OursFailed(harm.to_string());
        }
        let is_shown = |harm| self.naive.harms.contains(harm);
        if !self.anomaly.harms.iter().all(is_shown) {
            return Verdict::NaiveHeld;
        }
        Verdict::AsDescribed
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsDescribed => f.write_str("as described: the naive lock fails, ours does not"),
            Self::OursFailed(why) => write!(f, "OURS FAILED: {why}"),
            Self::NaiveHeld => {
                f.write_str("nothing shown: the naive lock did not fail as described")
            }
            Self::Inconclusive(why) => write!(f, "inconclusive: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomalies;
    use crate::run::Play;
    use crate::timeline::Harm;

    fn play(harms: &[Harm], upset: Option<Upset>) -> Play {
        let harms = harms.iter().copied().collect();
        Play {
            events: Vec::new(),
            harms,
            upset,
        }
    }

    fn verdict(id: &str, naive: Play, ours: Play) -> Verdict {
        let anomaly = anomalies::find(id).expect("it is in the list");
        Shown {
            anomaly,
            naive,
            ours,
        }
        .verdict()
    }

    #[test]
    fn it_is_as_described_only_if_the_naive_one_fails_in_that_way_and_ours_in_none() {
        use Harm::{StaleWrite, Stuck, TwoHolders};
        let of = |naive: &[Harm], ours: &[Harm]| verdict("A3", play(naive, None), play(ours, None));
        assert_eq!(of(&[TwoHolders], &[]), Verdict::AsDescribed);
        assert_eq!(of(&[Stuck], &[]), Verdict::NaiveHeld);
        assert_eq!(of(&[], &[]), Verdict::NaiveHeld);
        for harm in [TwoHolders, StaleWrite, Stuck] {
            assert!(matches!(of(&[TwoHolders], &[harm]), Verdict::OursFailed(_)));
        }
    }

    #[test]
    fn what_no_lock_can_prevent_is_forgiven_only_where_it_says_so() {
        let stale = || play(&[Harm::TwoHolders, Harm::StaleWrite], None);
        let overlap = || play(&[Harm::TwoHolders], None);
        assert_eq!(verdict("A19", stale(), overlap()), Verdict::AsDescribed);
        assert!(matches!(
            verdict("A19", stale(), stale()),
            Verdict::OursFailed(_)
        ));
        assert!(matches!(
            verdict("A20", stale(), overlap()),
            Verdict::OursFailed(_)
        ));
    }

    #[test]
    fn a_play_that_was_not_played_to_its_end_proves_nothing() {
        let naive = || play(&[Harm::TwoHolders], None);
        let cut = |upset| verdict("A3", naive(), play(&[], Some(upset)));
        let why = || "late".to_owned();
        assert!(matches!(
            cut(Upset::Inconclusive(why())),
            Verdict::Inconclusive(_)
        ));
        assert!(matches!(
            cut(Upset::Broken(why())),
            Verdict::Inconclusive(_)
        ));
        assert!(matches!(cut(Upset::Failed(why())), Verdict::OursFailed(_)));
    }
}
