//! [`Failures`]: why members did not answer, and what that means for the whole.

use std::collections::BTreeSet;

use tenure_core::{Error, ErrorKind, Retry};

/// The errors of members.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The first that may pass by itself.
    passing: Option<Error>,
    /// The first that does not.
    lasting: Option<Error>,
    /// The members that refuse until somebody changes something.
    refusing: BTreeSet<usize>,
}

impl Failures {
    pub(super) fn note(&mut self, member: usize, error: Error) {
        if error.retry() == Retry::Later {
            self.passing.get_or_insert(error);
        } else {
            self.refusing.insert(member);
            self.lasting.get_or_insert(error);
        }
    }

    /// The error for whoever asked: only so many `answered`, of `members`, and so many are `needed`.
    pub(super) fn too_few(
        &mut self,
        what: &str,
        answered: usize,
        needed: usize,
        members: usize,
    ) -> Error {
        let Self {
            passing,
            mut lasting,
            refusing,
        } = std::mem::take(self);
        let for_good = refusing.len() > members - needed;
        let invalid = |error: &mut Error| error.kind() == ErrorKind::InvalidInput;
        if let Some(error) = lasting.take_if(invalid) {
            // Each of them refuses it, whichever answers.
            return error;
        }
        let message = format!(
            "only {answered} of {members} servers answer, and it takes {needed} to {what} a lock"
        );
        // What no waiting mends, like a wrong password, is said as what it is; but with one that refuses, the others may be
        // enough in a moment.
        let cause = match for_good {
            true => lasting,
            false => passing.or(lasting),
        };
        match cause {
            Some(cause) if for_good || cause.retry() == Retry::Later => {
                Error::new(cause.kind(), message)
                    .retrying(cause.retry())
                    .because(cause)
            }
            Some(cause) => Error::new(ErrorKind::Unavailable, message).because(cause),
            // No error of their own: they were not heard of in time.
            None => Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{message}; the others said nothing for as long as ?node_timeout= allows (set it higher if they are far away)"
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(failures: &[(usize, ErrorKind)], needed: usize) -> (ErrorKind, Retry) {
        let mut noted = Failures::default();
        for (member, kind) in failures {
            noted.note(*member, Error::new(*kind, "as it is"));
        }
        let error = noted.too_few("take", 1, needed, 3);
        (error.kind(), error.retry())
    }

    #[test]
    fn it_is_refused_for_good_only_if_the_others_would_not_be_enough() {
        use ErrorKind::{InvalidInput, Refused, Unauthorized, Unavailable};
        let later = (Unavailable, Retry::Later);
        assert_eq!(said(&[], 2), later);
        assert_eq!(said(&[(0, Unauthorized)], 2), later);
        assert_eq!(said(&[(0, Unauthorized), (0, Unauthorized)], 2), later);
        assert_eq!(said(&[(0, Unauthorized), (1, Unavailable)], 2), later);
        let busy = [(0, Unauthorized), (1, Refused)];
        assert_eq!(said(&busy, 2), (Refused, Retry::Later));
        let never = (Unauthorized, Retry::Never);
        assert_eq!(said(&[(0, Unauthorized), (2, Unauthorized)], 2), never);
        assert_eq!(said(&[(0, Unauthorized)], 3), never, "it takes all");
        assert_eq!(said(&[(0, InvalidInput)], 2), (InvalidInput, Retry::Never));
    }
}
