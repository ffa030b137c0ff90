//! Drives tenure as one of the peers of the comparison: `tenure-bench PEER SCENARIO key=value …`.
//!
//! What it must do and print is `peers/CONTRACT.md`. One file per scenario; `peer.rs` is the only
//! place that knows which lock a peer takes.

mod arguments;
mod figures;
mod peer;
mod scenario;
mod steps;
mod time;

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use arguments::Arguments;
use peer::PeerKind;
use scenario::{Findings, Scenario};

/// Anything that keeps a scenario from being finished; told in one line.
type Fault = Box<dyn std::error::Error + Send + Sync>;

const USAGE: u8 = 2;
const UNSUPPORTED: u8 = 3;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (peer, scenario) = (words.next(), words.next());
    let (Some(peer), Some(scenario)) = (peer, scenario) else {
        return refuse("usage: tenure-bench PEER SCENARIO key=value …");
    };
    let plan = Arguments::read(words).and_then(|arguments| {
        let kind = PeerKind::read(&peer)?;
        let url = arguments.text("url").or_else(|_| arguments.text("urls"))?;
        Ok((kind, url, Scenario::read(&scenario, &arguments)?))
    });
    match plan {
        Ok((kind, url, plan)) => match run(kind, url, plan) {
            Ok(findings) => print(&peer, &scenario, findings),
            Err(fault) => {
                complain(&format!("{peer} {scenario}: {fault}"));
                ExitCode::FAILURE
            }
        },
        Err(fault) => refuse(&fault.to_string()),
    }
}

fn run(kind: PeerKind, url: String, plan: Scenario) -> Result<Findings, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // Spawned, so that it runs where the client's own tasks run and not beside the runtime's
    // threads.
    let task = runtime.spawn(async move { plan.run(kind, &url).await });
    let findings = runtime.block_on(task)?;
    // Tasks that still wait for a lock are not waited for.
    runtime.shutdown_background();
    findings
}

/// Prints the one line of JSON that the contract asks for.
fn print(peer: &str, scenario: &str, findings: Findings) -> ExitCode {
    let mut line = Map::new();
    line.insert("peer".into(), json!(peer));
    line.insert("scenario".into(), json!(scenario));
    let code = match findings {
        Findings::Measured(figures) => {
            line.extend(figures);
            ExitCode::SUCCESS
        }
        Findings::Unsupported(why) => {
            line.insert("unsupported".into(), json!(why));
            ExitCode::from(UNSUPPORTED)
        }
    };
    let printed = writeln!(std::io::stdout(), "{}", Value::Object(line));
    if printed.is_ok() {
        code
    } else {
        ExitCode::FAILURE
    }
}

/// A line for people.
fn complain(line: &str) {
    // Nobody is left to be told if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn refuse(why: &str) -> ExitCode {
    complain(why);
    ExitCode::from(USAGE)
}
