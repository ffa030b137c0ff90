//! The smallest executor: nothing in the suite needs a runtime.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls until it is done. Only for futures that are woken by nobody, such as [`give_way`].
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Lets others go first, once.
pub(crate) async fn give_way() {
    let mut given = false;
    std::future::poll_fn(|_| {
        if given {
            Poll::Ready(())
        } else {
            given = true;
            Poll::Pending
        }
    })
    .await;
}
