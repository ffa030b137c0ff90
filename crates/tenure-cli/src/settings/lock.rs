//! Which lock, in which way, for whom, and how long to wait: `run` and `acquire` alike.

use std::time::Duration;

use tenure::core::{LockName, Mode, Party};

use crate::args::LockArgs;
use crate::args::duration::Wait;
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
            name: super::lock_name(name)?,
            mode,
            wait,
            party: party(args),
        })
    }
}

fn party(args: &LockArgs) -> Party {
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
