//! Random faults from a seed against every shape of store, and a judgement of what happened.
//!
//! `plan.rs` draws everything from the seed beforehand; `world/` starts the store and the network
//! before it; `crew.rs` runs the worker processes (`worker/`); `run.rs` breaks things as planned
//! (`inflict.rs`; `broken.rs` knows what is), and then lets everybody finish; the judge is
//! [`crate::checker`]; `command.rs` says what came of it.

mod broken;
mod command;
mod crew;
mod fault;
mod inflict;
mod plan;
mod progress;
mod resource;
mod run;
mod worker;
mod world;

pub(crate) use command::command;
pub(crate) use worker::worker;

pub use fault::FaultKind;
pub use world::Shape;
