//! What a user sees: arguments, messages, exit codes, stores, JSON.

mod busy;
mod config;
mod crowd;
mod doctor;
mod elect;
mod environment;
mod handover;
mod init;
mod inspection;
mod leases;
mod looking;
mod loss;
mod once;
mod redis;
mod running;
mod seq;
mod shapes;
mod terminal;
mod usage;
mod waiting;
pub(crate) mod world;
