//! Distributed locks: many processes on many machines agree who may use a named resource, now.

pub mod clock;
pub mod stores;

pub use tenure_core as core;
