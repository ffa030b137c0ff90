//! `tenure release [NAME] --lease LEASE`.

use crate::args::ReleaseArgs;
use crate::args::duration::Wait;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::session::Session;
use crate::settings::environment::Inherited;
use crate::settings::lease::LeaseSettings;
use crate::store_choice::StoreChoice;

/// Gives a lease back.
pub async fn execute(args: ReleaseArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let inherited = Inherited::read();
    if let (None, Some(parent)) = (&args.lease.lease, &inherited.parent_pid) {
        return Err(would_strip_the_parent(parent));
    }
    let settings = LeaseSettings::new(&args.lease, &inherited)?;
    settings.check_store(&choice, &inherited)?;
    let session = Session::open_patiently(choice, Wait::Forever, output).await?;
    session.release(&settings.name, settings.lease).await?;
    output.detail(&format!("released {:?}", settings.name.as_str()));
    Ok(Exit::Success)
}

// The command would go on without its lock until the parent notices.
fn would_strip_the_parent(parent: &str) -> Failure {
    let what = format!("which lease? the one around this is held by `tenure run`, pid {parent}");
    Failure::new(Code::Usage, what)
        .fact("because", "it is given back when its command has ended")
        .help("name the lease that `tenure acquire` printed: --lease LEASE")
}
