//! `tenure ls [PREFIX]`.

use tenure::core::Recovering;

use crate::args::LsArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;
use crate::output::table;
use crate::output::view::{Lock, recovering_sentence};
use crate::session::Session;
use crate::store_choice::StoreChoice;

/// Prints all locks that somebody holds or waits for.
pub async fn execute(args: LsArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let session = Session::open(choice).await?;
    let prefix = args.prefix.as_deref().unwrap_or_default();
    // Asked first: a store that is open then has forgotten nothing that is not listed.
    let recovering = session.recovering(None).await;
    let listing = session.list(prefix).await?;
    let recovering = or_unknown(recovering, &output);
    // A record is held by nobody in particular: it would be taken for a lock that is stuck.
    let records_too = args.all || prefix.starts_with('~');
    let locks: Vec<Lock> = listing
        .locks
        .iter()
        .filter(|(name, _)| records_too || !name.is_reserved())
        .map(|(name, snapshot)| Lock::new(name, snapshot, listing.now).while_recovering(recovering))
        .collect();
    if args.json {
        output.print_json(&locks)?;
    } else if locks.is_empty() {
        let url = &session.choice().url;
        output.say(&match recovering {
            None => format!("no locks held in {url}"),
            Some(_) => format!("no locks known yet in {url}"),
        });
    } else {
        output.print(&table::locks(&locks))?;
    }
    if let Some(recovering) = recovering {
        // Also with -q and --json: an empty list would be taken for an answer.
        output.say(&format!("tenure: {}", recovering_sentence(recovering)));
    }
    Ok(Exit::Success)
}

/// Looking is allowed where nothing can be written, as on a replica, and there it may not be told.
pub(super) fn or_unknown(
    recovering: Result<Option<Recovering>>,
    output: &Output,
) -> Option<Recovering> {
    recovering.unwrap_or_else(|_| {
        output
            .say("tenure: not known whether the store recovers: what is held may not all be shown");
        None
    })
}
