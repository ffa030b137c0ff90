//! The lab: locks are broken here on purpose, with real processes and real servers, and what happened
//! is shown and judged.
//!
//! - `anomalies`: one file for each thing that goes wrong with locks, a naive algorithm and ours under
//!   the same fault, told as a story with a timeline.
//! - `history` and `checker`: what processes write down while they run, and the pure judgement of it.
//! - `chaos`: random faults from a seed against every shape of store.
//! - `servers`: the servers and the network between, started on free ports in temporary folders.
