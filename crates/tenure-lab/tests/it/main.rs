//! The lab as its users see it: a program, its exit codes and what it leaves behind.

mod anomalies;
mod chaos;
mod check;
mod leftovers;
mod world;
