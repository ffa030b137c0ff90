//! What every [`Store`](tenure_core::Store) must do, as one suite that any store can run, also one
//! that is not ours.
//!
//! The contract of a store is one sentence: it answers as if it ran [`decide`](tenure_core::decide())
//! atomically, with its own clock. The suite looks at that in two ways. The **cases**
//! ([`cases`]) are readable stories, grouped by what they are about. The **oracle** ([`oracle`])
//! runs random traces against the store and against `decide` and compares every answer and every
//! push; a disagreement is shrunk to a short trace and printed with its seed. A store of several
//! servers, with clocks of their own, is compared as to who is let in, kept and let go.
//!
//! What it does *not* show: what a store does when its server crashes, hangs or forgets, or when a
//! process is killed. A store tests that itself.
//!
//! To enrol a store, implement [`Subject`] for it and call [`check`] from a test, in whatever
//! runtime the store needs; nothing here depends on one:
//!
//! ```no_run
//! # async fn enrol(my_subject: impl tenure_conformance::Subject) {
//! tenure_conformance::check(&my_subject).await.assert_all_passed();
//! # }
//! ```

mod cases;
mod oracle;
mod peer;
mod random;
mod run;
mod subject;

pub use cases::{Case, cases};
pub use oracle::{Disagreement, oracle};
pub use run::{Report, check, check_each};
pub use subject::Subject;
