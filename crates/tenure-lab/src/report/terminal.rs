//! A play on a terminal: one line per worker, a column per moment.

use std::fmt::Write as _;
use std::io;

use anstyle::{AnsiColor, Style};

use super::picture::{Mark, Picture, Row};
use crate::run::{Play, Shown, Verdict};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();
const STRONG: Style = Style::new().bold();

const LEGEND: &str = "\
█ believes and holds   ▓ believes and does NOT hold   ░ holds at the store only
┄ waits   – told: busy   ? gives up   z paused   † dies
✓ write accepted   ✗ write refused   ¬ did not write";

/// Prints the whole story of both plays.
pub(crate) fn show(out: &mut impl io::Write, shown: &Shown) -> io::Result<()> {
    let width = width();
    let anomaly = shown.anomaly;
    writeln!(
        out,
        "\n{STRONG}{}  {}{STRONG:#}\n",
        anomaly.id, anomaly.title
    )?;
    for line in wrapped(anomaly.wrong, width - 4) {
        writeln!(out, "    {line}")?;
    }
    play(out, "naive", &shown.naive, width)?;
    for line in wrapped(anomaly.instead, width - 4) {
        writeln!(out, "    {line}")?;
    }
    play(out, "tenure", &shown.ours, width)?;
    for line in LEGEND.lines() {
        writeln!(out, "    {FAINT}{line}{FAINT:#}")?;
    }
    writeln!(out)?;
    show_line(out, shown)
}

/// Prints one line with the verdict.
pub(crate) fn show_line(out: &mut impl io::Write, shown: &Shown) -> io::Result<()> {
    let verdict = shown.verdict();
    let (sign, style) = match verdict {
        Verdict::AsDescribed => ("✔", GOOD),
        Verdict::Inconclusive(_) => ("~", CAUTION),
        Verdict::OursFailed(_) | Verdict::NaiveHeld => ("✘", BAD),
    };
    let (id, title) = (shown.anomaly.id, shown.anomaly.title);
    write!(out, "{style}{sign}{style:#} {id:4} {title}")?;
    if verdict == Verdict::AsDescribed {
        return writeln!(out);
    }
    writeln!(out, "\n       {style}{verdict}{style:#}")
}

fn play(out: &mut impl io::Write, title: &str, play: &Play, width: usize) -> io::Result<()> {
    let picture = Picture::of(&play.events);
    let style = if play.harms.is_empty() { GOOD } else { BAD };
    let seconds = seconds(picture.length);
    writeln!(
        out,
        "\n  {STRONG}{title}{STRONG:#}: {style}{}{style:#} {FAINT}({seconds}){FAINT:#}",
        play.summary()
    )?;
    let columns = width.saturating_sub(12).clamp(30, 110);
    for row in &picture.rows {
        writeln!(out, "    {:6} {}", row.name, bar(row, &picture, columns))?;
    }
    writeln!(
        out,
        "    {:6} {CAUTION}{}{CAUTION:#}",
        "",
        numbers(&picture, columns)
    )?;
    for (index, remark) in picture.remarks.iter().enumerate() {
        let number = index + 1;
        let at = self::seconds(remark.at);
        writeln!(
            out,
            "    {CAUTION}{number:>4}{CAUTION:#}  {at:>7}  {}",
            remark.text
        )?;
    }
    writeln!(out)
}

fn bar(row: &Row, picture: &Picture, columns: usize) -> String {
    let mut text = String::new();
    for column in 0..columns {
        let (from, to) = (
            moment(column, columns, picture),
            moment(column + 1, columns, picture),
        );
        let (sign, style) = cell(row, from, to);
        let _ = write!(text, "{style}{sign}{style:#}");
    }
    text
}

fn cell(row: &Row, from: u64, to: u64) -> (char, Style) {
    let mark = row
        .marks
        .iter()
        .rev()
        .find(|(at, mark)| (from..to).contains(at) && !matches!(mark, Mark::Lost));
    if let Some((_, mark)) = mark {
        return match mark {
            Mark::Accepted => ('✓', GOOD),
            Mark::Refused => ('✗', BAD),
            Mark::Declined | Mark::Unwilling => ('¬', CAUTION),
            Mark::Killed => ('†', BAD),
            Mark::Busy => ('–', CAUTION),
            Mark::GaveUp => ('?', BAD),
            Mark::Lost => (' ', FAINT),
        };
    }
    let middle = from.midpoint(to);
    let believes = row.beliefs.iter().any(|hold| hold.span.contains(middle));
    let holds = row.truths.iter().any(|span| span.contains(middle));
    if row.pauses.iter().any(|span| span.contains(middle)) {
        return ('z', if believes && !holds { BAD } else { CAUTION });
    }
    match (believes, holds) {
        (true, true) => ('█', GOOD),
        (true, false) => ('▓', BAD),
        (false, true) => ('░', FAINT),
        (false, false) if row.waits.iter().any(|span| span.contains(middle)) => ('┄', CAUTION),
        (false, false) if row.life.contains(middle) => ('·', FAINT),
        (false, false) => (' ', FAINT),
    }
}

/// The numbers of the remarks below their moments; one that finds no room is left out here.
fn numbers(picture: &Picture, columns: usize) -> String {
    let mut line = String::new();
    for (index, remark) in picture.remarks.iter().enumerate() {
        let column = usize::try_from(remark.at * columns as u64 / picture.length).unwrap_or(0);
        if line.len() <= column {
            let _ = write!(
                line,
                "{:column$}{}",
                "",
                index + 1,
                column = column - line.len()
            );
        }
    }
    line
}

fn moment(column: usize, columns: usize, picture: &Picture) -> u64 {
    picture.length * column as u64 / columns as u64
}

fn seconds(nanos: u64) -> String {
    let millis = nanos / 1_000_000;
    format!("{}.{:02} s", millis / 1000, millis % 1000 / 10)
}

/// The terminal's width, or a usual one.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 {
        100
    } else {
        columns.clamp(50, 130)
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + word.chars().count() >= width {
            lines.push(word.to_owned());
        } else {
            let line = &mut lines[last];
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
