//! What the command line of `cargo xtask` may say, and nothing else. Pure, so it is tested here.

use crate::soak::{MUTANTS, SHAPES};

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Chore {
    Help,
    Test(TestOptions),
    Compare(CompareOptions),
    Soak(SoakOptions),
    /// What criterion is told.
    Bench(Vec<String>),
    /// What cargo-mutants is told.
    Mutants(Vec<String>),
}

/// How to run the tests.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestOptions {
    /// The steps asked for, in the fixed order of [`Step::ALL`]; all of them unless `--only` is given.
    pub(crate) steps: Vec<Step>,
    /// Go on after a step failed. The exit status stays a failure.
    pub(crate) keep_going: bool,
    /// Handed to `cargo test` as they are.
    pub(crate) cargo_test_args: Vec<String>,
}

/// What to compare. The lists go to the harness as they are: it knows the names.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CompareOptions {
    pub(crate) quick: bool,
    pub(crate) peers: Option<String>,
    pub(crate) scenarios: Option<String>,
    pub(crate) rounds: Option<u32>,
}

/// How long to break what.
#[derive(Debug, PartialEq)]
pub(crate) struct SoakOptions {
    /// Per shape and seed, as `tenure lab chaos` takes it: `90s`, `2m`.
    pub(crate) length: String,
    /// How many seeds, from `seed` on.
    pub(crate) seeds: u32,
    pub(crate) seed: u64,
    /// Shapes, and `mutants`.
    pub(crate) parts: Vec<String>,
}

impl SoakOptions {
    pub(crate) fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|it| it == part)
    }
}

impl Default for SoakOptions {
    fn default() -> Self {
        Self {
            length: "2m".to_owned(),
            seeds: 5,
            seed: 1,
            parts: soak_parts().map(String::from).collect(),
        }
    }
}

/// All parts of a soak.
fn soak_parts() -> impl Iterator<Item = &'static str> {
    SHAPES.into_iter().chain([MUTANTS])
}

/// One stage of the test command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Fmt,
    Clippy,
    Features,
    Docs,
    Tests,
}

impl Step {
    /// Cheapest first, so that a slip is told in seconds and not after the long tests.
    pub(crate) const ALL: [Step; 5] = [
        Step::Fmt,
        Step::Clippy,
        Step::Features,
        Step::Docs,
        Step::Tests,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Step::Fmt => "fmt",
            Step::Clippy => "clippy",
            Step::Features => "features",
            Step::Docs => "docs",
            Step::Tests => "tests",
        }
    }
}

pub(crate) const HELP: &str = "\
cargo xtask test [--only STEP,STEP…] [--keep-going] [-- CARGO TEST ARGS…]
cargo xtask compare [--quick] [--peers PEER,PEER…] [--scenarios NAME,NAME…] [--rounds N]
cargo xtask bench [CRITERION ARGS…]
cargo xtask mutants [CARGO MUTANTS ARGS…]
cargo xtask soak [--for 2m] [--seeds N] [--seed N] [--only PART,PART…]

test
Finds what the tests need (and installs it where it may), then runs, in this order:
  fmt        cargo fmt --check
  clippy     every target and feature, warnings are errors
  features   the library with no feature, each alone, all; no driver that was not asked for
  docs       rustdoc, warnings are errors
  tests      unit, integration and documentation tests, against real servers

  --only       run just these steps
  --keep-going go on after a step failed
  --           the rest goes to `cargo test`, e.g. -- -p tenure --test it waiting

The last line counts the tests. Ignored tests and failed steps count as failed.

compare
Measures tenure side by side with other lock libraries on a Redis server of its own. Builds what it
can, says what it skipped and why, writes bench/results. Wants a quiet machine.
  --quick            fewer peers, shorter rounds, no growth: 7 minutes, and half of that again to build once
  --scenarios growth how tenure's cost grows with names, waiters, processes and leases

bench
Micro-benchmarks of the decision, the memory store and the client, with criterion.

mutants
Changes the core in every small way there is, one at a time, and sees whether its tests notice. By
hand: about 400 changes, half an hour. Wants cargo-mutants. Those that survive are in mutants.out.
  --shard 3/8        an eighth of them
  --file PATH        those in one file

soak
Breaks every shape of store at random (`tenure lab chaos`) and judges what happened: 2 minutes for each
of 5 seeds and each of redis, sentinel, cluster, redlock:3, redlock:5 and sqlite, an hour in all; then
the mutants, as above. Goes on after it found something, and says at the end what came of each part. Plan
and history of a run that failed are kept in target/soak, with the command that carries the plan out again.
  --for 20s --seeds 1        short, to see that it works
  --only redis,mutants       some parts
  --seed 40                  from another seed on";

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Chore, String> {
    let mut args = args;
    match args.next().as_deref() {
        None | Some("help" | "--help" | "-h") => Ok(Chore::Help),
        Some("test") => parse_test(args),
        Some("compare") => parse_compare(args),
        Some("soak") => parse_soak(args),
        Some("bench") => Ok(Chore::Bench(args.collect())),
        Some("mutants") => Ok(Chore::Mutants(args.collect())),
        Some(other) => Err(format!("there is no chore `{other}`")),
    }
}

fn parse_test(mut args: impl Iterator<Item = String>) -> Result<Chore, String> {
    let mut options = TestOptions {
        steps: Step::ALL.to_vec(),
        ..TestOptions::default()
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(Chore::Help),
            "--keep-going" => options.keep_going = true,
            "--only" => {
                let list = args.next().ok_or("--only needs a list of steps")?;
                options.steps = parse_steps(&list)?;
            }
            "--" => {
                options.cargo_test_args = args.collect();
                break;
            }
            other => match other.strip_prefix("--only=") {
                Some(list) => options.steps = parse_steps(list)?,
                None => return Err(format!("`test` does not know `{other}`")),
            },
        }
    }
    if !options.cargo_test_args.is_empty() && !options.steps.contains(&Step::Tests) {
        return Err("arguments for `cargo test` make no sense without the step `tests`".into());
    }
    Ok(Chore::Test(options))
}

fn parse_compare(mut args: impl Iterator<Item = String>) -> Result<Chore, String> {
    let mut options = CompareOptions::default();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| args.next());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "--help" | "-h" => return Ok(Chore::Help),
            "--quick" => options.quick = true,
            "--peers" => options.peers = Some(value()?),
            "--scenarios" => options.scenarios = Some(value()?),
            "--rounds" => {
                let rounds = value()?.parse().map_err(|_| "--rounds needs a number")?;
                options.rounds = Some(rounds);
            }
            _ => return Err(format!("`compare` does not know `{arg}`")),
        }
    }
    Ok(Chore::Compare(options))
}

fn parse_soak(mut args: impl Iterator<Item = String>) -> Result<Chore, String> {
    let mut options = SoakOptions::default();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| args.next());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        let number = |text: String| text.parse().map_err(|_| format!("{name} needs a number"));
        match name {
            "--help" | "-h" => return Ok(Chore::Help),
            "--for" => options.length = parse_length(value()?)?,
            "--seeds" => options.seeds = number(value()?)?,
            "--seed" => options.seed = u64::from(number(value()?)?),
            "--only" => {
                options.parts = value()?.split(',').map(|it| it.trim().to_owned()).collect();
                let is_known = |part: &&String| soak_parts().any(|known| known == part.as_str());
                if let Some(it) = options.parts.iter().find(|part| !is_known(part)) {
                    let known = soak_parts().collect::<Vec<_>>().join(", ");
                    return Err(format!("there is no part `{it}` (there are: {known})"));
                }
            }
            _ => return Err(format!("`soak` does not know `{arg}`")),
        }
    }
    Ok(Chore::Soak(options))
}

/// Only whether it is one: who measures it reads it.
fn parse_length(text: String) -> Result<String, String> {
    let digits = text.strip_suffix(['s', 'm']).unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let otherwise = || "--for needs a whole number of seconds or minutes: 90s, 2m".to_owned();
    is_number.then_some(text).ok_or_else(otherwise)
}

fn parse_steps(list: &str) -> Result<Vec<Step>, String> {
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    for name in &wanted {
        if !Step::ALL.iter().any(|step| step.name() == *name) {
            let known = Step::ALL.map(Step::name).join(", ");
            return Err(format!("there is no step `{name}` (there are: {known})"));
        }
    }
    Ok(Step::ALL
        .into_iter()
        .filter(|step| wanted.contains(&step.name()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Chore, String> {
        parse(line.split_whitespace().map(String::from))
    }

    fn test_options(line: &str) -> TestOptions {
        match read(line) {
            Ok(Chore::Test(options)) => options,
            other => panic!("expected test options, got {other:?}"),
        }
    }

    #[test]
    fn plain_test_runs_every_step() {
        assert_eq!(test_options("test").steps, Step::ALL);
    }

    #[test]
    fn only_keeps_the_fixed_order() {
        assert_eq!(
            test_options("test --only tests,fmt").steps,
            [Step::Fmt, Step::Tests]
        );
        assert_eq!(test_options("test --only=docs").steps, [Step::Docs]);
    }

    #[test]
    fn what_follows_two_dashes_is_for_cargo_test() {
        let options = test_options("test --keep-going -- -p tenure -- --nocapture");
        assert!(options.keep_going);
        assert_eq!(
            options.cargo_test_args,
            ["-p", "tenure", "--", "--nocapture"]
        );
    }

    #[test]
    fn a_comparison_can_be_narrowed() {
        let expected = CompareOptions {
            quick: true,
            peers: Some("tenure,rslock".into()),
            scenarios: Some("serial".into()),
            rounds: Some(7),
        };
        let line = "compare --quick --peers tenure,rslock --scenarios=serial --rounds 7";
        assert_eq!(read(line), Ok(Chore::Compare(expected)));
        assert_eq!(
            read("compare"),
            Ok(Chore::Compare(CompareOptions::default()))
        );
    }

    #[test]
    fn a_soak_can_be_narrowed() {
        let expected = SoakOptions {
            length: "20s".into(),
            seeds: 2,
            seed: 40,
            parts: vec!["redis".into(), "mutants".into()],
        };
        let line = "soak --for 20s --seeds=2 --seed 40 --only redis,mutants";
        assert_eq!(read(line), Ok(Chore::Soak(expected)));
        assert_eq!(read("soak"), Ok(Chore::Soak(SoakOptions::default())));
    }

    #[test]
    fn nonsense_is_refused_with_its_name() {
        assert!(read("soak --only redsi").unwrap_err().contains("redsi"));
        assert!(read("soak --for long").unwrap_err().contains("--for"));
        assert!(read("soak --for s").unwrap_err().contains("--for"));
        assert!(read("compare --quik").unwrap_err().contains("--quik"));
        assert!(
            read("compare --rounds many")
                .unwrap_err()
                .contains("--rounds")
        );
        assert!(read("tset").unwrap_err().contains("tset"));
        assert!(read("test --only fmt,clipy").unwrap_err().contains("clipy"));
        assert!(read("test --quick").unwrap_err().contains("--quick"));
        assert!(read("test --only").is_err());
        assert!(read("test --only fmt -- -p tenure").is_err());
    }
}
