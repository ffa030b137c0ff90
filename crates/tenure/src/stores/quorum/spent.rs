//! [`Spent`]: owners who may not ask for votes any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::{Moment, OwnerId, Ttl};

use super::debts::Debt;

/// The owners of whom a member may still take back whatever they have: a vote that one of them got now could go with
/// it, however late. So none of them may ask for another.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<HashMap<OwnerId, Moment>>);

/// Fewer than this are not worth a look at which of them have nothing left to be taken back.
const TIDIED_FROM: usize = 256;

impl Spent {
    pub(super) fn add(&self, debt: &Debt, now: Moment) {
        let mut owners = self.map();
        if owners.len() >= TIDIED_FROM && owners.len().is_power_of_two() {
            owners.retain(|_, until| now < *until);
        }
        // Whoever held it elsewhere asks elsewhere.
        let longest = now.plus(Ttl::DEFAULT.duration());
        let until = if debt.is_unknown { longest } else { debt.until };
        let known = owners.entry(debt.owner).or_insert(until);
        *known = until.max(*known);
    }

    pub(super) fn contains(&self, owner: OwnerId) -> bool {
        self.map().contains_key(&owner)
    }

    fn map(&self) -> MutexGuard<'_, HashMap<OwnerId, Moment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
