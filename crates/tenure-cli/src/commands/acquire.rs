//! `tenure acquire NAME --ttl DURATION`.

use serde_json::json;
use tenure::clock::SystemClock;

use super::interrupted;
use crate::args::AcquireArgs;
use crate::exit::Exit;
use crate::job::Signals;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::events::Events;
use crate::output::failure::{Failure, Result};
use crate::output::view::milliseconds;
use crate::session::{Session, Tie};
use crate::settings::lock::LockSettings;
use crate::settings::ttl;
use crate::store_choice::StoreChoice;
use crate::taking::{Taken, Taking};

/// Takes a lock and leaves it in the store.
pub async fn execute(args: AcquireArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let lock = LockSettings::new(&args.name, &args.lock)?;
    let ttl = ttl(args.ttl)?;
    let mut signals = Signals::install()
        .map_err(|error| Failure::new(Code::System, format!("cannot catch signals: {error}")))?;
    let asked = SystemClock::read();
    let session = Session::open_patiently(choice, lock.wait, output).await?;
    let taking = Taking {
        session: &session,
        lock: &lock,
        asked,
        ttl,
        tie: Tie::Outlives,
        output,
        progress: !args.no_progress,
        events: &Events::default(),
    };
    let guard = match taking.take(&mut signals).await? {
        Taken::Held(guard) => guard,
        Taken::Interrupted(arrived) => return Ok(interrupted(arrived)),
    };
    let left = guard.remaining();
    let lease = guard.lease();
    let text = if args.json {
        let shown = json!({
            "lease": lease.to_string(),
            "fence": lease.fence.to_string(),
            "ttl_ms": ttl.as_millis(),
            "expires_in_ms": milliseconds(left),
        });
        shown.to_string()
    } else {
        lease.to_string()
    };
    if let Err(failure) = output.hand_over(&text) {
        // Nobody knows the lease, so nobody could release it.
        drop(guard);
        session.settle().await;
        return Err(failure);
    }
    let _ = guard.into_lease();
    Ok(Exit::Success)
}
