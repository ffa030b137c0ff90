//! Tables for people; programs use `--json`.

use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};

use super::human;
use super::view::{Holder, Lock};

/// One row per holder; a lock that only has waiters gets a row too.
pub fn locks(locks: &[Lock]) -> String {
    let mut table = plain_table();
    table.set_header([
        "NAME",
        "MODE",
        "HOLDER",
        "PID",
        "HELD",
        "LEASE LEFT",
        "ID",
        "WAITING",
    ]);
    for lock in locks {
        let mode = lock.mode.clone().unwrap_or_default();
        let waiting = match lock.waiters.len() {
            0 => String::new(),
            number => number.to_string(),
        };
        if lock.holders.is_empty() {
            let nobody = String::new;
            let row = [
                lock.name.clone(),
                mode.clone(),
                "-".into(),
                nobody(),
                nobody(),
                nobody(),
                nobody(),
            ];
            table.add_row(row.into_iter().chain([waiting.clone()]));
        }
        for (index, holder) in lock.holders.iter().enumerate() {
            let waiting = if index == 0 {
                waiting.clone()
            } else {
                String::new()
            };
            let cells = holder_cells(holder);
            table.add_row(
                [lock.name.clone(), mode.clone()]
                    .into_iter()
                    .chain(cells)
                    .chain([waiting]),
            );
        }
    }
    trimmed(&table)
}

fn holder_cells(holder: &Holder) -> [String; 5] {
    let time = |value: Option<u64>| {
        value.map_or_else(
            || "-".into(),
            |value| human::duration(Duration::from_millis(value)),
        )
    };
    let who = match (&holder.owner, holder.label.as_str()) {
        (Some(owner), "") => owner.clone(),
        (Some(owner), label) => format!("{owner} ({label})"),
        (None, label) => label.into(),
    };
    [
        who,
        holder.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
        time(holder.held_ms),
        holder
            .expires_in_ms
            .map_or_else(|| "endless".into(), |left| time(Some(left))),
        holder.lease.clone().unwrap_or_else(|| "-".into()),
    ]
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn trimmed(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_who_holds_and_how_many_wait() {
        let holder = Holder {
            owner: Some("deploy@web-3".into()),
            label: "release 7".into(),
            host: Some("web-3".into()),
            pid: Some(4312),
            fence: Some("42".into()),
            held_ms: Some(252_000),
            expires_in_ms: Some(22_000),
            lease: Some("7f3a0c12".into()),
        };
        let lock = Lock {
            name: "nightly".into(),
            mode: Some("exclusive".into()),
            holders: vec![holder],
            waiters: Vec::new(),
            recovering_ms: None,
            recovery_begun: None,
        };
        let text = locks(&[lock]);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0][..3], ["NAME", "MODE", "HOLDER"]);
        assert_eq!(
            rows[1],
            [
                "nightly",
                "exclusive",
                "deploy@web-3",
                "(release",
                "7)",
                "4312",
                "4m12s",
                "22s",
                "7f3a0c12"
            ]
        );
    }
}
