//! The whole client (acquire, gate, hand-over, keeper, guard) against a simulated store and network, in
//! virtual time and from a seed: thousands of courses of events in the time of a few real ones, each
//! of which can be had again.
//!
//! What must not be is in `judge.rs`: two who believe to hold at the same time, or one who does beside
//! somebody whom the store let in; a fence that does not grow; a holder that is not told before
//! somebody else is let in; somebody who is not served once everything works again; anything left at
//! the store when everybody has gone home.
//!
//! A failing seed says how to see it again. `TENURE_TEST_SEEDS=100000` for more of them.

mod cancel;
mod dice;
mod flaws;
mod judge;
mod network;
mod person;
mod profile;
mod quorum;
mod run;
mod seeds;
mod server;
mod teeth;
mod trouble;
mod world;
