//! `tenure ls [PREFIX]`.

use crate::args::LsArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;
use crate::output::table;
use crate::output::view::Lock;
use crate::session::Session;
use crate::store_choice::StoreChoice;

/// Prints all locks that somebody holds or waits for.
pub async fn execute(args: LsArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let session = Session::open(choice).await?;
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let listing = session.list(prefix).await?;
    // A record is held by nobody in particular: it would be taken for a lock that is stuck.
    let records_too = args.all || prefix.starts_with('~');
    let locks: Vec<Lock> = listing
        .locks
        .iter()
        .filter(|(name, _)| records_too || !name.is_reserved())
        .map(|(name, snapshot)| Lock::new(name, snapshot, listing.now))
        .collect();
    if args.json {
        output.print_json(&locks)?;
    } else if locks.is_empty() {
        output.say(&format!("no locks held in {}", session.choice().url));
    } else {
        output.print(&table::locks(&locks))?;
    }
    Ok(Exit::Success)
}
