//! The lab as its users see it: a program, its exit codes and what it leaves behind.

mod anomalies;
mod leftovers;
mod world;
