//! `tenure lab list` and `tenure lab run`: which plays are played, and what is concluded.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::anomalies::{self, Anomaly};
use crate::args::RunArgs;
use crate::program::Program;
use crate::report;
use crate::servers::wait;
use crate::stage::{Stage, Upset};
use crate::timeline::{Event, Harm, judge};
use crate::worker::How;

/// Exit codes: everything as described; something not; the lab itself could not work; not understood.
const AS_DESCRIBED: u8 = 0;
const NOT_AS_DESCRIBED: u8 = 1;
const USAGE: u8 = 64;
const NOT_WRITTEN: u8 = 73;
const INTERRUPTED: u8 = 130;

/// How often a play is played again whose fault took no effect.
const ATTEMPTS: usize = 3;

/// Both plays of one anomaly.
pub(crate) struct Shown {
    pub(crate) anomaly: &'static Anomaly,
    pub(crate) naive: Play,
    pub(crate) ours: Play,
}

/// One play.
pub(crate) struct Play {
    pub(crate) events: Vec<Event>,
    pub(crate) harms: BTreeSet<Harm>,
    /// Why it could not be played to its end.
    pub(crate) upset: Option<Upset>,
}

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

/// Prints one line for each anomaly.
pub(crate) fn list() -> u8 {
    let mut out = anstream::stdout().lock();
    for anomaly in anomalies::ALL {
        // Whoever does not read on, has read enough.
        let _ = writeln!(out, "{:4} {}", anomaly.id, anomaly.title);
    }
    AS_DESCRIBED
}

/// Plays what was asked for, prints it and returns the exit code.
pub(crate) fn execute(args: &RunArgs, program: &Program) -> u8 {
    let chosen = match choose(args) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            anstream::eprintln!(
                "error: there is no anomaly '{unknown}'; `tenure lab list` lists them"
            );
            return USAGE;
        }
    };
    wait::notice_interrupts();
    let shown = play_all(&chosen, args, program);
    if wait::is_interrupted() {
        return INTERRUPTED;
    }
    // Whoever does not read on, has read enough.
    let _ = print(&shown, args.all);
    if let Some(file) = &args.report
        && let Err(error) = std::fs::write(file, report::page(&shown))
    {
        anstream::eprintln!("cannot write {}: {error}", file.display());
        return NOT_WRITTEN;
    }
    let fine = shown.iter().all(Shown::is_as_described);
    if fine { AS_DESCRIBED } else { NOT_AS_DESCRIBED }
}

/// The whole story of each; of all of them only what is concluded, and the story of those that went
/// another way.
fn print(shown: &[Shown], only_lines: bool) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    for shown in shown {
        if only_lines && shown.is_as_described() {
            report::show_line(&mut out, shown)?;
        } else {
            report::show(&mut out, shown)?;
        }
    }
    if shown.len() > 1 {
        let fine = shown.iter().filter(|shown| shown.is_as_described()).count();
        let all = shown.len();
        writeln!(
            out,
            "\n{fine} of {all} as described: the naive lock fails, tenure does not"
        )?;
    }
    Ok(())
}

fn choose(args: &RunArgs) -> Result<Vec<&'static Anomaly>, String> {
    if args.all {
        return Ok(anomalies::ALL.to_vec());
    }
    let find = |id: &String| anomalies::find(id).ok_or_else(|| id.clone());
    args.anomalies.iter().map(find).collect()
}

/// Plays several at a time, since most of a play is waiting.
fn play_all(chosen: &[&'static Anomaly], args: &RunArgs, program: &Program) -> Vec<Shown> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.parallel.clamp(1, chosen.len().max(1)) {
            scope.spawn(|| {
                while let Some(anomaly) = chosen.get(next.fetch_add(1, Ordering::SeqCst))
                    && !wait::is_interrupted()
                {
                    let first = if args.swap { How::Ours } else { How::Naive };
                    let shown = Shown {
                        anomaly,
                        naive: play(anomaly, first, program),
                        ours: play(anomaly, How::Ours, program),
                    };
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push(shown);
                    progress(done.len(), chosen.len());
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = |shown: &Shown| {
        chosen
            .iter()
            .position(|anomaly| anomaly.id == shown.anomaly.id)
    };
    done.sort_by_key(place);
    done
}

/// One line on a terminal that is written again and again, and is gone at the end.
fn progress(done: usize, all: usize) {
    let mut err = std::io::stderr();
    if all > 1 && err.is_terminal() {
        let text = if done < all {
            format!("\r{done} of {all} played")
        } else {
            "\r\x1b[K".to_owned()
        };
        let _ = err.write_all(text.as_bytes());
    }
}

fn play(anomaly: &'static Anomaly, how: How, program: &Program) -> Play {
    let mut play = play_once(anomaly, how, program);
    for _ in 1..ATTEMPTS {
        if !matches!(play.upset, Some(Upset::Inconclusive(_))) || wait::is_interrupted() {
            break;
        }
        play = play_once(anomaly, how, program);
    }
    play
}

fn play_once(anomaly: &'static Anomaly, how: How, program: &Program) -> Play {
    let mut stage = match Stage::new(program, anomaly.id, how) {
        Ok(stage) => stage,
        Err(upset) => {
            return Play {
                events: Vec::new(),
                harms: BTreeSet::new(),
                upset: Some(upset),
            };
        }
    };
    let upset = (anomaly.story)(&mut stage).err();
    stage.end();
    let events = stage.events();
    let harms = judge(&events);
    Play {
        events,
        harms,
        upset,
    }
}

impl Play {
    /// What came of it, in a few words.
    pub(crate) fn summary(&self) -> String {
        match &self.upset {
            Some(Upset::Inconclusive(why)) => return format!("inconclusive: {why}"),
            Some(Upset::Failed(why)) => return format!("failed: {why}"),
            Some(Upset::Broken(why)) => return format!("the lab failed: {why}"),
            None => {}
        }
        let harms: Vec<_> = self.harms.iter().map(ToString::to_string).collect();
        if harms.is_empty() {
            "no harm".to_owned()
        } else {
            harms.join(", ")
        }
    }
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
