//! [`Cause`]: why a server has begun another life, for those who have to decide whether it is new.

/// Why a life begins: what speaks for grants that were made before it, and may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing does: the server is new, as far as can be seen. One that has lost everything looks the
    /// same to a newcomer.
    Unknown,
    /// The record is of an earlier start of the server.
    Restarted,
    /// The server was a replica, and its data may have come from another.
    TookOver,
    /// Data was wiped since the server started.
    Wiped,
    /// There is no record, though whoever said hello has used the server before.
    Missed,
    /// Nothing does, because a person says so.
    Vouched,
}

impl Cause {
    const ALL: [(Self, &str); 6] = [
        (Self::Unknown, "unknown"),
        (Self::Restarted, "restarted"),
        (Self::TookOver, "took-over"),
        (Self::Wiped, "wiped"),
        (Self::Missed, "missed"),
        (Self::Vouched, "vouched"),
    ];

    /// One word, to be written down.
    #[must_use]
    pub fn word(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(cause, _)| *cause == self)
            .map_or("", |(_, word)| word)
    }

    /// Read back from where it was written; a word that is not known is taken for the worst.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == word)
            .map_or(Self::Restarted, |(cause, _)| *cause)
    }

    /// Whether something was there before: whoever says that the server is new is wrong.
    #[must_use]
    pub const fn is_evidence(self) -> bool {
        !matches!(self, Self::Unknown | Self::Vouched)
    }
}
