//! How a holder is overtaken: stopped in the middle of its work, and let go on when somebody else holds the lock.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use tenure::{Fence, Lease, blocking};

use crate::{Actor, Outcome, Stage, pass_time};

/// What is protected, and how to see that somebody is in the middle of working with it.
#[derive(Debug)]
pub struct Resource<'a> {
    /// Where it is kept.
    pub database: &'a Connection,
    /// Its table of one row, in which whoever looks leaves its fence.
    pub table: &'a str,
    /// What is so there while somebody has looked and not yet written.
    pub in_the_middle: &'a str,
}

impl Stage {
    /// Freezes whichever process is between look and write, and ends its lease by force (so that nobody has to wait
    /// for its end). Answers when somebody else has looked: what that process writes now comes too late. `None` if
    /// nobody is left to be caught.
    ///
    /// # Errors
    /// If store or database cannot be asked, or the whole takes too long.
    pub fn overtake_holder(
        &mut self,
        lock: &str,
        resource: &Resource<'_>,
    ) -> Outcome<Option<&mut Actor>> {
        let name = self.name(lock);
        let tenure = self.client()?;
        while self.actors.iter_mut().any(|actor| !actor.is_gone()) {
            pass_time(Duration::from_millis(1))?;
            if resource.victim()?.is_none() {
                continue;
            }
            // Nobody can write while this lasts, so whoever is in the middle stays there until it is stopped.
            let still =
                Transaction::new_unchecked(resource.database, TransactionBehavior::Immediate)?;
            let Some(fence) = resource.victim()? else {
                continue;
            };
            let Some((index, lease)) = self.holder(&tenure, &name, fence)? else {
                continue;
            };
            self.actors[index].pause();
            still.rollback()?;
            if end(&tenure, &name, lease) && resource.overtaken(fence)? {
                return Ok(Some(&mut self.actors[index]));
            }
            self.actors[index].resume();
        }
        Ok(None)
    }

    /// Which of the processes holds the lock with this fence.
    fn holder(
        &self,
        tenure: &blocking::Tenure,
        name: &str,
        fence: Fence,
    ) -> Outcome<Option<(usize, Lease)>> {
        let (_, seen) = tenure.block_on(tenure.client().inspect(name))?;
        let holder = seen.holders.into_iter().find(|it| it.fence == Some(fence));
        Ok(holder.and_then(|holder| {
            let pid = holder.party.pid();
            let index = self.actors.iter().position(|actor| actor.id() == pid)?;
            let owner = holder.owner?;
            Some((index, Lease { owner, fence }))
        }))
    }
}

impl Resource<'_> {
    fn victim(&self) -> Outcome<Option<Fence>> {
        self.fence(self.in_the_middle)
    }

    /// The fence in the row, if there is one and this is so.
    fn fence(&self, condition: &str) -> Outcome<Option<Fence>> {
        let table = self.table;
        let question = format!("SELECT fence FROM {table} WHERE fence > 0 AND {condition}");
        let fence = self.database.query_row(&question, [], |row| row.get(0));
        Ok(fence.optional()?.map(Fence::from_u64))
    }

    /// Waits until somebody later has looked; not for ever, because whoever was stopped may be in everybody's way.
    fn overtaken(&self, fence: Fence) -> Outcome<bool> {
        for _ in 0..100 {
            if self.fence("true")? > Some(fence) {
                return Ok(true);
            }
            pass_time(Duration::from_millis(5))?;
        }
        Ok(false)
    }
}

/// Ends a lease by force, unless that takes long: then its holder was stopped in the middle of writing to the store,
/// and blocks it for all.
fn end(tenure: &blocking::Tenure, name: &str, lease: Lease) -> bool {
    let client = tenure.client();
    tenure.block_on(async {
        tokio::select! {
            ended = client.force_release(name, lease, "overtaken") => ended.is_ok(),
            () = client.clock().sleep(Duration::from_millis(500)) => false,
        }
    })
}
