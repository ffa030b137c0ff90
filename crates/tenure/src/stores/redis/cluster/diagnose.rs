//! Looking at a cluster as a worried operator would: is every slot served, and each node.

use futures_util::future::join_all;
use tenure_core::{Error, Finding, Severity};

use super::super::diagnose;
use super::nodes::Nodes;
use super::slots::SLOTS;

/// What is found about a node that may forget.
const RECOVERY: &str = "recovery";

/// # Errors
/// If nobody says which nodes there are. A node that cannot be asked is a finding.
pub(super) async fn diagnose(nodes: &Nodes) -> Result<Vec<Finding>, Error> {
    nodes.refresh().await.map_err(|failure| failure.error())?;
    let serving = nodes.serving();
    let mut findings = vec![together(nodes.slots.count(), serving.len()), recovery()];
    let asked = join_all(serving.iter().map(|link| diagnose::diagnose(link))).await;
    for (link, answer) in serving.iter().zip(asked) {
        let label = link.options.address.to_string();
        match answer {
            Ok(own) => {
                let own = own.into_iter().filter(|it| it.subject != RECOVERY);
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

/// One word for all nodes: there is nothing to be set.
fn recovery() -> Finding {
    Finding {
        severity: Severity::Warning,
        subject: RECOVERY.into(),
        detail: "it is not noticed when a node of a cluster restarts without its data, or is \
                 replaced by a replica that lags behind: locks that are held may be given away. Let \
                 what they protect check fences"
            .into(),
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
