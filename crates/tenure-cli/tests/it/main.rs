//! The integration tests of the command line, in one binary.
