//! The config file: a few lines of TOML. Unknown keys are errors, because a typo must not be silent.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use toml::Spanned;

use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};
use crate::output::secret::{StoreUrl, redact_text};

/// A setting and where it was found.
#[derive(Debug)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    store: Option<Spanned<String>>,
}

/// The store that the first of these files names; files that do not exist are passed over.
///
/// # Errors
/// If a file cannot be read or understood: the message begins with `file:line:column`.
pub fn find_store(paths: &[PathBuf]) -> Result<Option<Found<StoreUrl>>> {
    for path in paths {
        let Some(text) = read(path)? else { continue };
        let document = parse(path, &text)?;
        if let Some(store) = document.store {
            let (line, column) = position(&text, store.span());
            if store.get_ref().trim().is_empty() {
                return Err(wrong(path, (line, column), "store is empty"));
            }
            let value = StoreUrl::new(store.into_inner());
            return Ok(Some(Found {
                value,
                path: path.clone(),
                line,
            }));
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => {
            let what = format!("cannot read {}: {error}", path.display());
            Err(Failure::new(Code::Config, what))
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Document> {
    toml::from_str(text).map_err(|error| {
        let at = position(text, error.span().unwrap_or(0..0));
        let failure = wrong(path, at, &redact_text(error.message()));
        match misspelt(error.message()) {
            Some(key) => failure.help(format!("did you mean '{key}'?")),
            None => failure.help("known keys: store = \"redis://host\""),
        }
    })
}

fn wrong(path: &Path, (line, column): (usize, usize), what: &str) -> Failure {
    let what = what.lines().next().unwrap_or_default();
    Failure::new(
        Code::Config,
        format!("{}:{line}:{column}: {what}", path.display()),
    )
}

// serde says: unknown field `stor`, expected `store`.
fn misspelt(message: &str) -> Option<&'static str> {
    let typed = message.strip_prefix("unknown field `")?.split('`').next()?;
    ["store"]
        .into_iter()
        .find(|known| strsim::damerau_levenshtein(typed, known) <= 2)
}

fn position(text: &str, span: Range<usize>) -> (usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> String {
        let failure = parse(Path::new("tenure.toml"), text).expect_err(text);
        anstream::adapter::strip_str(&failure.to_string()).to_string()
    }

    #[test]
    fn an_error_says_file_line_and_column() {
        assert!(failure("\n\nstore = redis").contains("tenure.toml:3:9:"));
    }

    #[test]
    fn an_unknown_key_gets_a_suggestion() {
        let text = failure("stroe = \"redis://a\"");
        assert!(
            text.contains("tenure.toml:1:1:") && text.contains("did you mean 'store'?"),
            "{text}"
        );
    }

    #[test]
    fn an_error_beside_a_password_does_not_show_it() {
        assert!(!failure("store = \"redis://:hunter22@a\" x").contains("hunter22"));
    }
}
