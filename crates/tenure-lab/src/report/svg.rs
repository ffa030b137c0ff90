//! A play as an SVG: the same picture as on a terminal, with colours that follow the page.

use std::fmt::Write as _;

use super::html::escaped;
use super::picture::{Mark, Picture, Row, Span};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 46.0;
/// How high one line of numbers is.
const LEVEL: f64 = 20.0;
const AXIS: f64 = 26.0;

/// Draws it. `id` is unique on the page; `title` says what it shows.
pub(super) fn draw(picture: &Picture, id: &str, title: &str) -> String {
    let levels = levels(picture);
    let top = LEVEL * f64::from(levels.iter().max().map_or(0, |level| level + 1)) + 8.0;
    let bottom = top + ROW * picture.rows.len() as f64;
    let height = bottom + AXIS;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n\
         <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n",
        escaped(title),
        escaped(&description(picture))
    );
    let _ = writeln!(
        svg,
        "<defs><pattern id=\"{id}-p\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect class=\"stripe\" width=\"3\" height=\"7\"/></pattern></defs>"
    );
    for span in &picture.overlaps {
        let (x, width) = extent(*span, picture);
        let _ = writeln!(
            svg,
            "<rect class=\"overlap\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{:.0}\"/>",
            bottom - top
        );
    }
    for (index, row) in picture.rows.iter().enumerate() {
        draw_row(&mut svg, row, picture, id, top + ROW * index as f64);
    }
    for (index, (remark, level)) in picture.remarks.iter().zip(levels).enumerate() {
        let class = if remark.is_fault { "fault" } else { "remark" };
        let (x, y) = (
            position(remark.at, picture),
            LEVEL * f64::from(level) + 11.0,
        );
        let _ = writeln!(
            svg,
            "<g class=\"{class}\"><line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.0}\" y2=\"{bottom:.0}\"/>\
             <circle cx=\"{x:.1}\" cy=\"{y:.0}\" r=\"9\"/><text x=\"{x:.1}\" y=\"{:.1}\">{}</text></g>",
            y + 9.0,
            y + 4.0,
            index + 1
        );
    }
    axis(&mut svg, picture, bottom);
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, row: &Row, picture: &Picture, id: &str, y: f64) {
    let middle = y + 20.0;
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
        LEFT - 10.0,
        middle + 5.0,
        escaped(&row.name)
    );
    let (x, width) = extent(row.life, picture);
    let _ = writeln!(
        svg,
        "<line class=\"life\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>",
        x + width
    );
    for span in &row.waits {
        let (x, width) = extent(*span, picture);
        let _ = writeln!(
            svg,
            "<line class=\"wait\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>",
            x + width
        );
    }
    for hold in &row.beliefs {
        let class = if hold.shared {
            "belief shared"
        } else {
            "belief"
        };
        rect(svg, class, hold.span, picture, (y + 9.0, 22.0));
    }
    for span in &row.pauses {
        rect(
            svg,
            &format!("pause\" fill=\"url(#{id}-p)"),
            *span,
            picture,
            (y + 9.0, 22.0),
        );
    }
    for span in &row.truths {
        rect(svg, "truth", *span, picture, (y + 34.0, 5.0));
    }
    for (at, mark) in &row.marks {
        draw_mark(svg, *mark, position(*at, picture), middle);
    }
    for (index, hold) in row.beliefs.iter().enumerate() {
        if let Some(fence) = hold.fence {
            label(svg, row, index, &format!("fence {fence}"), picture, y);
        }
    }
}

/// How wide a label is, with room on both sides, on a narrow screen, too.
const LABEL: f64 = 58.0;
/// Half a mark, with a little room.
const MARK: f64 = 12.0;

/// What stands in a bar: where no mark covers it, else right of it if nothing is there, else above it, small.
fn label(svg: &mut String, row: &Row, index: usize, text: &str, picture: &Picture, y: f64) {
    let hold = &row.beliefs[index];
    let (x, width) = extent(hold.span, picture);
    let marks = row.marks.iter().map(|(at, _)| position(*at, picture));
    let marks: Vec<f64> = marks.collect();
    let is_clear = |from: f64| {
        let covers = |mark: &f64| *mark + MARK > from && *mark - MARK < from + LABEL;
        !marks.iter().any(covers)
    };
    let end = x + width;
    let after_marks = marks.iter().map(|mark| mark + MARK);
    let inside = std::iter::once(x).chain(after_marks);
    let inside = inside
        .filter(|from| *from >= x && from + LABEL <= end && is_clear(*from))
        .min_by(f64::total_cmp);
    let (class, x, y) = match inside {
        Some(from) if hold.shared => ("inside on-shared", from + 6.0, y + 24.0),
        Some(from) => ("inside", from + 6.0, y + 24.0),
        None => {
            let next = row.beliefs.get(index + 1);
            let next = next.map_or(WIDTH - RIGHT, |next| extent(next.span, picture).0);
            let waits = row.waits.iter().chain(&row.pauses);
            let is_free = !waits
                .map(|span| extent(*span, picture))
                .any(|(from, width)| from < end + LABEL && from + width > end + 1.0);
            if end + LABEL <= next && is_clear(end) && is_free {
                ("beside", end + 4.0, y + 24.0)
            } else {
                ("beside", x, y + 7.0)
            }
        }
    };
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
    );
}

fn draw_mark(svg: &mut String, mark: Mark, x: f64, y: f64) {
    let (class, sign) = match mark {
        Mark::Accepted => ("accepted", "✓"),
        Mark::Refused => ("refused", "✗"),
        Mark::Declined | Mark::Unwilling => ("declined", "¬"),
        Mark::Killed => ("killed", "†"),
        Mark::Busy => ("busy", "–"),
        Mark::GaveUp => ("gaveup", "?"),
        Mark::Lost => ("lost", "!"),
    };
    let _ = writeln!(
        svg,
        "<g class=\"mark {class}\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"18\" height=\"18\" rx=\"4\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\">{sign}</text></g>",
        x - 9.0,
        y - 9.0,
        y + 5.0
    );
}

fn axis(svg: &mut String, picture: &Picture, y: f64) {
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y}\" y2=\"{y}\"/>",
        WIDTH - RIGHT
    );
    let seconds = picture.length as f64 / 1e9;
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
    let step = steps
        .into_iter()
        .find(|step| seconds / step <= 8.0)
        .unwrap_or(30.0);
    let mut at = 0.0;
    while at <= seconds {
        let x = position((at * 1e9) as u64, picture);
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.0}\">{at:.1} s</text>",
            y + 17.0
        );
        at += step;
    }
}

fn rect(svg: &mut String, class: &str, span: Span, picture: &Picture, (y, height): (f64, f64)) {
    let (x, width) = extent(span, picture);
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" rx=\"3\"/>"
    );
}

fn extent(span: Span, picture: &Picture) -> (f64, f64) {
    let (from, to) = (position(span.from, picture), position(span.to, picture));
    (from, (to - from).max(1.5))
}

fn position(at: u64, picture: &Picture) -> f64 {
    let share = at.min(picture.length) as f64 / picture.length.max(1) as f64;
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

/// On which line each number is, so that no two touch.
fn levels(picture: &Picture) -> Vec<u32> {
    let mut ends: Vec<f64> = Vec::new();
    let level = |remark: &super::picture::Remark| {
        let x = position(remark.at, picture);
        let free = ends.iter().position(|end| *end <= x);
        let level = free.unwrap_or_else(|| {
            ends.push(0.0);
            ends.len() - 1
        });
        ends[level] = x + 20.0;
        u32::try_from(level).unwrap_or(0)
    };
    picture.remarks.iter().map(level).collect()
}

fn description(picture: &Picture) -> String {
    let said: Vec<_> = picture
        .account
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    said.join("; ")
}
