//! Keeping passwords out of everything that is shown: store URLs are printed only through here.

use std::fmt;

/// A store URL that may hold a password. Its `Display` and `Debug` never show one.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Wraps what the user wrote, without the line end that a file may have added.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// The URL with its password, for connecting only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is a password in it.
    pub fn has_password(&self) -> bool {
        redact(&self.0) != self.0
    }

    /// The parts of the URL that must not appear in any text, as written and percent-decoded.
    /// Very short ones are left out: blanking every `a` would hide the message, not the password.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        if let Some(span) = password_span(&self.0) {
            secrets.push(self.0[span].to_owned());
        }
        for (start, end) in query_secret_spans(&self.0) {
            secrets.push(self.0[start..end].to_owned());
        }
        let decoded: Vec<String> = secrets.iter().map(|text| percent_decode(text)).collect();
        secrets.extend(decoded);
        secrets.retain(|secret| secret.len() >= 4);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }

    /// A short text that is the same for the same store and says nothing about a password.
    pub fn fingerprint(&self) -> String {
        // FNV-1a: stable across versions, and nothing secret goes in.
        let hash = redact(&self.0)
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// Hides the password of every URL in a text that somebody else wrote, an argument parser say.
pub fn redact_text(text: &str) -> String {
    let word_end = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>');
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(word_end) {
        let word = piece.trim_end_matches(word_end);
        if word.contains("://") {
            shown.push_str(&redact(word));
            shown.push_str(&piece[word.len()..]);
        } else {
            shown.push_str(piece);
        }
    }
    shown
}

fn redact(url: &str) -> String {
    let mut spans: Vec<(usize, usize)> = query_secret_spans(url);
    spans.extend(password_span(url).map(|range| (range.start, range.end)));
    spans.sort_unstable();
    let mut shown = String::with_capacity(url.len());
    let mut from = 0;
    for (start, end) in spans {
        if start < from {
            continue;
        }
        shown.push_str(&url[from..start]);
        shown.push_str("***");
        from = end;
    }
    shown.push_str(&url[from..]);
    shown
}

// Everything between the first colon (or, without one, the start) of the user part and the last
// `@`: a password with a raw `/`, `?` or `@` in it must not escape. Rather too much than too little.
fn password_span(url: &str) -> Option<std::ops::Range<usize>> {
    let (scheme, rest) = url.split_once(':')?;
    if matches!(scheme, "sqlite" | "memory" | "file") {
        return None;
    }
    let start = url.len() - rest.trim_start_matches('/').len();
    let end = start + url[start..].rfind('@')?;
    let start = url[start..end]
        .find(':')
        .map_or(start, |colon| start + colon + 1);
    (start < end).then_some(start..end)
}

fn query_secret_spans(url: &str) -> Vec<(usize, usize)> {
    let Some(query) = url.rfind('?').map(|at| at + 1) else {
        return Vec::new();
    };
    let mut spans = Vec::new();
    let mut at = query;
    for pair in url[query..].split('&') {
        if let Some((key, value)) = pair.split_once('=') {
            let key = key.to_ascii_lowercase();
            if ["pass", "secret", "token", "pwd"]
                .iter()
                .any(|word| key.contains(word))
            {
                spans.push((at + pair.len() - value.len(), at + pair.len()));
            }
        }
        at += pair.len() + 1;
    }
    spans.retain(|(start, end)| start < end);
    spans
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_hidden_and_the_rest_stays() {
        let cases = [
            ("redis://cache:6379/0", "redis://cache:6379/0"),
            (
                "redis://:hunter22@cache:6379/0",
                "redis://:***@cache:6379/0",
            ),
            ("redis://app:hunter22@cache", "redis://app:***@cache"),
            ("redis://hunter22@cache", "redis://***@cache"),
            ("redis://:hun/t?er@22@cache/0", "redis://:***@cache/0"),
            (
                "rediss://cache?password=hunter22&a=b",
                "rediss://cache?password=***&a=b",
            ),
            ("sqlite:/home/a@b/locks.db", "sqlite:/home/a@b/locks.db"),
        ];
        for (url, shown) in cases {
            assert_eq!(StoreUrl::new(url).to_string(), shown);
            assert!(!format!("{:?}", StoreUrl::new(url)).contains("hunter22"));
        }
    }

    #[test]
    fn a_line_end_after_the_url_is_not_part_of_it() {
        assert_eq!(StoreUrl::new("redis://cache\n").expose(), "redis://cache");
    }

    #[test]
    fn a_password_is_noticed() {
        assert!(StoreUrl::new("redis://:hunter22@cache").has_password());
        assert!(!StoreUrl::new("redis://cache").has_password());
    }

    #[test]
    fn an_escaped_password_is_secret_in_both_spellings() {
        let secrets = StoreUrl::new("redis://:hunter%2F22@cache").secrets();
        assert_eq!(secrets, ["hunter%2F22", "hunter/22"]);
    }

    #[test]
    fn the_fingerprint_tells_stores_apart_but_not_passwords() {
        let of = |url: &str| StoreUrl::new(url).fingerprint();
        assert_ne!(of("redis://a"), of("redis://b"));
        assert_eq!(of("redis://:one@a"), of("redis://:two@a"));
    }

    #[test]
    fn urls_inside_a_text_are_redacted() {
        let text = "unexpected argument 'redis://:hunter22@cache' found\n\n  use it well";
        let shown = redact_text(text);
        assert_eq!(
            shown,
            "unexpected argument 'redis://:***@cache' found\n\n  use it well"
        );
    }
}
