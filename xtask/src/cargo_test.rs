//! Running `cargo test`: what it is told, its output as it comes, and whether the result is green.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::counts::{Counter, Counts};
use crate::shell::{self, Failure, paint};

/// How often to look whether cargo is still there while it is silent.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long after cargo ended its output may stay open. Servers stopped by a test need a moment.
const GRACE: Duration = Duration::from_secs(15);

/// `cargo test` over the workspace with every feature, plus what the user adds, less what is left out.
pub(crate) fn command(args: &[String], left_out: &[&str]) -> Command {
    let mut command = shell::cargo(["test"]);
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    let names_package = |arg: &String| arg.starts_with("-p") || arg.starts_with("--package");
    if !own.iter().any(names_package) {
        command.arg("--workspace");
    }
    // All of them, even after a failure: half of a count helps nobody.
    command
        .args(["--all-features", "--no-fail-fast"])
        .args(args);
    if !left_out.is_empty() && !args.iter().any(|arg| arg == "--") {
        command.arg("--");
    }
    for test in left_out {
        command.args(["--skip", test]);
    }
    // A developer's own store must neither change the result nor be locked by a test.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TENURE_") && !text.starts_with("TENURE_TEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it, showing the output as it comes and counting along.
///
/// # Errors
/// When a test failed, was ignored or never ended, when none ran, or when a process that the tests
/// started outlived them.
pub(crate) fn run(command: &mut Command, counts: &mut Counts) -> Result<(), Failure> {
    let shown = shell::show(command);
    shell::say(&paint("2", &format!("$ {shown}")));
    let mut counter = Counter::default();
    let followed = follow(command, |line| {
        shell::say(line);
        counter.read(line);
    });
    *counts = counter.finish();
    let followed =
        followed.map_err(|error| Failure(format!("`{shown}` could not be run: {error}")))?;
    judge(*counts)?;
    match followed {
        Followed::Ended(status) if status.success() => Ok(()),
        Followed::Ended(status) => Err(Failure(format!("`{shown}` failed ({status})"))),
        Followed::Outlived => Err(Failure::new(
            "a process that a test started still runs and holds the output open (see `ps`)",
        )),
    }
}

enum Followed {
    Ended(ExitStatus),
    Outlived,
}

/// Runs a command and takes each line of its output, until the output ends. A server that a test
/// left behind keeps it open for ever, so after the command's own end we wait only for a while.
fn follow(command: &mut Command, mut take: impl FnMut(&str)) -> io::Result<Followed> {
    // One pipe for both streams: two would arrive out of order, half a line inside another.
    let (output, input) = io::pipe()?;
    let mut child = command.stdout(input.try_clone()?).stderr(input).spawn()?;
    // The command still has our ends of the pipe, and while they are open the output never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let lines = read_lines(output);
    let mut ended = false;
    loop {
        match lines.recv_timeout(if ended { GRACE } else { LOOK_EVERY }) {
            Ok(line) => take(&line),
            Err(RecvTimeoutError::Disconnected) => return child.wait().map(Followed::Ended),
            Err(RecvTimeoutError::Timeout) if ended => return Ok(Followed::Outlived),
            Err(RecvTimeoutError::Timeout) => ended = child.try_wait()?.is_some(),
        }
    }
}

fn read_lines(output: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else { return };
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Green means that tests ran and that none was left out.
fn judge(counts: Counts) -> Result<(), Failure> {
    if counts.broken_off > 0 {
        Err(Failure(format!(
            "{} test binaries ended without a result",
            counts.broken_off
        )))
    } else if counts.failed > 0 {
        Err(Failure(format!("{} tests failed", counts.failed)))
    } else if counts.ignored > 0 {
        Err(Failure(format!(
            "{} tests are ignored; none may be",
            counts.ignored
        )))
    } else if counts.passed == 0 {
        Err(Failure::new("not a single test ran"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_run_is_green() {
        let green = Counts {
            passed: 3,
            runs: 1,
            ..Counts::default()
        };
        assert!(judge(green).is_ok());
        assert!(
            judge(Counts {
                ignored: 1,
                ..green
            })
            .is_err()
        );
        assert!(judge(Counts { failed: 1, ..green }).is_err());
        assert!(
            judge(Counts {
                broken_off: 1,
                ..green
            })
            .is_err()
        );
        assert!(judge(Counts::default()).is_err());
    }

    #[test]
    fn a_named_package_replaces_the_workspace() {
        let shown = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            shell::show(&command(&args, &[]))
        };
        assert!(shown(&[]).contains("--workspace"));
        assert!(shown(&["--", "-please"]).contains("--workspace"));
        assert!(!shown(&["-p", "tenure"]).contains("--workspace"));
    }

    #[test]
    fn what_is_left_out_is_named_to_the_test_binaries() {
        let shown = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            shell::show(&command(&args, &["one", "two"]))
        };
        assert!(shown(&[]).ends_with(" -- --skip one --skip two"));
        assert!(shown(&["--", "name"]).ends_with(" -- name --skip one --skip two"));
    }

    #[test]
    fn both_streams_arrive_in_order() {
        let mut lines = Vec::new();
        let script = "echo one; echo two >&2; echo three; exit 3";
        let followed = follow(Command::new("sh").args(["-c", script]), |line| {
            lines.push(line.to_owned());
        });
        assert_eq!(lines, ["one", "two", "three"]);
        let Ok(Followed::Ended(status)) = followed else {
            panic!("it ended")
        };
        assert_eq!(status.code(), Some(3));
    }
}
