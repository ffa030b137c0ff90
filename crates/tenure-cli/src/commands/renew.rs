//! `tenure renew [NAME] --lease LEASE`.

use std::time::Duration;

use serde_json::json;
use tenure::core::Ttl;

use crate::args::RenewArgs;
use crate::args::duration::Wait;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;
use crate::output::view::milliseconds;
use crate::session::Session;
use crate::settings;
use crate::settings::environment::Inherited;
use crate::settings::lease::LeaseSettings;
use crate::store_choice::StoreChoice;

/// Prolongs a lease from now on; never shortens it.
pub async fn execute(args: RenewArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let inherited = Inherited::read();
    let wanted = LeaseSettings::new(&args.lease, &inherited)?;
    wanted.check_store(&choice, &inherited)?;
    let ttl = args.ttl.or(inherited.ttl_ms.map(Duration::from_millis));
    let ttl = ttl.map_or(Ok(Ttl::DEFAULT), settings::ttl)?;
    let session = Session::open_patiently(choice, Wait::Forever, output).await?;
    let left = session.renew(&wanted.name, wanted.lease, ttl).await?;
    if args.json {
        output.print_json(&json!({
            "lease": wanted.lease.to_string(),
            "fence": wanted.lease.fence.to_string(),
            "ttl_ms": ttl.as_millis(),
            "expires_in_ms": milliseconds(left),
        }))?;
    }
    Ok(Exit::Success)
}
