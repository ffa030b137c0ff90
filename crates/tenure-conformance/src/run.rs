//! Running cases: side by side, each on its own names, none stopped by the failure of another.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use tenure_core::BoxFuture;

use crate::cases::{Case, cases};
use crate::subject::Subject;

/// Runs every case of the suite that [applies](Case::applies_to) against `subject`, side by side; those
/// that keep it busy for long come last, so that they do not make the others late.
///
/// # Panics
/// If the subject cannot be opened.
pub async fn check(subject: &dyn Subject) -> Report {
    let cases = applicable(subject).await;
    let mut results = Vec::new();
    for heavy in [false, true] {
        let wave = cases.iter().filter(|case| case.is_heavy() == heavy);
        let runs = wave.map(|case| -> BoxFuture<'_, _> {
            Box::pin(async move { (case.to_string(), case.run(subject).await) })
        });
        // A store that takes its time would take more of it for each that asks.
        let at_once = if subject.pace() > 1 { 4 } else { cases.len() };
        results.extend(some(runs.collect(), at_once).await);
    }
    let expected = cases.len();
    Report { expected, results }
}

/// Runs every case of the suite that [applies](Case::applies_to), one after the other, each against a
/// subject of its own: for a store whose clock is turned by hand, where one case would make time pass
/// for the others.
///
/// # Panics
/// If a subject cannot be opened.
pub async fn check_each<S: Subject>(fresh: impl Fn() -> S) -> Report {
    let cases = applicable(&fresh()).await;
    let mut results = Vec::new();
    for case in &cases {
        let subject = fresh();
        results.push((case.to_string(), case.run(&subject).await));
    }
    let expected = cases.len();
    Report { expected, results }
}

/// The cases that this subject must pass.
async fn applicable(subject: &dyn Subject) -> Vec<Case> {
    let store = subject.open().await.expect("a subject can be opened");
    let guarantees = store.guarantees();
    let cases = cases().iter().copied();
    cases.filter(|case| case.applies_to(&guarantees)).collect()
}

/// How each case went.
#[derive(Debug)]
#[must_use]
pub struct Report {
    expected: usize,
    results: Vec<(String, Result<(), String>)>,
}

impl Report {
    /// The cases that passed, by name.
    pub fn passed(&self) -> impl Iterator<Item = &str> {
        let passed = self.results.iter().filter(|(_, result)| result.is_ok());
        passed.map(|(name, _)| name.as_str())
    }

    /// The cases that failed, by name, and why.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.results.iter().filter_map(|(name, result)| {
            let why = result.as_ref().err()?;
            Some((name.as_str(), why.as_str()))
        })
    }

    /// # Panics
    /// With the list of failed cases, unless all cases that apply to the store ran and passed.
    pub fn assert_all_passed(&self) {
        let passed = self.passed().count();
        assert!(passed == self.expected, "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed) = (self.passed().count(), self.failed().count());
        write!(f, "{passed} cases passed, {failed} failed")?;
        for (name, why) in self.failed() {
            write!(f, "\n- {name}: {why}")?;
        }
        Ok(())
    }
}

impl Case {
    /// Runs this case alone. A panic in it is a failure of the case.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub async fn run(&self, subject: &dyn Subject) -> Result<(), String> {
        let world = self.world(subject);
        let mut story = (self.story)(&world);
        poll_fn(|context| {
            // Unwind safe: a case that panicked is never polled again.
            let poll = AssertUnwindSafe(|| story.as_mut().poll(context));
            match catch_unwind(poll) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
                Err(panic) => Poll::Ready(Err(words(panic.as_ref()))),
            }
        })
        .await
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
    text.unwrap_or_else(|| "panicked without words".to_owned())
}

/// Runs all of `futures` side by side; the results are in the same order.
pub(crate) async fn all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let at_once = futures.len();
    some(futures, at_once).await
}

/// Runs all of `futures`, so many `at_once`; the results are in the same order.
async fn some<T>(mut futures: Vec<BoxFuture<'_, T>>, at_once: usize) -> Vec<T> {
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut running = 0;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() && running < at_once {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *result = Some(value),
                    Poll::Pending => running += 1,
                }
            }
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
