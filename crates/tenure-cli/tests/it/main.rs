//! The integration tests of the command line, in one binary.

#![allow(missing_docs, reason = "tests are read, not linked to")]
#![allow(dead_code, reason = "not every test helper is needed by every module")]

mod job;
mod support;
mod surface;
