//! Stories, verdicts and the page.

use super::world::{command, lab};

#[test]
fn the_list_names_twenty() {
    let done = lab(&["list"]).exits(0);
    let ids: Vec<_> = done
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let expected: Vec<_> = (1..=20).map(|number| format!("A{number}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn the_naive_lock_fails_as_described_and_ours_does_not() {
    // One of each kind: a late release, a failover, votes that are miscounted or forgotten, a starved
    // writer, a clock that jumps, a pause.
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("lab.html");
    let file = page.display().to_string();
    let done = lab(&[
        "run", "A3", "A9", "A13", "A14", "A18", "A19", "a20", "--report", &file,
    ])
    .exits(0);
    assert!(done.stdout.contains("7 of 7 as described"), "{done:?}");
    assert!(
        done.stdout.contains("the resource refuses Anna's write"),
        "{done:?}"
    );
    assert!(
        done.stdout.ends_with(&format!("report: {file}\n")),
        "{done:?}"
    );
    check_page(&std::fs::read_to_string(page).unwrap(), 7);
}

#[test]
fn a_lock_that_does_not_fail_shows_nothing() {
    // Ours plays the part of the naive one: nothing goes wrong, so nothing was shown.
    let done = lab(&["run", "A2", "--swap"]).exits(1);
    assert!(
        done.stdout
            .contains("the naive lock did not fail as described"),
        "{done:?}"
    );
}

#[test]
fn an_anomaly_that_does_not_exist_is_an_error_of_usage() {
    let done = lab(&["run", "A21"]).exits(64);
    assert!(
        done.stderr.starts_with("error: there is no anomaly 'A21'"),
        "{done:?}"
    );
    let done = lab(&["run"]).exits(64);
    assert!(done.stderr.contains("run --all"), "{done:?}");
}

#[test]
fn what_cannot_be_done_is_told_before_the_first_play() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no/folder/lab.html");
    let nowhere = nowhere.display().to_string();
    let done = lab(&["run", "--all", "--report", &nowhere]).exits(73);
    assert!(done.stdout.is_empty(), "{done:?}");
    assert!(done.stderr.contains(&nowhere), "{done:?}");

    let page = folder.path().join("lab.html").display().to_string();
    let run = ["run", "--all", "--report", &page];
    let done = command(&run).env("PATH", folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(69), "{done:?}");
    assert!(done.stdout.is_empty(), "{done:?}");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(text.contains("apt-get install redis-server"), "{text}");
    assert!(!std::fs::exists(&page).unwrap(), "nothing is left behind");
}

/// The page is whole, stands alone and has a picture with a description for each play.
fn check_page(page: &str, stories: usize) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "<script", "<link", "<img", "@import"] {
        assert!(
            !page.contains(outside),
            "the page must stand alone: {outside}"
        );
    }
    let pictures: Vec<_> = page.split("<svg").skip(1).collect();
    assert_eq!(pictures.len(), 2 * stories);
    for picture in pictures {
        let picture = &picture[..picture.find("</svg>").expect("every picture ends")];
        assert!(
            picture.contains("<title")
                && picture.contains("<desc")
                && picture.contains("role=\"img\"")
        );
        assert!(
            !picture.contains("NaN") && !picture.contains("=\"-"),
            "{picture}"
        );
    }
    check_nesting(page);
    let ids = page
        .match_indices(" id=\"")
        .map(|(at, _)| page[at + 5..].split('"').next());
    let mut ids: Vec<_> = ids.collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "every id is there once");
}

/// Every element that is opened is closed, in the right order.
fn check_nesting(page: &str) {
    let body = &page[page.find("</style>").expect("a style") + 8..];
    let mut open = vec!["html", "head"];
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').expect("every tag ends");
        assert!(!text.contains('>'), "unescaped: {text}");
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "closed in the wrong order near {tag}"
            );
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}
