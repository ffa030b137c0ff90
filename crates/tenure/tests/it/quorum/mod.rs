//! A lock on several stores: what a client sees when some of them are slow, hang, fail, forget or
//! disagree. In virtual time, so every bound is exact. On real servers: `redlock`.

mod asking;
mod fences;
mod keeping;
mod leaving;
mod missing;
mod modes;
mod racing;
mod recovering;
mod settings;
mod storm;
mod taking_back;
mod told;
mod unanimous;
pub(crate) mod world;
