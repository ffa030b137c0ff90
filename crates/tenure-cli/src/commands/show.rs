//! `tenure show NAME`.

use tenure::core::{HolderView, LockName, Recovering, Snapshot, Timestamp};

use super::ls::or_unknown;
use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;
use crate::output::human;
use crate::output::view::{Lock, holder_sentence, recovering_sentence, who};
use crate::session::Session;
use crate::settings::lock_name;
use crate::store_choice::StoreChoice;

/// What the name of a record begins with, before that of the lock.
const RECORD: &str = "~once:";

/// Prints all that is known about one lock.
pub async fn execute(args: ShowArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let name = lock_name(&args.name)?;
    let session = Session::open(choice).await?;
    let recovering = session.recovering(Some(&name)).await;
    let (now, snapshot) = session.inspect(&name).await?;
    let recovering = or_unknown(recovering, &output);
    if args.json {
        output.print_json(&Lock::new(&name, &snapshot, now).while_recovering(recovering))?;
    } else {
        let mut text = match name.as_str().strip_prefix(RECORD) {
            Some(job) => describe_record(&name, job, &snapshot, now),
            None => describe(&name, &snapshot, now, recovering),
        };
        if let Some(recovering) = recovering {
            text += &format!("\n  {}", recovering_sentence(recovering));
        }
        // A name that is too long for a record has none.
        if let Ok(record) = LockName::new(format!("{RECORD}{name}")) {
            let (now, record) = session.inspect(&record).await?;
            text.extend(record.holders.iter().map(|run| counted(run, now)));
        }
        output.print(&text)?;
    }
    Ok(Exit::Success)
}

/// The run that keeps others from running it again with `--once-per`.
fn counted(run: &HolderView, now: Timestamp) -> String {
    let left = run.expiry.map(|expiry| human::duration(expiry.since(now)));
    let left = left.unwrap_or_else(|| "ever".into());
    format!(
        "\n  counted   {}, for another {left} (--once-per)",
        who(run)
    )
}

/// A record is kept as a lock is, but nobody holds it: it stands for a run.
fn describe_record(name: &LockName, job: &str, record: &Snapshot, now: Timestamp) -> String {
    let mut text = if record.holders.is_empty() {
        format!("{name}  no run of {job} is counted")
    } else {
        format!("{name}  stands for a run of {job}")
    };
    for run in &record.holders {
        text += &counted(run, now);
        if let (Some(owner), Some(fence)) = (run.owner, run.fence) {
            text += &format!("\n            fence {fence}, lease id {}", owner.short());
        }
    }
    text
}

fn describe(
    name: &LockName,
    snapshot: &Snapshot,
    now: Timestamp,
    recovering: Option<Recovering>,
) -> String {
    let lock = Lock::new(name, snapshot, now);
    let state = match &lock.mode {
        Some(mode) => mode.clone(),
        None if recovering.is_some() => "held or free, not known yet".into(),
        None => "free".into(),
    };
    let mut lines = vec![format!("{name}  {state}")];
    for holder in &snapshot.holders {
        lines.push(format!("  held by   {}", holder_sentence(holder, now)));
        if let (Some(owner), Some(fence)) = (holder.owner, holder.fence) {
            lines.push(format!(
                "            fence {fence}, lease id {}",
                owner.short()
            ));
        }
    }
    for (index, waiter) in snapshot.waiters.iter().enumerate() {
        let label = if index == 0 { "waiting" } else { "" };
        let waited = human::duration(now.since(waiter.since));
        let place = human::ordinal(index + 1);
        lines.push(format!(
            "  {label:<9} {place} {}, for {waited}",
            waiter.party
        ));
    }
    lines.join("\n")
}
