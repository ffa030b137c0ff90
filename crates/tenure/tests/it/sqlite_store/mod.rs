//! The SQLite store: among stores of one process, and among real processes.

mod files;
mod one_process;
mod processes;
mod support;
