//! Running the command of `tenure run` under a lease: start, signals, terminal, end.

/// Turns this process into a guard process if it was started as one; otherwise does nothing.
pub fn become_guard_if_asked() {}
