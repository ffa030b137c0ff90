//! The supervision of a job: with a scripted lease (`driver`), and with the real binary.

mod driver;
mod endings;
mod guard;
mod loss;
mod signals;
mod world;
