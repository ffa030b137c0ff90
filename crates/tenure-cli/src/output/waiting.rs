//! The story of a wait: one live line on a terminal, a plain line now and then elsewhere.

use std::io::Write;
use std::time::Duration;

use super::Output;
use super::human;

/// How long a wait is nobody's business on a terminal.
const SILENCE_ON_TERMINAL: Duration = Duration::from_millis(300);
/// The same where there is no terminal.
pub const SILENCE: Duration = Duration::from_secs(2);
/// How often a plain line is repeated.
const REPEAT: Duration = Duration::from_secs(60);

/// How often the live line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What is known about a wait at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitView {
    /// Who holds the lock, in words, and for how long already.
    pub holder: Option<(String, Option<Duration>)>,
    /// How many hold it beside that one.
    pub more_holders: usize,
    /// Until the first hold ends unless it is renewed.
    pub lease_left: Option<Duration>,
    /// Our place in the queue, from 1, and its length.
    pub place: Option<(usize, usize)>,
    /// For how long the store will let nobody in, because it may have forgotten who holds what.
    pub recovering: Option<Recovering>,
    /// For how long the store has been of no use, and why if it said so.
    pub store_trouble: Option<(Duration, Option<String>)>,
}

/// A store that lets nobody in, because it may have forgotten who holds what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovering {
    /// For how long still.
    pub left: Duration,
    /// It does so again and again, and may never be done.
    pub restless: bool,
}

/// Tells the story.
#[derive(Debug)]
pub struct WaitLine {
    output: Output,
    name: String,
    limit: Option<Duration>,
    live: bool,
    drawn: bool,
    next_plain: Duration,
    frame: usize,
}

impl WaitLine {
    /// For a wait for `name` of at most `limit`. The live line needs a terminal and `progress`.
    pub fn new(output: Output, name: &str, limit: Option<Duration>, progress: bool) -> Self {
        let clever = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let live = output.on_terminal() && progress && !output.is_quiet() && clever;
        Self {
            output,
            name: name.into(),
            limit,
            live,
            drawn: false,
            next_plain: SILENCE,
            frame: 0,
        }
    }

    /// How long to wait before the next [`tick`](Self::tick).
    pub fn pause(&self, waited: Duration) -> Duration {
        if self.live {
            TICK
        } else {
            self.next_plain.saturating_sub(waited).max(TICK)
        }
    }

    /// Called now and then with what is known and how long the wait has lasted.
    pub fn tick(&mut self, view: &WaitView, waited: Duration) {
        if self.live {
            if waited >= SILENCE_ON_TERMINAL {
                self.draw(view, waited);
            }
        } else if waited >= self.next_plain {
            self.output.note(&plain(&self.name, view));
            self.next_plain = waited + REPEAT;
        }
    }

    /// Removes the live line, before anything else is said.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
            self.drawn = false;
        }
    }

    fn draw(&mut self, view: &WaitView, waited: Duration) {
        const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        self.frame = (self.frame + 1) % FRAMES.len();
        let columns = columns().saturating_sub(2);
        // On a narrow terminal, what matters least goes first.
        let shorter = WaitView {
            lease_left: None,
            ..view.clone()
        };
        let shortest = WaitView {
            place: None,
            ..shorter.clone()
        };
        let texts =
            [view, &shorter, &shortest].map(|view| live(&self.name, view, waited, self.limit));
        let fitting = texts.iter().find(|text| text.chars().count() <= columns);
        let text = fit(fitting.unwrap_or(&texts[2]), columns);
        let _ = write!(
            std::io::stderr().lock(),
            "\r\x1b[K{} {text}",
            FRAMES[self.frame]
        );
        self.drawn = true;
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn plain(name: &str, view: &WaitView) -> String {
    let mut text = format!("waiting for {name:?}");
    if let Some((who, held)) = &view.holder {
        text += &format!(", held by {who}");
        if view.more_holders > 0 {
            text += &format!(" and {}", human::count(view.more_holders, "other"));
        }
        if let Some(held) = held {
            text += &format!(" for {}", human::duration(*held));
        }
    }
    if let Some(left) = view.recovering {
        text += &format!(", {}", recovering(left));
        text += if left.restless {
            ": it may never open, see tenure doctor"
        } else {
            " (why: tenure doctor)"
        };
    }
    if let Some(trouble) = &view.store_trouble {
        text += &format!(", {}", store_trouble(trouble));
    }
    text
}

fn recovering(recovering: Recovering) -> String {
    let again = if recovering.restless {
        " again and again"
    } else {
        ""
    };
    let left = human::duration(recovering.left);
    format!("store recovering{again}, {left} left")
}

fn live(name: &str, view: &WaitView, waited: Duration, limit: Option<Duration>) -> String {
    let mut parts = Vec::new();
    if let Some(trouble) = &view.store_trouble {
        parts.push(store_trouble(trouble));
    }
    parts.extend(view.recovering.map(recovering));
    if let Some((who, held)) = &view.holder {
        let held = held.map_or_else(String::new, |held| format!(" {}", human::duration(held)));
        let more = match view.more_holders {
            0 => String::new(),
            more => format!(" and {}", human::count(more, "other")),
        };
        parts.push(format!("held by {who}{more}{held}"));
    }
    if let Some(left) = view.lease_left {
        parts.push(format!("lease {} left", human::duration(left)));
    }
    if let Some((place, length)) = view.place {
        parts.push(format!("you are {} of {length}", human::ordinal(place)));
    }
    let stopwatch = human::stopwatch(waited);
    parts.push(match limit {
        Some(limit) => format!("{stopwatch} / {}", human::stopwatch(limit)),
        None => stopwatch,
    });
    format!("{name}  {}   ^C to give up", parts.join(" · "))
}

fn store_trouble((since, reason): &(Duration, Option<String>)) -> String {
    let seconds = since.as_secs();
    match reason {
        None => format!("store not answering ({seconds} s), keeping my place"),
        Some(reason) => format!("store refuses to work ({seconds} s): {reason}"),
    }
}

// A line that wraps cannot be drawn over.
fn fit(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    let mut cut: String = text.chars().take(columns.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn view() -> WaitView {
        WaitView {
            holder: Some(("deploy@web-3 pid 4312".into(), Some(SECOND * 252))),
            more_holders: 0,
            lease_left: Some(SECOND * 22),
            place: Some((2, 3)),
            recovering: None,
            store_trouble: None,
        }
    }

    #[test]
    fn the_live_line_says_who_how_long_and_which_place() {
        assert_eq!(
            live("nightly", &view(), SECOND * 8, Some(SECOND * 600)),
            "nightly  held by deploy@web-3 pid 4312 4m12s · lease 22s left · you are 2nd of 3 · \
             0:08 / 10:00   ^C to give up"
        );
    }

    #[test]
    fn the_plain_line_says_who_and_how_long() {
        assert_eq!(
            plain("nightly", &view()),
            "waiting for \"nightly\", held by deploy@web-3 pid 4312 for 4m12s"
        );
    }

    #[test]
    fn a_silent_store_is_mentioned_first() {
        let view = WaitView {
            store_trouble: Some((SECOND * 3, None)),
            ..WaitView::default()
        };
        let text = live("nightly", &view, SECOND * 8, None);
        assert!(text.starts_with("nightly  store not answering (3 s), keeping my place · 0:08"));
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abcd", 4), "abcd");
    }
}
