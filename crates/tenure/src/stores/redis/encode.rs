//! Requests as the KEYS and ARGV of scripts; see the header of each file in `scripts/`.

use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tenure_core::{Action, Inbox, Mode, OwnerId, Party, Request, Waiting};

use super::options::RESERVED;
use super::scripts::ScriptName;

/// Where every walk through a queue begins.
pub(super) const FROM_THE_HEAD: &str = "-inf";

/// Longer than any ttl: keeps `now + alive_for` in what Lua counts exactly.
const LONGEST_WAIT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// A text that stays one word.
const SPECIAL: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The key of a lock, and those beside it, in the order of prelude.lua.
pub(super) fn keys(prefix: &str, name: &str) -> [String; 6] {
    let lock = format!("{prefix}{name}");
    let beside = |what| format!("{RESERVED}{{{lock}}}:{what}");
    let siblings = ["fence", "queue", "alive", "waiters", "forced"].map(beside);
    let [fence, queue, alive, waiters, forced] = siblings;
    [lock, fence, queue, alive, waiters, forced]
}

/// The channel of an inbox.
pub(super) fn channel(prefix: &str, inbox: &Inbox) -> String {
    word(&format!("{prefix}in:{inbox}"))
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
        Action::Inspect => None,
    }
}

/// The arguments after nonce and owner.
pub(super) fn arguments(prefix: &str, request: &Request, cursor: &str) -> Vec<String> {
    match &request.action {
        Action::Acquire(acquire) => {
            let (channel, alive_for) = match &acquire.waiting {
                Waiting::No => (String::new(), Duration::ZERO),
                Waiting::Queue { inbox, alive_for } => (channel(prefix, inbox), *alive_for),
            };
            let limit = acquire.not_after;
            vec![
                mode(acquire.mode),
                acquire.ttl.as_millis().to_string(),
                channel,
                alive_for.min(LONGEST_WAIT).as_micros().to_string(),
                limit.map_or(String::new(), |limit| limit.as_micros().to_string()),
                party(&acquire.party),
                cursor.to_owned(),
                (acquire.ttl.as_millis() + 1).to_string(),
            ]
        }
        Action::Renew(renew) => vec![
            renew.fence.to_string(),
            renew.ttl.as_millis().to_string(),
            u8::from(renew.detach).to_string(),
        ],
        Action::Convert(convert) => vec![convert.fence.to_string()],
        Action::Release(release) => vec![release.fence.to_string()],
        Action::ForceRelease(release) => vec![
            release.fence.to_string(),
            party(&release.by),
            word(&release.reason),
        ],
        Action::Cancel(_) | Action::Inspect => Vec::new(),
    }
}

/// Percent-encodes a text so that it is one word, never empty and never a lone `-`.
pub(super) fn word(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        "-" => "%2D".to_owned(),
        text => utf8_percent_encode(text, SPECIAL).to_string(),
    }
}

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "x".to_owned(),
        Mode::Shared => "s".to_owned(),
        Mode::Permits(permits) => format!("p{}/{}", permits.count(), permits.capacity()),
    }
}

fn party(party: &Party) -> String {
    let [host, who, label] = [party.host(), party.who(), party.label()].map(word);
    format!("{} {host} {who} {label}", party.pid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_beside_a_lock_cannot_be_the_key_of_a_lock() {
        let [lock, siblings @ ..] = keys("tenure:", "nightly");
        assert_eq!(lock, "tenure:nightly");
        assert_eq!(siblings[0], "~tenure:{tenure:nightly}:fence");
        assert!(siblings.iter().all(|key| key.starts_with(RESERVED)));
    }

    #[test]
    fn a_text_is_always_one_word() {
        for text in ["", "-", "a b", "100%", "naïve", "tab\t"] {
            let encoded = word(text);
            assert!(
                encoded.is_ascii() && !encoded.contains([' ', '\t']),
                "{encoded}"
            );
            assert_eq!(super::super::decode::text(&encoded), text);
        }
    }
}
