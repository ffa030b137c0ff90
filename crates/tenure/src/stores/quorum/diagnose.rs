//! Looking at a quorum as a worried operator would: each server, and whether together they are what
//! they should be.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tenure_core::{Error, Finding, LockName, Recovering, Severity, Spelled, Timestamp};

use super::agreement::median;
use super::electorate::Electorate;
use super::failures::Failures;
use super::{Rule, Shared};
use crate::clock::bounded;

/// How long one server may take to answer everything.
const LIMIT: Duration = Duration::from_secs(5);
/// Clocks further apart than this are worth a word.
const APART: Duration = Duration::from_secs(1);

/// # Errors
/// None: a server that cannot be asked is a finding.
pub(super) async fn diagnose(shared: &Arc<Shared>) -> Result<Vec<Finding>, Error> {
    let asked = shared
        .members
        .iter()
        .map(|member| async { bounded(&*shared.clock, LIMIT, member.store.diagnose()).await });
    let answers = join_all(asked).await;
    let reachable = answers
        .iter()
        .filter(|answer| matches!(answer, Some(Ok(_))))
        .count();
    let mut findings = vec![together(shared, reachable)];
    findings.extend(evenness(shared));
    findings.extend(clocks(shared));
    for (index, (member, answer)) in shared.members.iter().zip(answers).enumerate() {
        let label = &member.label;
        if let Some(twin) = shared.twin(index) {
            let detail = format!(
                "{label} is the same server as {}: it has no vote of its own",
                twin.label
            );
            findings.push(finding(Severity::Danger, "duplicate", detail));
        }
        let owed = member.debts.count();
        if owed > 0 {
            let detail =
                format!("{label} has still to take back {owed} votes that came to nothing");
            findings.push(finding(Severity::Warning, "roll-back", detail));
        }
        match answer {
            Some(Ok(own)) => findings.extend(own.into_iter().map(|finding| Finding {
                subject: format!("{label}: {}", finding.subject),
                ..finding
            })),
            Some(Err(error)) => {
                findings.push(finding(Severity::Warning, label, error.to_string()));
            }
            None => {
                let detail = format!("no answer within {}", Spelled(LIMIT));
                findings.push(finding(Severity::Warning, label, detail));
            }
        }
    }
    Ok(findings)
}

/// Until so many servers are open as it takes: before that, enough of them may have forgotten a hold.
///
/// # Errors
/// If so few can be asked that nobody knows, and none of these recovers.
pub(super) async fn recovering(
    shared: &Arc<Shared>,
    name: Option<&LockName>,
) -> Result<Option<Recovering>, Error> {
    let asked = shared.members.iter().map(|member| async move {
        bounded(&*shared.clock, LIMIT, member.store.recovering(name)).await
    });
    let answers = join_all(asked).await.into_iter().flatten();
    until_enough_are_open(answers.flatten().collect(), shared.electorate)
}

/// How long it takes until so many are open as are needed, by those who say how long they take.
fn until_enough_are_open(
    mut left: Vec<Option<Recovering>>,
    electorate: Electorate,
) -> Result<Option<Recovering>, Error> {
    left.sort_unstable();
    let (count, needed) = (electorate.members, electorate.to_take);
    let last = left.get(needed - 1).or(left.last()).copied();
    match last.flatten() {
        None if left.len() < needed => {
            Err(Failures::default().too_few("know of", left.len(), needed, count))
        }
        last => Ok(last),
    }
}

fn together(shared: &Shared, reachable: usize) -> Finding {
    let (count, needed) = (shared.members.len(), shared.electorate.to_take);
    let said = format!("{reachable} of {count} servers answer, and it takes {needed}");
    match reachable {
        all if all == count => finding(Severity::Fine, "quorum", said),
        enough if enough >= needed => finding(
            Severity::Warning,
            "quorum",
            format!("{said}: {} more may fail", enough - needed),
        ),
        _ => finding(
            Severity::Danger,
            "quorum",
            format!("{said}: no lock can be taken"),
        ),
    }
}

fn evenness(shared: &Shared) -> Option<Finding> {
    let count = shared.members.len();
    let even = shared.rule == Rule::Majority && count.is_multiple_of(2);
    even.then(|| {
        finding(
            Severity::Warning,
            "even number",
            format!(
                "{count} servers survive the loss of {} like {} would, with one more that can fail: \
                 leave one out or add one",
                count - shared.electorate.to_take,
                count - 1,
            ),
        )
    })
}

fn clocks(shared: &Shared) -> Option<Finding> {
    let now = shared.clock.now();
    let read = |member: &Arc<super::member::Member>| member.clock_at(now).map(Timestamp::as_micros);
    let clocks: Vec<u64> = shared.members.iter().filter_map(read).collect();
    let middle = median(clocks)?;
    let off = shared.members.iter().filter_map(|member| {
        let off = Duration::from_micros(read(member)?.abs_diff(middle));
        (off > APART).then(|| format!("{} is {} off", member.label, Spelled(off)))
    });
    let off: Vec<_> = off.collect();
    Some(if off.is_empty() {
        let detail = format!("the servers' clocks are within {APART:?} of each other");
        finding(Severity::Fine, "clocks", detail)
    } else {
        let detail = format!(
            "{}: leases do not depend on that, only on how fast a clock runs; but set it right",
            off.join(", ")
        );
        finding(Severity::Warning, "clocks", detail)
    })
}

fn finding(severity: Severity, subject: &str, detail: impl Into<String>) -> Finding {
    Finding {
        severity,
        subject: subject.to_owned(),
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where one answer is enough to look, the silence of another is not "nothing was forgotten".
    #[test]
    fn what_recovers_is_said_to_and_what_nobody_knows_is_an_error() {
        let later = |left| Recovering::Left(Duration::from_secs(left));
        let some = |left: &u64| (*left > 0).then(|| later(*left));
        let said = |left: &[u64], electorate| {
            let left = left.iter().map(some).collect();
            until_enough_are_open(left, electorate).ok()
        };
        let both = Electorate::unanimous(2);
        assert_eq!(said(&[20], both), Some(Some(later(20))));
        assert_eq!(said(&[0], both), None);
        assert_eq!(said(&[], both), None);
        assert_eq!(said(&[0, 20], both), Some(Some(later(20))));
        assert_eq!(said(&[0, 0], both), Some(None));
        let most = Electorate::majority(3);
        assert_eq!(said(&[0, 20, 0], most), Some(None));
        assert_eq!(said(&[0, 20], most), Some(Some(later(20))));
        assert_eq!(said(&[0], most), None);
        let unasked = Recovering::OnceAsked(Duration::from_secs(1));
        let mixed = |left: [_; 3]| until_enough_are_open(left.to_vec(), most).ok();
        let (open, soon) = (None, Some(later(20)));
        assert_eq!(mixed([Some(unasked), open, soon]), Some(soon));
        assert_eq!(
            mixed([Some(unasked), open, Some(unasked)]),
            Some(Some(unasked))
        );
    }
}
