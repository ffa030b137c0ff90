//! The supervision of a job: with a scripted lease (`driver`), and with the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod binary;
mod driver;
mod endings;
mod guard;
mod loss;
pub(crate) mod pty;
mod signals;
mod terminal;
mod world;
