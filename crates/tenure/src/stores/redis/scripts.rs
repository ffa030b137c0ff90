//! The Lua scripts: which there are, and how one is called. Each is `prelude.lua` followed by a file
//! of its own in `scripts/`.

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
}

struct Script {
    text: String,
    hash: String,
}

static SCRIPTS: LazyLock<[Script; 8]> = LazyLock::new(|| {
    // In the order of `ScriptName`.
    [
        include_str!("scripts/acquire.lua"),
        include_str!("scripts/renew.lua"),
        include_str!("scripts/convert.lua"),
        include_str!("scripts/release.lua"),
        include_str!("scripts/cancel.lua"),
        include_str!("scripts/force_release.lua"),
        include_str!("scripts/admit.lua"),
        include_str!("scripts/inspect.lua"),
    ]
    .map(|own| {
        let text = format!("{}\n{own}", include_str!("scripts/prelude.lua"));
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Script { text, hash }
    })
});

impl ScriptName {
    /// How many requests one call carries at most: about half a millisecond of the server's time.
    pub(super) const fn batch_limit(self) -> usize {
        match self {
            Self::Renew => 100,
            _ => 64,
        }
    }

    /// A call by hash, which fails with NOSCRIPT if the server does not have the script (any more).
    pub(super) fn by_hash(self, keys: &Texts, arguments: &Texts) -> Cmd {
        Self::call("EVALSHA", &SCRIPTS[self as usize].hash, keys, arguments)
    }

    /// A call that carries the script, and leaves it with the server.
    pub(super) fn in_full(self, keys: &Texts, arguments: &Texts) -> Cmd {
        Self::call("EVAL", &SCRIPTS[self as usize].text, keys, arguments)
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
