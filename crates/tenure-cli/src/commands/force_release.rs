//! `tenure force-release NAME --lease ID --reason TEXT`.

use std::io::{self, BufRead, IsTerminal};

use tenure::core::{HolderView, Lease, LockName, Snapshot, Timestamp};

use crate::args::ForceReleaseArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::human;
use crate::output::view::{holder_sentence, who};
use crate::session::Session;
use crate::settings::lock_name;
use crate::store_choice::StoreChoice;

/// The shortest beginning of a lease id that is accepted.
const SHORTEST_ID: usize = 4;

/// Takes a lock away from the holder that was named, and from no other.
pub async fn execute(args: ForceReleaseArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let name = lock_name(&args.name)?;
    if args.reason.trim().is_empty() {
        return Err(Failure::new(
            Code::Usage,
            "--reason is empty: the old holder will read it",
        ));
    }
    let session = Session::open(choice).await?;
    let (now, snapshot) = session.inspect(&name).await?;
    let (holder, lease) = choose(&name, &snapshot, &args.lease, now)?;
    if !args.yes && io::stdin().is_terminal() && output.on_terminal() {
        let sentence = sentence(&name, holder, now);
        output.say(&format!("{:?} is held by {sentence}", name.as_str()));
        if !name.is_reserved() {
            output
                .say("The old holder is not stopped by this: two may believe they hold the lock.");
        }
        confirm(&name, output)?;
    }
    session.force_release(&name, lease, &args.reason).await?;
    output.note(&done(&name, holder));
    Ok(Exit::Success)
}

/// A record of a run outlives it on purpose: nothing about its process is remarkable.
fn sentence(name: &LockName, holder: &HolderView, now: Timestamp) -> String {
    match (name.is_reserved(), holder.expiry) {
        (true, Some(expiry)) => {
            let left = human::duration(expiry.since(now));
            format!("a record: {}, for another {left}", who(holder))
        }
        _ => holder_sentence(holder, now),
    }
}

fn done(name: &LockName, holder: &HolderView) -> String {
    let (text, who) = (name.as_str(), who(holder));
    match text.strip_prefix("~once:") {
        Some(run) => format!("this run of {run:?} counts no more: {who}"),
        None => format!(
            "took {text:?} away from {who}; it is not stopped by this, and its writes are refused only where \
             the fence is checked"
        ),
    }
}

fn choose<'a>(
    name: &LockName,
    snapshot: &'a Snapshot,
    id: &str,
    now: Timestamp,
) -> Result<(&'a HolderView, Lease)> {
    let id = id
        .split('-')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    if id.len() < SHORTEST_ID || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let what = format!("--lease wants at least {SHORTEST_ID} hexadecimal digits");
        return Err(Failure::new(Code::Usage, what).help(format!("tenure show {name}")));
    }
    let named: Vec<(&HolderView, Lease)> = snapshot
        .holders
        .iter()
        .filter_map(|holder| {
            let lease = Lease {
                owner: holder.owner?,
                fence: holder.fence?,
            };
            lease
                .owner
                .to_string()
                .starts_with(&id)
                .then_some((holder, lease))
        })
        .collect();
    match named.as_slice() {
        [one] => Ok(*one),
        [] => Err(no_such_holder(name, snapshot, &id, now)),
        _ => Err(Failure::new(
            Code::Usage,
            format!("{} holders begin with {id}", named.len()),
        )
        .help("give more digits")),
    }
}

fn no_such_holder(lock: &LockName, snapshot: &Snapshot, id: &str, now: Timestamp) -> Failure {
    let name = lock.as_str();
    let mut failure = Failure::new(
        Code::NoSuchLease,
        format!("no holder of {name:?} has the lease id {id}"),
    );
    for holder in &snapshot.holders {
        let id = holder
            .owner
            .map_or_else(|| "foreign".into(), |owner| owner.short());
        failure = failure.fact("held by", format!("{id}  {}", sentence(lock, holder, now)));
    }
    if snapshot.holders.is_empty() {
        failure = failure.fact("held by", "nobody: nothing to release");
    } else if snapshot.holders.iter().all(|holder| holder.owner.is_none()) {
        failure =
            failure.help("tenure cannot release what it does not understand; use its own tool");
    }
    failure
}

fn confirm(name: &LockName, output: Output) -> Result<()> {
    output.say(&format!("Type the name of the lock ({name}) to go on:"));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    if read.is_ok() && line.trim() == name.as_str() {
        return Ok(());
    }
    Err(Failure::new(
        Code::Usage,
        "not confirmed; nothing was changed",
    ))
}
