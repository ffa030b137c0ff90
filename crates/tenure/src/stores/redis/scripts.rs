//! The Lua scripts: which there are, and how one is called. Each is made of
//! parts in `scripts/`; prelude.lua says which.

use std::sync::LazyLock;

use redis::Cmd;

use super::encode::Texts;

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

struct Script {
    text: &'static str,
    hash: String,
}

/// The text of a script, from its parts in `scripts/`.
macro_rules! parts {
    ($($part:literal),+) => {
        concat!($(include_str!(concat!("scripts/", $part, ".lua")), "\n"),+)
    };
}

static SCRIPTS: LazyLock<[Script; 9]> = LazyLock::new(|| {
    // In the order of `ScriptName`. What is quick comes before what it can do without.
    [
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
    ]
    .map(|text| Script {
        text,
        hash: redis::Script::new(text).get_hash().to_owned(),
    })
});

impl ScriptName {
    /// How many requests one call carries at most: about half a millisecond of the server's time.
    pub(super) const fn batch_limit(self) -> usize {
        match self {
            Self::Renew => 128,
            _ => 64,
        }
    }

    /// A call by hash, which fails with NOSCRIPT if the server does not have the script (any more).
    pub(super) fn by_hash(self, keys: &Texts, arguments: &Texts) -> Cmd {
        Self::call("EVALSHA", &SCRIPTS[self as usize].hash, keys, arguments)
    }

    /// A call that carries the script, and leaves it with the server.
    pub(super) fn in_full(self, keys: &Texts, arguments: &Texts) -> Cmd {
        Self::call("EVAL", SCRIPTS[self as usize].text, keys, arguments)
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
}
