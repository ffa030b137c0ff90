//! `tenure doctor`: can the store be reached, what does it promise, what is set up wrongly?

use anstyle::{AnsiColor, Style};
use serde_json::json;
use tenure::core::{Finding, Guarantees, Holds, Severity};
use tenure::{Assurance, Initialization, Initialized};

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::output::failure::{Failure, Result};
use crate::output::{Output, complaints};
use crate::session::Session;
use crate::store_choice::StoreChoice;

/// The exit code when a promise does not hold.
const UNFIT: Exit = Exit::Code(1);

/// Examines the store; before that, opens it if somebody says that it is new.
pub async fn execute(args: DoctorArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    let opened = match args.init {
        true => Some(initialize(&args, &choice).await?),
        false => None,
    };
    let refused = opened.iter().flatten().any(|it| is_refused(&it.outcome));
    let session = Session::open(choice).await.map_err(Failure::without_help)?;
    let round_trip = session.round_trip().await;
    let findings = session.diagnose().await?;
    let fit = findings
        .iter()
        .all(|finding| finding.severity != Severity::Danger);
    let round_trip = match round_trip {
        Err(failure) if fit => return Err(failure),
        // A store of which too little is there cannot answer, and the findings say why.
        other => other.ok(),
    };
    if args.json {
        let opened = opened.as_ref();
        output.print_json(&json!({
            "init": opened.map(|opened| opened.iter().map(opening_json).collect::<Vec<_>>()),
            "store": session.choice().url.to_string(),
            "from": session.choice().origin.to_string(),
            "round_trip_us": round_trip.and_then(|time| u64::try_from(time.as_micros()).ok()),
            "fit": fit,
            "verdict": verdict(&findings),
            "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
        }))?;
    } else {
        let choice = session.choice();
        let mut lines = vec![
            format!("store       {}", choice.url),
            format!("from        {}", choice.origin),
            round_trip.map_or_else(
                || "round trip  not answered".to_owned(),
                |time| format!("round trip  {:.2} ms", time.as_secs_f64() * 1_000.0),
            ),
            String::new(),
        ];
        if let Some(opened) = &opened {
            lines.extend(opened.iter().map(opening_line));
            lines.extend(refused.then(|| INSTEAD.to_owned()));
            lines.push(String::new());
        }
        if !findings.is_empty() {
            lines.extend(findings.iter().map(finding_line));
            lines.push(String::new());
        }
        lines.extend(promise_lines(&session.guarantees()));
        lines.extend([String::new(), verdict(&findings)]);
        output.print(&lines.join("\n"))?;
    }
    Ok(if fit && !refused {
        Exit::Success
    } else {
        UNFIT
    })
}

async fn initialize(args: &DoctorArgs, choice: &StoreChoice) -> Result<Vec<Initialization>> {
    let assurance = match args.nothing_is_held {
        false => Assurance::New,
        true => Assurance::NothingIsHeld,
    };
    let opened = tenure::initialize(choice.url.expose(), assurance).await;
    opened.map_err(|error| complaints::of_error(&error, choice).without_help())
}

fn is_refused(outcome: &Initialized) -> bool {
    matches!(outcome, Initialized::Refused(_))
}

fn opening_json(opening: &Initialization) -> serde_json::Value {
    let (outcome, why) = match &opening.outcome {
        Initialized::Opened => ("opened", None),
        Initialized::WasOpen => ("was_open", None),
        Initialized::Refused(why) => ("refused", Some(why)),
    };
    json!({ "server": opening.server, "outcome": outcome, "why": why })
}

fn opening_line(opening: &Initialization) -> String {
    let server = &opening.server;
    match &opening.outcome {
        Initialized::Opened => format!("init        {server} is recorded as new, and open"),
        Initialized::WasOpen => format!("init        {server} was open already"),
        Initialized::Refused(why) => format!("init        {server} is NOT opened: {why}"),
    }
}

/// What to do where a server was not opened.
const INSTEAD: &str = "            it opens by itself once all that it may have forgotten has ended; if you are \
                       sure that nobody holds a lock there: tenure doctor --init --nothing-is-held (an \
                       empty `tenure ls` proves nothing while it recovers: a holder is listed once it has renewed)";

/// The whole in one sentence.
fn verdict(findings: &[Finding]) -> String {
    let subjects = |severity| {
        let found = findings.iter().filter(|it| it.severity == severity);
        found.map(|it| it.subject.as_str()).collect::<Vec<_>>()
    };
    let (dangers, warnings) = (subjects(Severity::Danger), subjects(Severity::Warning));
    if !dangers.is_empty() {
        format!(
            "Not fit for locks until this is changed: {}.",
            dangers.join(", ")
        )
    } else if !warnings.is_empty() {
        format!(
            "Fit for locks; read the warnings about: {}.",
            warnings.join(", ")
        )
    } else {
        "Fit for locks.".to_owned()
    }
}

fn finding_json(finding: &Finding) -> serde_json::Value {
    json!({
        "severity": word(finding.severity),
        "subject": finding.subject,
        "detail": finding.detail,
    })
}

fn finding_line(finding: &Finding) -> String {
    let color = match finding.severity {
        Severity::Fine => AnsiColor::Green,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Danger => AnsiColor::Red,
    };
    let style = Style::new().fg_color(Some(color.into()));
    let word = word(finding.severity);
    format!(
        "{style}{word:<7}{style:#} {}: {}",
        finding.subject, finding.detail
    )
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Fine => "fine",
        Severity::Warning => "warning",
        Severity::Danger => "danger",
    }
}

fn promise_lines(guarantees: &Guarantees) -> Vec<String> {
    let mut lines = vec![format!(
        "{} promises, among {}, by {}:",
        guarantees.store, guarantees.scope, guarantees.clock
    )];
    for promise in guarantees.promises {
        let (id, sentence) = (promise.id, promise.id.sentence());
        let (first, second) = match promise.holds {
            Holds::Always => (format!("  {id}  {sentence}"), None),
            Holds::Within(bound) => (format!("  {id}  {sentence}:"), Some(bound)),
            Holds::If(condition) => (format!("  {id}  {sentence}, if:"), Some(condition)),
            Holds::No(why) => (format!("  {id}  NOT promised: {sentence}"), Some(why)),
        };
        lines.push(first);
        lines.extend(second.map(|text| format!("      {text}")));
    }
    lines
}
