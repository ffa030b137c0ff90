//! The one table of error codes: number, exit code, meaning. A code never changes its meaning.

use crate::exit::Exit;

/// What went wrong, for people who look it up and programs that branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The store cannot be reached.
    Unreachable,
    /// The store did not answer in time.
    NoAnswer,
    /// The store refused our user or password.
    AccessRefused,
    /// The store answered, but not as it should, or cannot do what was asked.
    StoreTrouble,
    /// The store URL cannot be understood.
    StoreUrl,
    /// The wait was over before the store had answered: not known to be busy, nor to be out of reach.
    WaitOver,
    /// A config file is wrong.
    Config,
    /// An option, name or combination of options does not make sense.
    Usage,
    /// A parent process already holds this lock: waiting would be for ever.
    Nested,
    /// The lock is held by somebody else.
    Busy,
    /// The lease is not ours any more.
    Lost,
    /// The name is in use as another kind of lock, or with another capacity.
    OtherKind,
    /// The lease given on the command line is no holder's (any more).
    NoSuchLease,
    /// It was run in this period before.
    Counted,
    /// The store may have forgotten who holds what: not known to be busy, nor to be free.
    Recovering,
    /// Several asked at once, and none got it: not known to be busy.
    Raced,
    /// There is no such command.
    CommandNotFound,
    /// The command cannot be executed.
    CommandNotExecutable,
    /// `--hold-at-most` ended the command.
    HeldTooLong,
    /// The operating system refused something that tenure needs.
    System,
    /// A bug in tenure.
    Bug,
}

impl Code {
    /// All of them, by number.
    pub const ALL: [Self; 21] = [
        Self::Unreachable,
        Self::NoAnswer,
        Self::AccessRefused,
        Self::StoreTrouble,
        Self::StoreUrl,
        Self::WaitOver,
        Self::Config,
        Self::Usage,
        Self::Nested,
        Self::Busy,
        Self::Lost,
        Self::OtherKind,
        Self::NoSuchLease,
        Self::Counted,
        Self::Recovering,
        Self::Raced,
        Self::CommandNotFound,
        Self::CommandNotExecutable,
        Self::HeldTooLong,
        Self::System,
        Self::Bug,
    ];

    /// The code as it is printed and written to JSON.
    pub fn text(self) -> &'static str {
        self.row().0
    }

    /// The exit code that belongs to it.
    pub fn exit(self) -> Exit {
        self.row().1
    }

    /// The word for it in `--json` events.
    pub fn outcome(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (&'static str, Exit, &'static str) {
        match self {
            Self::Unreachable => ("T0101", Exit::StoreUnavailable, "store_unreachable"),
            Self::NoAnswer => ("T0102", Exit::StoreUnavailable, "store_silent"),
            Self::AccessRefused => ("T0103", Exit::AccessRefused, "access_refused"),
            Self::StoreTrouble => ("T0104", Exit::StoreUnavailable, "store_trouble"),
            Self::StoreUrl => ("T0105", Exit::Usage, "bad_store_url"),
            Self::WaitOver => ("T0106", Exit::StoreUnavailable, "wait_over"),
            Self::Config => ("T0201", Exit::Config, "bad_config"),
            Self::Usage => ("T0202", Exit::Usage, "usage"),
            Self::Nested => ("T0203", Exit::Usage, "nested"),
            Self::Busy => ("T0302", Exit::Busy, "busy"),
            Self::Lost => ("T0303", Exit::Lost, "lost"),
            Self::OtherKind => ("T0304", Exit::Usage, "other_kind"),
            Self::NoSuchLease => ("T0305", Exit::Lost, "no_such_lease"),
            Self::Counted => ("T0306", Exit::Busy, "counted"),
            Self::Recovering => ("T0307", Exit::Busy, "recovering"),
            Self::Raced => ("T0308", Exit::Busy, "raced"),
            Self::CommandNotFound => ("T0401", Exit::NotFound, "not_found"),
            Self::CommandNotExecutable => ("T0402", Exit::NotExecutable, "not_executable"),
            Self::HeldTooLong => ("T0403", Exit::HeldTooLong, "hold_at_most"),
            Self::System => ("T0501", Exit::Bug, "system"),
            Self::Bug => ("T0502", Exit::Bug, "bug"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_outcomes_are_unique_and_in_order() {
        let texts: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
        assert!(texts.is_sorted_by(|one, next| one < next), "{texts:?}");
        let mut outcomes: Vec<&str> = Code::ALL.iter().map(|code| code.outcome()).collect();
        outcomes.sort_unstable();
        assert!(
            outcomes.is_sorted_by(|one, next| one < next),
            "{outcomes:?}"
        );
    }

    #[test]
    fn the_guide_names_every_outcome() {
        let guide = include_str!("../../../../docs/command-line.md");
        // What only `force-release` says is no outcome of a run.
        for code in Code::ALL
            .into_iter()
            .filter(|code| *code != Code::NoSuchLease)
        {
            let outcome = code.outcome();
            assert!(
                guide.contains(&format!("`{outcome}`")),
                "{outcome} is missing"
            );
        }
    }
}
