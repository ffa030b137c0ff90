//! Requests as the KEYS and ARGV of scripts; see the header of each file in `scripts/`.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tenure_core::{Action, Ballot, Inbox, Mode, OwnerId, Party, Request, Terms, Waiting};

use super::scripts::ScriptName;

/// Where every walk through a queue begins.
pub(super) const FROM_THE_HEAD: &str = "-inf";

/// Longer than any ttl: keeps `now + alive_for` in what Lua counts exactly.
const LONGEST_WAIT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// A text that stays one word.
const SPECIAL: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// Texts in one buffer, because a call has hundreds of them.
#[derive(Debug, Default)]
pub(super) struct Texts {
    buffer: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(super) fn push(&mut self, text: impl Display) {
        write!(self.buffer, "{text}").expect("a String takes everything");
        self.ends.push(self.buffer.len());
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// All of them together, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.buffer[start..*end])
    }
}

/// The channel of an inbox.
pub(super) fn channel(prefix: &str, inbox: &Inbox) -> String {
    Word(&format!("{prefix}in:{inbox}")).to_string()
}

/// Which script carries out `action`.
pub(super) fn script(action: &Action) -> ScriptName {
    match action {
        Action::Acquire(_) => ScriptName::Acquire,
        Action::Renew(_) => ScriptName::Renew,
        Action::Convert(_) => ScriptName::Convert,
        Action::Release(_) => ScriptName::Release,
        Action::Cancel(_) => ScriptName::Cancel,
        Action::ForceRelease(_) => ScriptName::ForceRelease,
        Action::Vote(_) => ScriptName::Vote,
        Action::Inspect => ScriptName::Inspect,
    }
}

/// Who asks, as the reply echoes it.
pub(super) fn owner(action: &Action) -> Option<OwnerId> {
    match action {
        Action::Acquire(request) => Some(request.owner),
        Action::Renew(request) => Some(request.owner),
        Action::Convert(request) => Some(request.owner),
        Action::Release(request) => Some(request.owner),
        Action::Cancel(request) => Some(request.owner),
        Action::ForceRelease(request) => Some(request.owner),
        Action::Vote(request) => Some(request.owner),
        Action::Inspect => None,
    }
}

/// The arguments after nonce and owner.
pub(super) fn arguments(prefix: &str, request: &Request, cursor: &str, words: &mut Texts) {
    match &request.action {
        Action::Acquire(acquire) => {
            let ttl = acquire.ttl.as_millis();
            words.push(format_args!("{ttl} {}", PartyWords(&acquire.party)));
            words.push(ttl + 1);
            match acquire.not_after {
                Some(limit) => words.push(limit.as_micros()),
                None => words.push(""),
            }
            let mode = ModeWord(acquire.mode);
            match &acquire.waiting {
                Waiting::No => words.push(format_args!("{mode} 0 {cursor} -")),
                Waiting::Queue { inbox, alive_for } => {
                    let alive_for = (*alive_for).min(LONGEST_WAIT).as_micros();
                    let channel = channel(prefix, inbox);
                    words.push(format_args!("{mode} {alive_for} {cursor} {channel}"));
                }
            }
        }
        Action::Renew(renew) => {
            words.push(renew.fence);
            words.push(renew.ttl.as_millis());
            let leaves = u8::from(renew.detach);
            match &renew.terms {
                Some(Terms { mode, party }) => words.push(format_args!(
                    "{leaves} {} {}",
                    ModeWord(*mode),
                    PartyWords(party)
                )),
                None => words.push(format_args!("{leaves} -")),
            }
        }
        Action::Convert(convert) => words.push(convert.fence),
        Action::Release(release) => words.push(release.fence),
        Action::ForceRelease(release) => {
            words.push(release.fence);
            words.push(PartyWords(&release.by));
            words.push(Word(&release.reason));
        }
        Action::Vote(vote) => {
            let (ballot, fence) = match vote.ballot {
                Ballot::New { proposal } => ("new", proposal),
                Ballot::Raise { to } => ("raise", to),
                Ballot::Held { fence } => ("held", fence),
            };
            let ttl = vote.ttl.as_millis();
            words.push(format_args!("{ttl} {}", PartyWords(&vote.party)));
            words.push(ttl + 1);
            match vote.not_after {
                Some(limit) => words.push(limit.as_micros()),
                None => words.push(""),
            }
            words.push(format_args!("{} {ballot} {fence}", ModeWord(vote.mode)));
        }
        Action::Cancel(_) | Action::Inspect => {}
    }
}

/// A text, percent-encoded so that it is one word, never empty and never a lone `-`.
#[derive(Clone, Copy)]
pub(super) struct Word<'a>(pub(super) &'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("-"),
            "-" => f.write_str("%2D"),
            text => utf8_percent_encode(text, SPECIAL).fmt(f),
        }
    }
}

struct ModeWord(Mode);

impl Display for ModeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Mode::Exclusive => f.write_str("x"),
            Mode::Shared => f.write_str("s"),
            Mode::Permits(permits) => write!(f, "p{}/{}", permits.count(), permits.capacity()),
        }
    }
}

struct PartyWords<'a>(&'a Party);

impl Display for PartyWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [host, who, label] = [self.0.host(), self.0.who(), self.0.label()].map(Word);
        write!(f, "{} {host} {who} {label}", self.0.pid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_always_one_word() {
        for text in ["", "-", "a b", "100%", "naïve", "tab\t"] {
            let encoded = Word(text).to_string();
            assert!(
                encoded.is_ascii() && !encoded.contains([' ', '\t']),
                "{encoded}"
            );
            assert_eq!(super::super::decode::text(&encoded), text);
        }
    }
}
