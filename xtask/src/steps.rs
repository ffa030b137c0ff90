//! The test command: which steps there are, what each runs, and the summary at the end.

use std::process::ExitCode;
use std::time::Duration;

use crate::counts::Counts;
use crate::options::{Step, TestOptions};
use crate::shell::{self, Failure, paint};
use crate::{cargo_test, features, needs, python, theirs};

/// Runs the chosen steps, each with a heading and its time, and ends with the counts.
pub(crate) fn test(options: &TestOptions) -> ExitCode {
    let mut report = Report::default();
    shell::heading("needs");
    if let Err(failure) = needs::provide(&options.steps) {
        shell::complain(&failure.to_string());
        report.not_run = options.steps.iter().map(|step| step.name()).collect();
        report.failed_steps = 1;
        return report.close();
    }
    for step in &options.steps {
        if report.failed_steps > 0 && !options.keep_going {
            report.not_run.push(step.name());
            continue;
        }
        shell::heading(step.name());
        let (result, time) = shell::timed(|| run(*step, options, &mut report));
        report.add(*step, &result, time);
    }
    report.close()
}

fn run(step: Step, options: &TestOptions, report: &mut Report) -> Result<(), Failure> {
    match step {
        Step::Fmt => shell::run(&mut shell::cargo(["fmt", "--all", "--check"])),
        Step::Clippy => {
            let scope = ["--workspace", "--all-targets", "--all-features"];
            shell::run(
                shell::cargo(["clippy"])
                    .args(scope)
                    .args(["--", "-D", "warnings"]),
            )
        }
        Step::Features => features::check(),
        Step::Docs => {
            let scope = ["--no-deps", "--workspace", "--all-features"];
            let mut command = shell::cargo(["doc"]);
            shell::run(command.args(scope).env("RUSTDOCFLAGS", "-D warnings"))
        }
        Step::Tests => {
            let python = python::provide()?;
            let theirs = theirs::provide();
            let left_out: Vec<_> = theirs.missing.iter().map(|missing| missing.test).collect();
            let mut command = cargo_test::command(&options.cargo_test_args, &left_out);
            command.env(python::VARIABLE, python).envs(theirs.variables);
            report.left_out = theirs.missing;
            cargo_test::run(&mut command, &mut report.counts)
        }
    }
}

/// What happened, for the summary.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    counts: Counts,
    failed_steps: u64,
    not_run: Vec<&'static str>,
    /// Tests for which this machine lacks something that could not be installed.
    left_out: Vec<theirs::Missing>,
}

impl Report {
    fn add(&mut self, step: Step, result: &Result<(), Failure>, time: Duration) {
        let name = step.name();
        let seconds = time.as_secs_f64();
        let line = match result {
            Ok(()) => format!("{name:<9} {} {seconds:7.1} s", paint("32", "ok    ")),
            Err(failure) => {
                format!(
                    "{name:<9} {} {seconds:7.1} s  {failure}",
                    paint("31", "FAILED")
                )
            }
        };
        shell::say(&line);
        self.lines.push(line);
        self.failed_steps += u64::from(result.is_err());
    }

    /// Prints the summary. The last line stands alone: `N passed, N failed`.
    fn close(self) -> ExitCode {
        shell::heading("summary");
        self.lines.iter().for_each(|line| shell::say(line));
        if !self.not_run.is_empty() {
            shell::say(&format!("{:<9} {}", "not run:", self.not_run.join(", ")));
        }
        for theirs::Missing { test, why } in &self.left_out {
            let line = format!("{:<9} {test}: {why}", "NOT RUN:");
            shell::say(&paint("33", &line));
        }
        let Counts {
            passed,
            failed,
            ignored,
            filtered_out,
            runs,
            broken_off,
        } = self.counts;
        shell::say(&format!(
            "tests in {runs} runs: {passed} passed, {failed} failed, {ignored} ignored, \
             {filtered_out} filtered out, {broken_off} runs broken off"
        ));
        shell::say(&format!("{passed} passed, {} failed", self.failures()));
        if self.failed_steps == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// Everything that keeps this from being green: each failed step, but instead of the step
    /// `tests` each test that failed or did not run. Zero exactly when the command succeeds.
    fn failures(&self) -> u64 {
        let Counts {
            failed,
            ignored,
            broken_off,
            ..
        } = self.counts;
        let blamed_on_tests = failed + ignored + broken_off;
        self.failed_steps + blamed_on_tests.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_never_reported_as_zero_failures() {
        let report = Report {
            failed_steps: 1,
            ..Report::default()
        };
        assert_eq!(report.failures(), 1);
    }

    #[test]
    fn failed_tests_are_counted_instead_of_their_step() {
        let counts = Counts {
            failed: 3,
            ignored: 1,
            ..Counts::default()
        };
        let tests_alone = Report {
            failed_steps: 1,
            counts,
            ..Report::default()
        };
        assert_eq!(tests_alone.failures(), 4);
        let with_fmt = Report {
            failed_steps: 2,
            counts,
            ..Report::default()
        };
        assert_eq!(with_fmt.failures(), 5);
    }
}
