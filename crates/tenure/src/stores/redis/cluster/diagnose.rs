//! Looking at a cluster as a worried operator would: is every slot served, and each node.

use futures_util::future::{join_all, try_join_all};
use tenure_core::{Cause, Error, Finding, LockName, Recovering, Recovery, Severity, Spelled};

use super::super::connection::Link;
use super::super::diagnose;
use super::super::errors::Failure;
use super::super::memory::{self, sweep};
use super::nodes::Nodes;
use super::slots::SLOTS;

/// What is found about a node that may forget.
const RECOVERY: &str = "recovery";

/// # Errors
/// If nobody says which nodes there are. A node that cannot be asked is a finding.
pub(super) async fn diagnose(nodes: &Nodes) -> Result<Vec<Finding>, Error> {
    nodes.refresh().await.map_err(|failure| failure.error())?;
    let serving = nodes.serving();
    let mut findings = vec![together(nodes.slots.count(), serving.len())];
    let asked = serving.iter().map(async |link| {
        let own = diagnose::diagnose(link).await?;
        Ok::<_, Error>((own, recovery(link).await))
    });
    let asked = join_all(asked).await;
    for (link, answer) in serving.iter().zip(asked) {
        let label = link.options.address.to_string();
        match answer {
            Ok((own, recovery)) => {
                let own = own.into_iter().filter(|it| it.subject != RECOVERY);
                let own = own.chain([recovery]);
                findings.extend(own.map(|finding| Finding {
                    subject: format!("{label}: {}", finding.subject),
                    ..finding
                }));
            }
            Err(error) => findings.push(Finding {
                severity: Severity::Danger,
                subject: label,
                detail: error.to_string(),
            }),
        }
    }
    Ok(findings)
}

/// For how long a slot lets nobody in: that of `name`, or any.
///
/// # Errors
/// If a node cannot be asked.
pub(super) async fn recovering(
    nodes: &Nodes,
    name: Option<&LockName>,
) -> Result<Option<Recovering>, Error> {
    let failed = |failure: Failure| failure.error();
    if let Some(name) = name {
        let slot = nodes.keys.slot(name).unwrap_or(0);
        let Some(link) = nodes.owner(slot) else {
            return Ok(None);
        };
        let left = memory::recovering(&link, &[Some(slot)]).await;
        return left.map_err(failed);
    }
    let serving = nodes.serving();
    let asked = serving.iter().map(async |link| {
        let parts = sweep::parts_of(link);
        memory::recovering(link, &parts).await
    });
    let left = try_join_all(asked).await.map_err(failed)?;
    Ok(left.into_iter().flatten().max())
}

/// Whether the slots of a node remember, as far as their records say.
async fn recovery(link: &Link) -> Finding {
    let finding = |severity, detail: String| Finding {
        severity,
        subject: RECOVERY.into(),
        detail,
    };
    if link.options.caution.recovery == Recovery::Off {
        let detail = "recovery=off: a node that restarts without its data, or is replaced by a replica \
                      that lags behind, gives away locks that are held, and nobody is asked whether a \
                      node still has its slots";
        return finding(Severity::Danger, detail.into());
    }
    let survey = match sweep::survey(link).await {
        Ok(Some(survey)) => survey,
        Ok(None) => {
            let detail = "unknown, because this user may not call INFO: if the node forgets, it gives \
                          away locks that are held";
            return finding(Severity::Warning, detail.into());
        }
        Err(failure) => return finding(Severity::Warning, failure.error().to_string()),
    };
    let closed: Vec<_> = survey.closed().collect();
    let unknown = survey.slots - survey.records.len();
    let max_ttl = link.options.caution.max_ttl.duration();
    let left = closed
        .iter()
        .map(|record| record.until.since(survey.now))
        .max();
    match left {
        Some(left) => finding(
            Severity::Warning,
            format!(
                "{} of {} slots are recovering, {} left: they let nobody in before all that they may \
                 have forgotten has ended ({})",
                closed.len(),
                survey.slots,
                Spelled(if left.is_zero() { max_ttl } else { left }),
                match closed[0].cause {
                    Cause::Restarted => "their node has restarted, or they have come from another",
                    cause => memory::because(cause),
                },
            ),
        ),
        None if unknown > 0 => finding(
            Severity::Warning,
            format!(
                "{unknown} of {} slots have no record: whoever first asks for a lock there waits {}. If the \
                 cluster is known to be new: tenure doctor --init",
                survey.slots,
                Spelled(max_ttl),
            ),
        ),
        None => finding(
            Severity::Fine,
            format!(
                "all {} slots remember what they granted; if one forgets, leases of up to {} \
                 are protected",
                survey.slots,
                Spelled(max_ttl)
            ),
        ),
    }
}

fn together(served: u16, primaries: usize) -> Finding {
    let (severity, detail) = if served == SLOTS {
        let detail = format!("{primaries} primaries have all {SLOTS} slots");
        (Severity::Fine, detail)
    } else {
        let detail = format!(
            "{primaries} primaries have {served} of {SLOTS} slots: locks in the others cannot be \
             taken (redis-cli --cluster check says which)"
        );
        (Severity::Danger, detail)
    };
    Finding {
        severity,
        subject: "cluster".into(),
        detail,
    }
}
