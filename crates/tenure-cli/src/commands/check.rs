//! `tenure check [NAME] [--lease LEASE]`: the exit code is the answer.

use std::time::Duration;

use serde_json::json;

use crate::args::CheckArgs;
use crate::args::duration::Wait;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::human;
use crate::output::view::milliseconds;
use crate::session::Session;
use crate::settings::environment::Inherited;
use crate::settings::lease::LeaseSettings;
use crate::store_choice::StoreChoice;

/// Asks the store; being unable to ask is never "lost".
pub async fn execute(args: CheckArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let inherited = Inherited::read();
    let settings = LeaseSettings::new(&args.lease, &inherited)?;
    settings.check_store(&choice, &inherited)?;
    let session = Session::open_patiently(choice, Wait::Forever, output).await?;
    let left = session.left_of(&settings.name, settings.lease).await?;
    if args.json {
        output.print_json(&json!({
            "held": left.is_some(),
            "lease": settings.lease.to_string(),
            "fence": settings.lease.fence.to_string(),
            "expires_in_ms": left.map(milliseconds),
        }))?;
    }
    let name = settings.name.as_str();
    let Some(left) = left else {
        return Err(Failure::new(
            Code::Lost,
            format!("the lease of {name:?} is lost"),
        ));
    };
    let wanted = args.at_least.unwrap_or(Duration::ZERO);
    if left < wanted {
        let (left, wanted) = (human::duration(left), human::duration(wanted));
        let what = format!("only {left} are left of the lease of {name:?}, not {wanted}");
        return Err(Failure::new(Code::Lost, what));
    }
    Ok(Exit::Success)
}
