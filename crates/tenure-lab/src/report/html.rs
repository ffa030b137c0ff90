//! One page with everything: no script, nothing from elsewhere, readable without the pictures.

use std::fmt::Write as _;

use super::picture::Picture;
use super::svg;
use crate::run::{Play, Shown, Verdict};

const STYLE: &str = include_str!("style.css");

/// The page.
pub(crate) fn page(shown: &[Shown]) -> String {
    let title = match shown {
        [one] => format!("{}: {}", one.anomaly.id, one.anomaly.title),
        _ => format!("{} ways to break a lock", in_words(shown.len())),
    };
    let fine = shown
        .iter()
        .filter(|shown| shown.verdict() == Verdict::AsDescribed)
        .count();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{0} – tenure lab</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<p class=\"brand\">tenure lab</p>\n<h1>{0}</h1>\n\
         <p class=\"lead\">Each story is told once and played twice on real processes and real Redis servers, under the same faults: \
         with the algorithm that tutorials teach, and with tenure. <strong>{fine} of {1}</strong> went as described: the naive lock fails, \
         tenure does not.</p>\n</header>\n<main>\n",
        escaped(&title),
        shown.len(),
    );
    if shown.len() > 1 {
        table(&mut page, shown);
    }
    legend(&mut page);
    for shown in shown {
        section(&mut page, shown);
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        page,
        "</main>\n<footer><p>Made by <code>tenure lab run</code>, version {version}. Times are from one run on one machine; \
         fences are numbered in their order.</p></footer>\n</body>\n</html>\n"
    );
    page
}

/// Text for a page.
pub(super) fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;")
}

fn table(page: &mut String, shown: &[Shown]) {
    page.push_str(
        "<div class=\"scroll\"><table>\n<caption>What happened</caption>\n<thead><tr><th scope=\"col\">Story</th>\
         <th scope=\"col\">Naive</th><th scope=\"col\">tenure</th></tr></thead>\n<tbody>\n",
    );
    for shown in shown {
        let (id, title) = (shown.anomaly.id, escaped(shown.anomaly.title));
        let (naive, ours) = (result(shown, &shown.naive), result(shown, &shown.ours));
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\"><a href=\"#{id}\"><span class=\"id\">{id}</span> {title}</a></th><td>{naive}</td><td>{ours}</td></tr>"
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn result(shown: &Shown, play: &Play) -> String {
    let is_ours = std::ptr::eq(play, &raw const shown.ours);
    let is_tolerated = is_ours && shown.verdict() == Verdict::AsDescribed;
    let class = match (&play.upset, play.harms.is_empty() || is_tolerated) {
        (Some(_), _) => "unclear",
        (None, true) => "good",
        (None, false) => "bad",
    };
    let text = if is_tolerated && !play.harms.is_empty() {
        "detected and fenced".to_owned()
    } else {
        play.summary()
    };
    format!("<span class=\"{class}\">{}</span>", escaped(&text))
}

fn section(page: &mut String, shown: &Shown) {
    let anomaly = shown.anomaly;
    let id = anomaly.id;
    let _ = write!(
        page,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\"><span class=\"id\">{id}</span> {}</h2>\n<div class=\"plays\">\n",
        escaped(anomaly.title)
    );
    let mut pictures = [&shown.naive, &shown.ours].map(|play| Picture::of(&play.events));
    // One scale, so that the two can be compared by eye.
    let longest = pictures.iter().map(|picture| picture.length).max();
    for picture in &mut pictures {
        picture.length = longest.unwrap_or_default();
    }
    let [naive, ours] = pictures;
    for (name, text, play, picture) in [
        ("naive", anomaly.wrong, &shown.naive, naive),
        ("tenure", anomaly.instead, &shown.ours, ours),
    ] {
        let title = format!(
            "{id} with {}",
            if name == "naive" {
                "a naive lock"
            } else {
                name
            }
        );
        let drawn = svg::draw(&picture, &format!("{id}-{name}"), &title);
        let _ = write!(
            page,
            "<article>\n<h3>{} {}</h3>\n<p>{}</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">{drawn}</div>\n",
            if name == "naive" {
                "The naive lock"
            } else {
                "tenure"
            },
            result(shown, play),
            escaped(text)
        );
        remarks(page, &picture);
        page.push_str("</article>\n");
    }
    page.push_str("</div>\n");
    let verdict = shown.verdict();
    if verdict != Verdict::AsDescribed {
        let _ = writeln!(
            page,
            "<p class=\"bad\">{}</p>",
            escaped(&verdict.to_string())
        );
    }
    page.push_str("</section>\n");
}

fn remarks(page: &mut String, picture: &Picture) {
    page.push_str("<ol>\n");
    for remark in &picture.remarks {
        let class = if remark.is_fault {
            " class=\"fault\""
        } else {
            ""
        };
        let _ = writeln!(page, "<li{class}>{}</li>", escaped(&remark.text));
    }
    page.push_str(
        "</ol>\n<details><summary>Everything, in words</summary>\n<table class=\"account\">\n",
    );
    for (at, text) in &picture.account {
        let millis = at / 1_000_000;
        let _ = writeln!(
            page,
            "<tr><td>{millis} ms</td><td>{}</td></tr>",
            escaped(text)
        );
    }
    page.push_str("</table>\n</details>\n");
}

fn legend(page: &mut String) {
    page.push_str(
        "<section class=\"legend\" aria-label=\"Legend\">\n<p>One row per process.</p>\n<ul>\n\
         <li><span class=\"key belief\"></span> believes that it holds the lock</li>\n\
         <li><span class=\"key shared\"></span> … as a reader</li>\n\
         <li><span class=\"key truth\"></span> holds it according to the store</li>\n\
         <li><span class=\"key overlap\"></span> two believe at once</li>\n\
         <li><span class=\"key wait\"></span> waits</li>\n\
         <li><span class=\"key pause\"></span> paused</li>\n\
         <li><span class=\"sign accepted\">✓</span> write accepted</li>\n\
         <li><span class=\"sign refused\">✗</span> write refused</li>\n\
         <li><span class=\"sign declined\">¬</span> does not even try</li>\n\
         <li><span class=\"sign lost\">!</span> is told of the loss</li>\n\
         <li><span class=\"sign killed\">†</span> dies</li>\n\
         <li><span class=\"sign busy\">–</span> is told: busy</li>\n\
         <li><span class=\"sign gaveup\">?</span> gives up</li>\n</ul>\n</section>\n",
    );
}

fn in_words(count: usize) -> String {
    if count == 20 {
        "Twenty".to_owned()
    } else {
        count.to_string()
    }
}
