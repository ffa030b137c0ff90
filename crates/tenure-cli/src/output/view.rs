//! Locks as they are shown: the JSON shapes of `ls` and `show`, and the words for a holder.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;
use tenure::core::{
    HolderView, Kind, LockName, Mode, Party, Recovering, Snapshot, Timestamp, WaiterView,
};

use super::human;

/// What stands where a holder's label would, if the holder is no client of tenure.
pub const FOREIGN: &str = "foreign";

/// What a label says about a lock that may outlive its process, before the time.
pub const HOLD_AT_LEAST: &str = "hold-at-least=";

/// One lock, as `ls --json` and `show --json` print it. Scripts rely on these names.
#[derive(Debug, Serialize)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// `exclusive`, `shared`, `slots:N`, or null if nobody holds it or waits.
    pub mode: Option<String>,
    /// Who holds it, in grant order.
    pub holders: Vec<Holder>,
    /// Who waits, in order of arrival.
    pub waiters: Vec<Waiter>,
    /// Only while the store recovers from a loss: for how long still. Holders may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovering_ms: Option<u64>,
    /// Only with that: false if it lets nobody in for so long from when somebody first asks for a lock, and not before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_begun: Option<bool>,
}

/// A holder; everything but the label is null where a foreign holder says nothing.
#[derive(Debug, Serialize)]
pub struct Holder {
    /// `user@host`, or what `--owner` said.
    pub owner: Option<String>,
    /// What `--label`, `--meta` and `--hold-at-least` said; `foreign` for a holder that is no client of tenure.
    pub label: String,
    /// The machine.
    pub host: Option<String>,
    /// The process on it.
    pub pid: Option<u32>,
    /// A string, because JSON numbers are not exact beyond 2^53 everywhere.
    pub fence: Option<String>,
    /// For how long.
    pub held_ms: Option<u64>,
    /// Until the lease ends unless it is renewed.
    pub expires_in_ms: Option<u64>,
    /// What `force-release --lease` accepts.
    pub lease: Option<String>,
}

/// A waiter.
#[derive(Debug, Serialize)]
pub struct Waiter {
    /// `user@host`, or what `--owner` said.
    pub owner: String,
    /// What `--label` and `--meta` said.
    pub label: String,
    /// The machine.
    pub host: String,
    /// The process on it.
    pub pid: u32,
    /// For how long.
    pub waiting_ms: u64,
}

impl Lock {
    /// What a store showed at `now`.
    pub fn new(name: &LockName, snapshot: &Snapshot, now: Timestamp) -> Self {
        Self {
            name: name.to_string(),
            mode: mode(snapshot),
            holders: snapshot
                .holders
                .iter()
                .map(|holder| Holder::new(holder, now))
                .collect(),
            waiters: snapshot
                .waiters
                .iter()
                .map(|waiter| Waiter::new(waiter, now))
                .collect(),
            recovering_ms: None,
            recovery_begun: None,
        }
    }

    /// The same, of a store that lets nobody in for so long still.
    #[must_use]
    pub fn while_recovering(self, recovering: Option<Recovering>) -> Self {
        Self {
            recovering_ms: recovering.map(|it| milliseconds(it.duration())),
            recovery_begun: recovering.map(|it| matches!(it, Recovering::Left(_))),
            ..self
        }
    }
}

/// What an empty list is worth then.
pub fn recovering_sentence(recovering: Recovering) -> String {
    let time = human::duration(recovering.duration());
    let state = match recovering {
        Recovering::Left(_) => {
            format!("recovering, {time} left: the store has just started, or lost data")
        }
        Recovering::OnceAsked(_) => format!(
            "the store is new, was restarted or lost data, and nobody has used it since: whoever first asks for a \
             lock waits {time}"
        ),
    };
    format!("{state}, and who holds a lock is not shown before it has renewed it")
}

impl Holder {
    /// A holder as seen at `now`.
    pub fn new(holder: &HolderView, now: Timestamp) -> Self {
        let ours = holder.owner.map(|_| &holder.party);
        Self {
            owner: ours.map(|party| party.who().to_owned()),
            label: ours.map_or_else(|| FOREIGN.into(), |party| party.label().to_owned()),
            host: ours.map(|party| party.host().to_owned()),
            pid: ours.map(Party::pid),
            fence: holder.fence.map(|fence| fence.to_string()),
            held_ms: holder.since.map(|since| milliseconds(now.since(since))),
            expires_in_ms: holder.expiry.map(|expiry| milliseconds(expiry.since(now))),
            lease: holder.owner.map(|owner| owner.short()),
        }
    }
}

impl Waiter {
    fn new(waiter: &WaiterView, now: Timestamp) -> Self {
        let party = &waiter.party;
        Self {
            owner: party.who().to_owned(),
            label: party.label().to_owned(),
            host: party.host().to_owned(),
            pid: party.pid(),
            waiting_ms: milliseconds(now.since(waiter.since)),
        }
    }
}

/// `deploy@web-3 pid 4312, since 03:00:02 (4m12s), lease ends in 22s unless renewed`.
pub fn holder_sentence(holder: &HolderView, now: Timestamp) -> String {
    let mut sentence = who(holder);
    if let Some(since) = holder.since {
        let held = now.since(since);
        sentence += &format!(", since {} ({})", human::since(held), human::duration(held));
    }
    sentence += &match holder.expiry {
        Some(expiry) => {
            format!(
                ", lease ends in {} unless renewed",
                human::duration(expiry.since(now))
            )
        }
        None => ", without an end".into(),
    };
    if has_ended(holder) {
        let pid = holder.party.pid();
        let why = match holder.party.label().contains(HOLD_AT_LEAST) {
            true => "the lock is kept by --hold-at-least",
            false => "a lease of `acquire`, or a crash",
        };
        sentence += &format!("; there is no process {pid} here any more: {why}");
    }
    sentence
}

/// Whether the holder's process was on this machine and is gone. A lease may outlive it on purpose.
fn has_ended(holder: &HolderView) -> bool {
    let (party, here) = (&holder.party, tenure::this_process());
    let on_this_machine = !party.host().is_empty() && party.host() == here.host();
    let pid = i32::try_from(party.pid()).ok().and_then(Pid::from_raw);
    on_this_machine && pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// `deploy@web-3 pid 4312`, with the label before it if there is one.
pub fn who(holder: &HolderView) -> String {
    match holder.owner {
        Some(_) => holder.party.to_string(),
        None => "something foreign (a key that another library or person wrote)".into(),
    }
}

/// Whole milliseconds.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn mode(snapshot: &Snapshot) -> Option<String> {
    if let Some(Kind::Semaphore { capacity }) = snapshot.kind {
        return Some(format!("slots:{capacity}"));
    }
    let first = snapshot.holders.first().map(|holder| holder.mode);
    first
        .or(snapshot.waiters.first().map(|waiter| waiter.mode))
        .map(mode_word)
}

fn mode_word(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "exclusive".into(),
        Mode::Shared => "shared".into(),
        Mode::Permits(permits) => format!("slots:{}", permits.capacity()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::{Fence, OwnerId};

    const NOW: Timestamp = Timestamp::from_micros(100_000_000);

    fn holder() -> HolderView {
        HolderView {
            owner: Some(OwnerId::from_bytes([0x7f; 16])),
            mode: Mode::Exclusive,
            fence: Some(Fence::from_u64(42)),
            since: Some(Timestamp::from_micros(40_000_000)),
            expiry: Some(NOW.plus(Duration::from_secs(22))),
            party: Party::new("deploy@web-3", "", "web-3", 4312),
        }
    }

    #[test]
    fn a_holder_has_exactly_the_promised_keys() {
        let json = serde_json::to_string(&Holder::new(&holder(), NOW)).expect("serializes");
        assert_eq!(
            json,
            r#"{"owner":"deploy@web-3","label":"","host":"web-3","pid":4312,"fence":"42","held_ms":60000,"expires_in_ms":22000,"lease":"7f7f7f7f"}"#
        );
    }

    #[test]
    fn a_foreign_holder_is_labelled_and_otherwise_unknown() {
        let foreign = HolderView {
            owner: None,
            fence: None,
            since: None,
            ..holder()
        };
        let shown = Holder::new(&foreign, NOW);
        assert_eq!(shown.label, FOREIGN);
        assert_eq!((shown.owner, shown.pid, shown.lease), (None, None, None));
        assert_eq!(shown.expires_in_ms, Some(22_000));
    }

    #[test]
    fn a_holder_whose_process_was_here_and_is_gone_is_explained() {
        let here = tenure::this_process();
        // Process ids end far below this.
        let on = |host: &str, pid| HolderView {
            party: Party::new("ci", "", host, pid),
            ..holder()
        };
        let explained =
            |it: &HolderView| holder_sentence(it, NOW).contains("here any more: a lease");
        assert!(explained(&on(here.host(), 999_999_999)));
        assert!(!explained(&on(here.host(), std::process::id())));
        assert!(!explained(&on("elsewhere", 999_999_999)));
    }

    #[test]
    fn a_sentence_about_a_holder_says_who_since_when_and_how_long_still() {
        let sentence = holder_sentence(&holder(), NOW);
        assert!(
            sentence.starts_with("deploy@web-3 pid 4312, since "),
            "{sentence}"
        );
        assert!(
            sentence.ends_with("(1m), lease ends in 22s unless renewed"),
            "{sentence}"
        );
    }
}
