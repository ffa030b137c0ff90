//! Which lock, in which way, for whom, and how long to wait: the same for all that take one.

use std::time::Duration;

use tenure::core::{LockName, Mode, Party};

use crate::args::duration::Wait;
use crate::args::{LockArgs, PartyArgs};
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};

/// A lock to be taken.
#[derive(Clone, Debug)]
pub struct LockSettings {
    /// Its name.
    pub name: LockName,
    /// In which way.
    pub mode: Mode,
    /// For how long to wait.
    pub wait: Wait,
    /// Who asks.
    pub party: Party,
}

impl LockSettings {
    /// What was typed, checked.
    ///
    /// # Errors
    /// If the name is not allowed.
    pub fn new(name: &str, args: &LockArgs) -> Result<Self> {
        let mode = match args.slots {
            Some(slots) => Mode::permits(1, slots.get())
                .map_err(|error| Failure::new(Code::Usage, error.message()))?,
            None if args.shared => Mode::Shared,
            None => Mode::Exclusive,
        };
        let wait = match args.wait {
            _ if args.no_wait => Wait::AtMost(Duration::ZERO),
            Some(wait) => wait,
            None => Wait::Forever,
        };
        Ok(Self {
            name: super::name_to_take(name)?,
            mode,
            wait,
            party: party(&args.party),
        })
    }

    /// A lock for one at a time, waited for.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn exclusive(name: &str, party: &PartyArgs) -> Result<Self> {
        Ok(Self {
            name: super::name_to_take(name)?,
            mode: Mode::Exclusive,
            wait: Wait::Forever,
            party: self::party(party),
        })
    }

    /// Tells whoever looks what else there is to know.
    #[must_use]
    pub fn remarked(mut self, remark: &str) -> Self {
        let party = &self.party;
        let label = format!("{} {remark}", party.label());
        self.party = Party::new(party.who(), label.trim_start(), party.host(), party.pid());
        self
    }
}

fn party(args: &PartyArgs) -> Party {
    let process = tenure::this_process();
    let who = args.owner.as_deref().unwrap_or(process.who());
    let label: Vec<&str> = args
        .label
        .iter()
        .chain(&args.meta)
        .map(String::as_str)
        .filter(|t| !t.is_empty())
        .collect();
    Party::new(who, &label.join(" "), process.host(), process.pid())
}
