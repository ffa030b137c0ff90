//! What goes wrong with locks: one file each. It says what goes wrong and where that comes from, has
//! the naive algorithm, written afresh from its idea, and the story that is played with it and with ours.
//!
//! A story is told once and played twice, with the same faults. What is believed, what the store says and
//! what the resource accepts is written down and judged by `timeline`, not by the story.

mod a01;
mod a02;
mod a03;
mod a04;
mod a05;
mod a06;
mod a07;
mod a08;
mod a09;
mod a10;
mod a11;
mod a12;
mod a13;
mod a14;
mod a15;
mod a16;
mod a17;
mod a18;
mod a19;
mod a20;
mod votes;

use crate::stage::{Played, Stage};
use crate::timeline::Harm;
use crate::worker::naive::Algorithm;

/// One thing that goes wrong.
pub(crate) struct Anomaly {
    /// `A3`.
    pub(crate) id: &'static str,
    /// In one line.
    pub(crate) title: &'static str,
    /// What goes wrong, with which idea.
    pub(crate) wrong: &'static str,
    /// What our lock does instead.
    pub(crate) instead: &'static str,
    /// What must come of the naive one, all of it.
    pub(crate) harms: &'static [Harm],
    /// What may come of ours, too, because no lock can prevent it; the fence makes it harmless.
    pub(crate) unavoidable: &'static [Harm],
    /// What is played.
    pub(crate) story: fn(&mut Stage) -> Played<()>,
    /// The algorithm that goes wrong.
    pub(crate) naive: Algorithm,
}

/// All of them, in order.
pub(crate) static ALL: [&Anomaly; 20] = [
    &a01::ANOMALY,
    &a02::ANOMALY,
    &a03::ANOMALY,
    &a04::ANOMALY,
    &a05::ANOMALY,
    &a06::ANOMALY,
    &a07::ANOMALY,
    &a08::ANOMALY,
    &a09::ANOMALY,
    &a10::ANOMALY,
    &a11::ANOMALY,
    &a12::ANOMALY,
    &a13::ANOMALY,
    &a14::ANOMALY,
    &a15::ANOMALY,
    &a16::ANOMALY,
    &a17::ANOMALY,
    &a18::ANOMALY,
    &a19::ANOMALY,
    &a20::ANOMALY,
];

/// The anomaly with this id, however it is written: `A3`, `a3`, `A03`, `3`.
pub(crate) fn find(id: &str) -> Option<&'static Anomaly> {
    let digits = id.trim_start_matches(['a', 'A']).trim_start_matches('0');
    ALL.into_iter().find(|anomaly| anomaly.id[1..] == *digits)
}
