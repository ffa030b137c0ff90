//! What the pure core promises: one readable specification per decision, and properties that hold
//! after every step of any trace.

mod acquire;
mod admit;
mod answers;
mod cancel;
mod convert;
mod forgetful;
mod inspect;
mod life;
mod machine;
mod queue_model;
mod recovery;
mod recovery_machine;
mod release;
mod renew;
mod replaced;
mod rules;
mod support;
mod trace;
mod values;
mod vote;
