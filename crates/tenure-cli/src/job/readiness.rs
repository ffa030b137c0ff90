//! Waiting for a descriptor of our own in a task.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the runtime.
#[allow(unsafe_code, reason = "the sound constructor asks for a proof")]
pub(super) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, which the
    // `AsyncFd` that owns it from here on does only after it has been deregistered.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}
