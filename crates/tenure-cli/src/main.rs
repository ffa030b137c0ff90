//! The command line `tenure`.
fn main() {}
