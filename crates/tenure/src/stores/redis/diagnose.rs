//! Looking at a server as a worried operator would.

use tenure_core::{Error, Finding};

use super::connection::Link;

pub(super) async fn diagnose(_link: &Link) -> Result<Vec<Finding>, Error> {
    Ok(Vec::new())
}
