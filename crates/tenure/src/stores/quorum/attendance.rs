//! [`Attendance`]: which server speaks for which member in a round. One server has one voice, whatever
//! addresses lead to it. Pure.

use std::sync::Arc;

use tenure_core::{Error, ErrorKind};

use super::member::{Identity, Member};

/// Who has spoken for each member so far.
///
/// That answers of one round are by different servers is all that counting them relies on; who is reached
/// by which address, before and after, does not matter.
#[derive(Debug)]
pub(super) struct Attendance(Vec<Option<Identity>>);

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objection {
    /// This server has spoken for that other member.
    SpokeFor(usize),
    /// Another server has spoken for this member.
    NotTheSame,
}

impl Attendance {
    /// Nobody has spoken yet.
    pub(super) fn new(members: usize) -> Self {
        Self(vec![None; members])
    }

    /// What speaks against counting an answer for `member` that was given `by` this server. One that does
    /// not say who it is is taken at its word.
    pub(super) fn objection(&mut self, member: usize, by: Option<&Identity>) -> Option<Objection> {
        let by = by?;
        match &self.0[member] {
            Some(known) if known == by => return None,
            Some(_) => return Some(Objection::NotTheSame),
            None => {}
        }
        if let Some(other) = self.0.iter().position(|known| known.as_ref() == Some(by)) {
            return Some(Objection::SpokeFor(other));
        }
        self.0[member] = Some(by.clone());
        None
    }
}

impl Objection {
    /// In words, about this one of the members.
    pub(super) fn error(self, kind: ErrorKind, members: &[Arc<Member>], member: usize) -> Error {
        let label = &members[member].label;
        let message = match self {
            Self::SpokeFor(other) => format!(
                "{} and {label} are the same server: one server that is named twice has one voice, not \
                 two. Name each server once",
                members[other].label
            ),
            Self::NotTheSame => {
                format!("{label} leads to another server than a moment ago: ask again")
            }
        };
        Error::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_speaks_for_one_member_and_a_member_is_one_server() {
        let mut attendance = Attendance::new(3);
        let [a, b]: [Identity; 2] = ["a".into(), "b".into()];
        assert_eq!(attendance.objection(0, Some(&a)), None);
        assert_eq!(attendance.objection(0, Some(&a)), None, "once more");
        let again = attendance.objection(2, Some(&a));
        assert_eq!(again, Some(Objection::SpokeFor(0)));
        let other = attendance.objection(0, Some(&b));
        assert_eq!(other, Some(Objection::NotTheSame));
        assert_eq!(attendance.objection(1, Some(&b)), None);
        assert_eq!(attendance.objection(2, None), None, "it does not say");
    }
}
