//! What a user sees: arguments, messages, exit codes, stores, JSON.

mod usage;
pub(crate) mod world;
