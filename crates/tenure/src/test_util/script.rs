//! [`Rule`] and [`Fault`]: which requests go wrong, and how.

use std::time::Duration;

use tenure_core::Request;

/// How a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store is not reached: nothing happens, and the answer is
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    Fail,
    /// The store refuses for good: nothing happens, and the answer is
    /// [`Forbidden`](crate::ErrorKind::Forbidden).
    Refuse,
    /// The store acts, but its reply is lost: the answer is
    /// [`Unavailable`](crate::ErrorKind::Unavailable).
    LoseReply,
    /// The whole call hangs, as at a stopped server, until
    /// [`resume`](crate::test_util::ScriptedStore::resume): then it is carried out, even if its
    /// caller has given up.
    Hang,
    /// The whole call reaches the store this much later.
    Delay(Duration),
    /// The store acts at once, but the whole call is answered this much later.
    DelayReply(Duration),
    /// What the store knows about the holders of the name is dropped first, as by an administrator
    /// or a server that lost its data.
    Forget,
    /// The call panics: a bug in a store.
    Panic,
}

/// Which requests go wrong.
///
/// ```
/// # use tenure::test_util::{Fault, Rule};
/// let third_renewal_of_x = Rule::on("renew").of("x").after(2).times(1).does(Fault::LoseReply);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a rule does nothing until it is given to a store"]
pub struct Rule {
    word: Option<String>,
    name: Option<String>,
    skip: usize,
    left: usize,
    fault: Fault,
}

impl Rule {
    /// Requests with this word: acquire, renew, convert, release, cancel, force-release or inspect.
    pub fn on(word: &str) -> Self {
        Self {
            word: Some(word.to_owned()),
            ..Self::on_everything()
        }
    }

    /// All requests.
    pub fn on_everything() -> Self {
        Self {
            word: None,
            name: None,
            skip: 0,
            left: usize::MAX,
            fault: Fault::Fail,
        }
    }

    /// Only those for this lock.
    pub fn of(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only from the next but `count` on.
    pub fn after(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Only this often.
    pub fn times(mut self, count: usize) -> Self {
        self.left = count;
        self
    }

    /// What goes wrong; [`Fault::Fail`] if nothing is said.
    pub fn does(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// The fault of `request`, if this rule is about it.
    pub(super) fn strike(&mut self, request: &Request) -> Option<Fault> {
        let about = |wanted: &Option<String>, actual: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == actual)
        };
        if !about(&self.word, request.action.word()) || !about(&self.name, request.name.as_str()) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        Some(self.fault)
    }
}
