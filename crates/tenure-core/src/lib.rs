//! The pure heart of tenure: what a lock *is*.
//!
//! **A lock is a pure state machine per name; a store is a way to run it atomically.**
//!
//! Read [`decide`](decide()) first: it takes what a store remembers about one name
//! ([`LockState`]), one [`Action`] and the store's own time, and answers with the next state, an
//! [`Outcome`] for the caller and the grants to push to waiters. It is at once the reference
//! implementation, the memory store, and the oracle that every other store is tested against.
//!
//! Nothing in this crate does IO, reads a clock or draws a random number: time and owners come in
//! as arguments, and `clippy.toml` beside this crate forbids the rest.
//!
//! | to learn about | read |
//! |---|---|
//! | validated words: names, owners, fences, time | `name.rs`, `owner.rs`, `fence.rs`, `time.rs` |
//! | who may hold together with whom | `mode.rs` |
//! | what is remembered, asked, answered | `state.rs`, `request.rs`, `outcome.rs` |
//! | each decision | `decide/`, one file per request |
//! | a server that forgot | `life.rs`, `cause.rs` |
//! | how long a holder may believe | `validity.rs` |
//! | the contract of a store, and its promises | `store.rs`, `guarantees.rs` |

mod cause;
mod decide;
mod error;
mod fence;
mod guarantees;
mod life;
mod mode;
mod name;
mod outcome;
mod owner;
mod party;
mod request;
mod state;
mod store;
mod time;
mod validity;
mod words;

pub use cause::Cause;
pub use decide::{Decision, Everyone, Handover, Liveness, decide, decide_in};
pub use error::{Error, ErrorKind, Retry};
pub use fence::Fence;
pub use guarantees::{Clocks, Guarantees, Holds, Order, Promise, PromiseId};
pub use life::{
    Greeting, Hello, LIVES_KEPT, Life, Phase, Record, Recovering, Recovery, Seen, hello,
};
pub use mode::{Kind, Mode, Permits};
pub use name::LockName;
pub use outcome::{
    Contention, Grant, HolderView, Outcome, Removed, Reply, SHOWN_HOLDERS, Snapshot, WaiterView,
};
pub use owner::{Lease, OwnerId};
pub use party::Party;
pub use request::{
    Acquire, Action, Ballot, Cancel, Convert, ForceRelease, Release, Renew, Request, Terms, Vote,
    Waiting,
};
pub use state::{ForcedRelease, Holder, Inbox, LockState, Waiter};
pub use store::{BoxFuture, Finding, Listener, Listing, Push, PushedGrant, Severity, Shard, Store};
pub use time::{Moment, Timestamp, Ttl};
pub use validity::{PushedValidity, Validity};
pub use words::Spelled;
