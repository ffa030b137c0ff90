//! [`FanOut`]: the same question to many members at once. Every member is asked before any answer is
//! looked at, and whoever has not answered when nobody waits any more is heard all the same.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tenure_core::{BoxFuture, Moment};

use super::member::Answer;
use crate::clock::Clock;

/// Answers under way, by member.
pub(super) struct FanOut {
    pending: Vec<(usize, BoxFuture<'static, Answer>)>,
    heard: Vec<(usize, Answer)>,
    started: bool,
}

impl FanOut {
    pub(super) fn new() -> Self {
        Self {
            pending: Vec::new(),
            heard: Vec::new(),
            started: false,
        }
    }

    /// Asks one more.
    pub(super) fn ask(&mut self, member: usize, answer: BoxFuture<'static, Answer>) {
        self.pending.push((member, answer));
    }

    /// The next answer; `None` when all have been heard, or at `deadline`.
    ///
    /// # Cancel safety
    /// An answer that was not taken stays.
    pub(super) async fn next(
        &mut self,
        clock: &dyn Clock,
        deadline: Moment,
    ) -> Option<(usize, Answer)> {
        if let Some(answer) = self.now().await {
            return Some(answer);
        }
        let left = deadline.since(clock.now());
        if self.pending.is_empty() || left.is_zero() {
            return None;
        }
        tokio::select! {
            biased;
            answer = poll_fn(|context| self.poll(context)) => answer,
            () = clock.sleep(left) => None,
        }
    }

    /// The next answer, however long it takes; `None` when all have been heard.
    pub(super) async fn finally(&mut self) -> Option<(usize, Answer)> {
        poll_fn(|context| self.poll(context)).await
    }

    /// An answer that has arrived already.
    pub(super) fn arrived(&mut self) -> Option<(usize, Answer)> {
        self.heard.pop()
    }

    /// Whether anybody has still to answer.
    pub(super) fn is_done(&self) -> bool {
        self.pending.is_empty() && self.heard.is_empty()
    }

    /// The members that have not answered.
    pub(super) fn waits_for(&self, member: usize) -> bool {
        self.pending.iter().any(|(asked, _)| *asked == member)
    }

    /// Whether all that have not answered are such.
    pub(super) fn waits_only_for(&self, such: impl Fn(usize) -> bool) -> bool {
        self.pending.iter().all(|(asked, _)| such(*asked))
    }

    /// What can be had without waiting.
    async fn now(&mut self) -> Option<(usize, Answer)> {
        if !self.started {
            // Everybody is asked first: who answers at once must not keep the others waiting.
            self.started = true;
            poll_fn(|context| {
                self.poll_all(context);
                Poll::Ready(())
            })
            .await;
        }
        self.heard.pop()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, Answer)>> {
        if self.heard.is_empty() {
            self.poll_all(context);
        }
        match self.heard.pop() {
            Some(heard) => Poll::Ready(Some(heard)),
            None if self.pending.is_empty() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn poll_all(&mut self, context: &mut Context<'_>) {
        let heard = &mut self.heard;
        self.pending.retain_mut(|(member, answer)| {
            let Poll::Ready(answer) = answer.as_mut().poll(context) else {
                return true;
            };
            heard.push((*member, answer));
            false
        });
    }
}
