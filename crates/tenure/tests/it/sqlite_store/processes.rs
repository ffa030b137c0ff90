//! Real processes on one file.
