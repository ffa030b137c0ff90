//! `tenure renew [NAME] --lease LEASE`.

use std::time::Duration;

use serde_json::json;
use tenure::core::Ttl;

use crate::args::RenewArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::view::milliseconds;
use crate::session::Session;
use crate::settings::environment::Inherited;
use crate::settings::lease::LeaseSettings;
use crate::store_choice::StoreChoice;

/// Prolongs a lease from now on; never shortens it.
pub async fn execute(args: RenewArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let inherited = Inherited::read();
    let settings = LeaseSettings::new(&args.lease, &inherited)?;
    settings.check_store(&choice, &inherited)?;
    let ttl = args.ttl.or(inherited.ttl_ms.map(Duration::from_millis));
    let ttl = ttl.map_or(Ok(Ttl::DEFAULT), Ttl::new);
    let ttl = ttl.map_err(|error| Failure::new(Code::Usage, error.message()))?;
    let session = Session::open(choice).await?;
    let left = session.renew(&settings.name, settings.lease, ttl).await?;
    if args.json {
        output.print_json(&json!({
            "lease": settings.lease.to_string(),
            "fence": settings.lease.fence.to_string(),
            "ttl_ms": ttl.as_millis(),
            "expires_in_ms": milliseconds(left),
        }))?;
    }
    Ok(Exit::Success)
}
