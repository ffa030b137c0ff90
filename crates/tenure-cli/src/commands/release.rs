//! `tenure release [NAME] --lease LEASE`.

use crate::args::ReleaseArgs;
use crate::args::duration::Wait;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;
use crate::session::Session;
use crate::settings::environment::Inherited;
use crate::settings::lease::LeaseSettings;
use crate::store_choice::StoreChoice;

/// Gives a lease back.
pub async fn execute(args: ReleaseArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let inherited = Inherited::read();
    let settings = LeaseSettings::new(&args.lease, &inherited)?;
    settings.check_store(&choice, &inherited)?;
    let session = Session::open_patiently(choice, Wait::Forever, output).await?;
    session.release(&settings.name, settings.lease).await?;
    output.detail(&format!("released {:?}", settings.name.as_str()));
    Ok(Exit::Success)
}
