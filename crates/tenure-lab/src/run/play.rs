//! [`Shown`] and [`Play`]: each story is played with the naive lock and with ours, several at a time.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::anomalies::Anomaly;
use crate::args::RunArgs;
use crate::program::Program;
use crate::servers::wait;
use crate::stage::{Stage, Upset};
use crate::timeline::{Event, Harm, judge};
use crate::worker::How;

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

/// Plays several at a time, since most of a play is waiting.
pub(super) fn play_all(
    chosen: &[&'static Anomaly],
    args: &RunArgs,
    program: &Program,
) -> Vec<Shown> {
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
