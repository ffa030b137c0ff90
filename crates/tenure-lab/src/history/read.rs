//! [`History`]: what was written down, in order of time.

use std::fmt;
use std::io::Read;
use std::path::Path;

use super::{Event, Granted, Terms, What};

/// All that was written down in one run, in order of time.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Sorted by time.
    pub events: Vec<Event>,
    /// The last line is only the beginning of one, and was left out: its number.
    pub cut: Option<usize>,
}

/// A history that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    what: String,
    /// There is no file at all, or it may not be read.
    pub is_missing: bool,
}

impl History {
    /// Of these events, in whatever order.
    #[must_use]
    pub fn new(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.at);
        Self { events, cut: None }
    }

    /// Reads a file of one event per line.
    ///
    /// # Errors
    /// [`Unreadable`] that names the file or the line.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let bytes = std::fs::read(path).map_err(|cause| Unreadable {
            what: format!("{}: {cause}", path.display()),
            is_missing: true,
        })?;
        // What is not text is in no line that can be read, and told there.
        String::from_utf8_lossy(&bytes).parse()
    }

    /// Reads one event per line, to the end.
    ///
    /// # Errors
    /// [`Unreadable`] that names the line.
    pub fn read_from(source: &mut impl Read) -> Result<Self, Unreadable> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|cause| Unreadable {
            what: format!("it cannot be read: {cause}"),
            is_missing: true,
        })?;
        String::from_utf8_lossy(&bytes).parse()
    }

    /// What is promised in this run. Absent in a history that somebody else wrote: then only safety is
    /// judged.
    #[must_use]
    pub fn terms(&self) -> Option<&Terms> {
        self.events.iter().find_map(|event| match &event.what {
            What::Run(terms) => Some(terms),
            _ => None,
        })
    }

    /// What is odd about it.
    pub(crate) fn notes(&self) -> Option<String> {
        let line = self.cut?;
        Some(format!(
            "line {line}, the last one, is cut off and was left out"
        ))
    }
}

impl std::str::FromStr for History {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut events: Vec<Event> = Vec::new();
        let mut cut = None;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match event(line) {
                Ok(event) if is_run(&event) && events.iter().any(is_run) => {
                    return Err(Unreadable::at(
                        index,
                        "a second `run`: one history is of one run",
                    ));
                }
                Ok(event) => events.push(event),
                // Whoever was writing it was stopped, or the file was copied too early.
                Err(_) if !line.ends_with('\n') && !events.is_empty() => cut = Some(index + 1),
                Err(cause) => return Err(Unreadable::at(index, in_line(&cause))),
            }
        }
        Ok(Self {
            cut,
            ..Self::new(events)
        })
    }
}

/// Reads one line. Of an `ok` with a fence, all must be as it should: a grant that is misspelt would not
/// be judged, and nobody would know.
fn event(line: &str) -> serde_json::Result<Event> {
    let event: Event = serde_json::from_str(line)?;
    if let What::Ok { grant: None, .. } = event.what {
        let fields: serde_json::Map<_, _> = serde_json::from_str(line)?;
        if ["fence", "owner", "valid_until"]
            .iter()
            .any(|it| fields.contains_key(*it))
        {
            serde_json::from_str::<Granted>(line)?;
        }
    }
    Ok(event)
}

/// What is wrong with a line, and where in it: to the parser each line is the first one.
fn in_line(cause: &serde_json::Error) -> String {
    let text = cause.to_string();
    let own = format!(" at line {} column {}", cause.line(), cause.column());
    match text.strip_suffix(&own) {
        Some(what) if cause.column() > 0 => format!("{what}, at column {}", cause.column()),
        Some(what) => what.to_owned(),
        None => text,
    }
}

fn is_run(event: &Event) -> bool {
    matches!(event.what, What::Run(_))
}

impl Unreadable {
    fn at(index: usize, cause: impl fmt::Display) -> Self {
        Self {
            what: format!("line {}: {cause}", index + 1),
            is_missing: false,
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a history: {}", self.what)
    }
}

impl std::error::Error for Unreadable {}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: &str = r#"{"at":1,"process":0,"task":0,"event":"calm"}"#;

    fn why_not(text: &str) -> String {
        let read: Result<History, _> = text.parse();
        read.map_or_else(|no| no.to_string(), |read| format!("{read:?}"))
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_left_out_and_told() {
        for end in 1..CALM.len() {
            let text = format!("{CALM}\n{}", &CALM[..end]);
            let history: History = text.parse().unwrap();
            assert_eq!((history.events.len(), history.cut), (1, Some(2)), "{text}");
        }
        let whole: History = format!("{CALM}\n{CALM}").parse().unwrap();
        assert_eq!((whole.events.len(), whole.cut), (2, None));
    }

    #[test]
    fn any_other_line_that_is_no_event_is_named() {
        let half = &CALM[..20];
        for text in [
            format!("{CALM}\n{half}\n{CALM}\n"),
            format!("{CALM}\n{half}\n"),
        ] {
            assert!(why_not(&text).contains("line 2: "), "{}", why_not(&text));
        }
        let page = why_not(&format!("{CALM}\n{CALM}\nPage 3\n{CALM}\n"));
        assert_eq!(page, "not a history: line 3: expected value, at column 1");
        assert!(why_not("# A page about locks").contains("line 1: "));
        assert!(
            why_not(half).contains("line 1: "),
            "nothing of it is a history"
        );
    }

    #[test]
    fn a_grant_that_is_misspelt_is_not_taken_for_none() {
        let ok = |rest| format!(r#"{{"at":1,"process":1,"task":0,"event":"ok","call":1{rest}}}"#);
        assert!(why_not(&ok("")).contains("grant: None"));
        assert!(why_not(&ok(r#","fence":"7","valid_until":9"#)).contains("grant: Some"));
        let number = why_not(&ok(r#","fence":7,"valid_until":9"#));
        assert!(number.contains("expected a string"), "{number}");
        assert!(why_not(&ok(r#","fence":"7""#)).contains("missing field `valid_until`"));
    }

    #[test]
    fn a_second_run_in_the_same_file_is_refused() {
        let run = r#"{"at":1,"process":0,"task":0,"event":"run","store":"x","seed":0,"order":"race",
            "one_machine":false,"sees_death":false,"shortens":false,"idle_ms":1,"recovery_ms":1}"#;
        let run = run.replace('\n', "");
        assert!(why_not(&format!("{run}\n{run}\n")).contains("line 2: a second `run`"));
    }
}
