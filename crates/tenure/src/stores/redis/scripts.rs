//! The Lua scripts: which there are, and how one is called. Each is made of
//! parts in `scripts/`; prelude.lua says which.

use redis::Cmd;
use tenure_core::Recovery;

use super::encode::Texts;
use super::options::Options;

/// Which script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptName {
    Acquire,
    Renew,
    Convert,
    Release,
    Cancel,
    ForceRelease,
    Admit,
    Inspect,
    Vote,
}

/// All scripts, as one store calls them.
///
/// A server that has just started knows none, and whoever brings one says hello first: so it carries out nothing before
/// somebody has looked at the record of its life. That holds only if nobody brings the scripts of those who keep another
/// record. All texts therefore begin with the record's name, which makes their hashes differ.
pub(super) struct Scripts([Script; 9]);

impl Scripts {
    pub(super) fn of(options: &Options) -> Self {
        let record = match options.caution.recovery {
            Recovery::Off => "nobody says hello".to_owned(),
            _ => options.keys.record(None),
        };
        let head = format!("-- {record} in {}\n", options.database());
        Self(TEXTS.map(|text| Script::new(&head, text)))
    }

    /// A call by hash, which fails with NOSCRIPT if the server does not have the script (any more).
    pub(super) fn by_hash(&self, name: ScriptName, keys: &Texts, arguments: &Texts) -> Cmd {
        call("EVALSHA", &self.0[name as usize].hash, keys, arguments)
    }

    /// A call that carries the script, and leaves it with the server.
    pub(super) fn in_full(&self, name: ScriptName, keys: &Texts, arguments: &Texts) -> Cmd {
        call("EVAL", &self.0[name as usize].text, keys, arguments)
    }
}

struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn new(head: &str, text: &str) -> Self {
        let text = format!("{head}{text}");
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

/// The text of a script, from its parts in `scripts/`.
macro_rules! parts {
    ($($part:literal),+) => {
        concat!($(include_str!(concat!("scripts/", $part, ".lua")), "\n"),+)
    };
}

/// In the order of `ScriptName`. What is quick comes before what it can do without.
const TEXTS: [&str; 9] = [
    parts!(
        "prelude",
        "acquire_quick",
        "texts",
        "waiters",
        "rules",
        "acquire"
    ),
    parts!(
        "prelude",
        "renew_quick",
        "texts",
        "waiters",
        "rules",
        "renew"
    ),
    parts!("prelude", "texts", "waiters", "rules", "convert"),
    parts!(
        "prelude",
        "release_quick",
        "texts",
        "waiters",
        "release_handover",
        "rules",
        "release"
    ),
    parts!("prelude", "texts", "waiters", "rules", "cancel"),
    parts!("prelude", "texts", "waiters", "rules", "force_release"),
    parts!("prelude", "texts", "waiters", "rules", "admit"),
    parts!("prelude", "texts", "waiters", "rules", "inspect"),
    parts!("prelude", "vote_quick", "texts", "waiters", "rules", "vote"),
];

impl ScriptName {
    /// How many requests one call carries at most: about half a millisecond of the server's time.
    pub(super) const fn batch_limit(self) -> usize {
        match self {
            Self::Renew => 128,
            _ => 64,
        }
    }
}

fn call(word: &str, script: &str, keys: &Texts, arguments: &Texts) -> Cmd {
    let count = 3 + keys.count() + arguments.count();
    let bytes = word.len() + script.len() + 20 + keys.bytes() + arguments.bytes();
    let mut command = Cmd::with_capacity(count, bytes);
    command.arg(word).arg(script).arg(keys.count());
    for text in keys.iter().chain(arguments.iter()) {
        command.arg(text);
    }
    command
}
