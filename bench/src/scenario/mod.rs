//! [`Scenario`]: what can be measured, one file each. The contract says what each must do.

mod hold;
mod hot;
mod names;
mod parallel;
mod queue;
mod quorum;
mod serial;
mod taking;
mod wait;

use serde_json::{Map, Value};

use crate::Fault;
use crate::arguments::Arguments;
use crate::peer::PeerKind;

use hold::Hold;
use hot::Hot;
use names::Names;
use parallel::Parallel;
use queue::Queue;
use quorum::Quorum;
use serial::Serial;
use wait::Wait;

/// One scenario with its arguments.
#[derive(Debug)]
pub(crate) enum Scenario {
    Serial(Serial),
    Parallel(Parallel),
    Hot(Hot),
    Wait(Wait),
    Hold(Hold),
    Names(Names),
    Queue(Queue),
    Quorum(Quorum),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Findings {
    Measured(Map<String, Value>),
    Unsupported(&'static str),
}

impl Scenario {
    /// # Errors
    /// For an unknown scenario, or a missing or senseless argument.
    pub(crate) fn read(name: &str, arguments: &Arguments) -> Result<Self, Fault> {
        Ok(match name {
            "serial" => Self::Serial(Serial::read(arguments)?),
            "parallel" => Self::Parallel(Parallel::read(arguments)?),
            "hot" => Self::Hot(Hot::read(arguments)?),
            "wait" => Self::Wait(Wait::read(arguments)?),
            "hold" => Self::Hold(Hold::read(arguments)?),
            "names" => Self::Names(Names::read(arguments)?),
            "queue" => Self::Queue(Queue::read(arguments)?),
            "quorum" => Self::Quorum(Quorum::read(arguments)?),
            _ => return Err(format!("there is no scenario `{name}`").into()),
        })
    }

    pub(crate) async fn run(self, kind: PeerKind, url: &str) -> Result<Findings, Fault> {
        if matches!(self, Self::Quorum(_)) != kind.is_quorum() {
            return Ok(Findings::Unsupported(
                "the quorum is a peer of its own, and measured in its own scenarios",
            ));
        }
        let figures = match self {
            Self::Quorum(quorum) => quorum.run(&kind.connect(url).await?).await?,
            Self::Queue(queue) => queue.run(&*kind.store(url).await?).await?,
            Self::Serial(serial) => serial.run(&kind.connect(url).await?).await?,
            Self::Parallel(parallel) => parallel.run(&kind.connect(url).await?).await?,
            Self::Hot(hot) => hot.run(&kind.connect(url).await?).await?,
            Self::Wait(wait) => wait.run(&kind.connect(url).await?).await?,
            Self::Hold(hold) => hold.run(&kind.connect(url).await?).await?,
            Self::Names(names) => names.run(&kind.connect(url).await?).await?,
        };
        match figures {
            Value::Object(figures) => Ok(Findings::Measured(figures)),
            other => Err(format!("a scenario answered {other}, not an object").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn measure(name: &str, line: &str) -> Findings {
        let words = line.split_whitespace().map(str::to_owned);
        let arguments = Arguments::read(words).unwrap();
        let scenario = Scenario::read(name, &arguments).unwrap();
        let kind = PeerKind::read("tenure-memory").unwrap();
        scenario.run(kind, "memory:").await.unwrap()
    }

    fn number(findings: &Findings, key: &str) -> u64 {
        match findings {
            Findings::Measured(figures) => figures[key].as_u64().unwrap(),
            Findings::Unsupported(why) => panic!("unsupported: {why}"),
        }
    }

    #[tokio::test]
    async fn serial_measures_as_many_pairs_as_it_was_told() {
        let findings = measure("serial", "n=5 warm=2").await;
        assert_eq!(number(&findings, "n"), 5);
    }

    #[tokio::test]
    async fn hot_writes_one_line_per_grant() {
        let out = std::env::temp_dir().join(format!("tenure-bench-{}", std::process::id()));
        let line = format!(
            "workers=4 seconds=0.2 hold_us=100 think_us=0 name=x id=p0 out={}",
            out.display()
        );
        let grants = number(&measure("hot", &line).await, "grants");
        let lines = std::fs::read_to_string(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert!(grants > 0);
        assert_eq!(lines.lines().count() as u64, grants);
        assert!(lines.lines().all(|line| line.split(' ').count() == 4));
    }

    #[tokio::test]
    async fn hold_still_has_every_lease_in_the_end() {
        let findings = measure("hold", "leases=50 ttl_ms=9000 seconds=0.1").await;
        assert_eq!(number(&findings, "still_held"), 50);
        assert_eq!(number(&findings, "still_valid"), 50);
    }

    #[tokio::test]
    async fn names_are_all_taken_and_given_back() {
        let findings = measure("names", "names=250 n=5").await;
        assert_eq!(number(&findings, "names"), 250);
        assert_eq!(number(&findings, "released"), 250);
    }

    #[tokio::test]
    async fn a_queue_lets_one_after_the_other_in() {
        // It fails by itself if somebody is overtaken or not told.
        let findings = measure("queue", "waiters=100 n=120").await;
        assert_eq!(number(&findings, "waiters"), 100);
    }

    #[tokio::test]
    async fn quorum_is_answered_as_the_contract_says() {
        let findings = measure("quorum", "urls=memory: n=1 warm=0 ttl_ms=100").await;
        assert!(matches!(findings, Findings::Unsupported(_)));
    }

    #[test]
    fn an_unknown_scenario_or_a_missing_argument_is_refused() {
        let none = Arguments::default();
        let error = Scenario::read("seriall", &none).unwrap_err().to_string();
        assert!(error.contains("`seriall`"));
        let error = Scenario::read("serial", &none).unwrap_err().to_string();
        assert!(error.contains("n="));
    }
}
