//! A file. Nothing is between it and the workers that could be broken.

use std::path::Path;

use super::World;
use crate::chaos::plan::Plan;

pub(super) fn start(plan: &Plan, folder: &Path) -> World {
    let file = folder.join("locks.db");
    World::without_servers(plan, format!("sqlite:{}", file.display()))
}
