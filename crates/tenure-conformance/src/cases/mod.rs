//! The cases: one story each, grouped by what they are about.

mod batch;
mod contention;
mod differential;
mod exclusion;
mod expiry;
mod fencing;
mod forced;
mod listing;
mod modes;
mod names;
mod pressure;
mod retries;
mod walk;

use std::fmt;
use std::sync::LazyLock;

use tenure_core::{BoxFuture, Guarantees, Order};

use crate::peer::World;
use crate::subject::Subject;

/// One thing that every store must do. Its [`Display`](fmt::Display) is `group::name`.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    group: &'static str,
    name: &'static str,
    needs: &'static [Need],
    pub(crate) story: Story,
}

/// What a story takes for granted that not every store promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Waiters are served in order of arrival.
    Arrival,
    /// A name can be a semaphore.
    Permits,
    /// A request is one step of one store with one clock, so that of many who ask somebody wins.
    OneStep,
}

pub(crate) type Story = for<'a> fn(&'a World<'a>) -> BoxFuture<'a, ()>;

/// Every case of the suite.
#[must_use]
pub fn cases() -> &'static [Case] {
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let groups = [
            exclusion::CASES,
            expiry::CASES,
            fencing::CASES,
            retries::CASES,
            contention::CASES,
            pressure::CASES,
            modes::CASES,
            batch::CASES,
            listing::CASES,
            forced::CASES,
            names::CASES,
            walk::CASES,
            differential::CASES,
        ];
        groups.concat()
    });
    &ALL
}

impl Case {
    /// What it is about.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// What must be so, with underscores for spaces.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it keeps a store busy for long.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(self.group, "pressure" | "differential")
    }

    /// Whether a store that promises this must do it.
    #[must_use]
    pub fn applies_to(&self, guarantees: &Guarantees) -> bool {
        let queues = guarantees.order == Order::Arrival;
        self.needs.iter().all(|need| match need {
            Need::Arrival | Need::OneStep => queues,
            Need::Permits => guarantees.permits,
        })
    }

    pub(crate) fn world<'a>(&self, subject: &'a dyn Subject) -> World<'a> {
        World::new(subject, self.group)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.group, self.name)
    }
}

/// The list of a group, with what a story needs in brackets. A story that is left out of it is dead
/// code, which the compiler reports.
macro_rules! stories {
    ($group:ident: $($name:ident $([$($need:ident),+])?),* $(,)?) => {
        &[$($crate::cases::Case {
            group: stringify!($group),
            name: stringify!($name),
            needs: &[$($($crate::cases::Need::$need),+)?],
            story: |world| Box::pin($name(world)),
        }),*]
    };
}
use stories;
