//! Counting tests: reads what `cargo test` prints. Pure, so it is tested here.

use std::ops::AddAssign;

/// What the test binaries reported, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    pub(crate) filtered_out: u64,
    /// Binaries (or documentation test runs) that gave a result.
    pub(crate) runs: u64,
    /// Binaries that began and never gave a result: aborted, killed, or left by `process::exit`.
    pub(crate) broken_off: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.filtered_out += other.filtered_out;
        self.runs += other.runs;
        self.broken_off += other.broken_off;
    }
}

/// Reads the output line by line, as it comes.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    counts: Counts,
    /// A binary said `running N tests` and has not given its result yet.
    running: bool,
}

impl Counter {
    /// Takes the next line of output, without its line end.
    pub(crate) fn read(&mut self, line: &str) {
        let line = without_escapes(line);
        if is_start(&line) {
            self.break_off();
            self.running = true;
        } else if let Some(counts) = parse_result(&line) {
            self.counts += counts;
            self.running = false;
        }
    }

    /// The sum, once the output has ended.
    pub(crate) fn finish(mut self) -> Counts {
        self.break_off();
        self.counts
    }

    fn break_off(&mut self) {
        if std::mem::take(&mut self.running) {
            self.counts.broken_off += 1;
        }
    }
}

/// `running 12 tests` or `running 1 test`.
fn is_start(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words.as_slice(), ["running", number, "test" | "tests"] if number.parse::<u64>().is_ok())
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`
fn parse_result(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("test result: ")?;
    let (_verdict, fields) = rest.split_once(". ")?;
    let mut counts = Counts {
        runs: 1,
        ..Counts::default()
    };
    for field in fields.split(';') {
        let Some((number, what)) = field.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match what {
            "passed" => counts.passed = number,
            "failed" => counts.failed = number,
            "ignored" => counts.ignored = number,
            "filtered out" => counts.filtered_out = number,
            _ => {}
        }
    }
    Some(counts)
}

/// Drops terminal colours (`ESC [ … m`), which `--color always` puts around the verdict.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(output: &str) -> Counts {
        let mut counter = Counter::default();
        output.lines().for_each(|line| counter.read(line));
        counter.finish()
    }

    #[test]
    fn results_of_all_binaries_are_summed() {
        let counts = count(
            "running 3 tests\n\
             test a ... ok\n\
             test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.01s\n\
             \n\
             running 2 tests\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.10s\n",
        );
        let expected = Counts {
            passed: 4,
            failed: 1,
            filtered_out: 4,
            runs: 2,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn ignored_tests_are_seen() {
        let line = "test result: ok. 0 passed; 0 failed; 7 ignored; 0 measured; 0 filtered out";
        assert_eq!(count(line).ignored, 7);
    }

    #[test]
    fn a_binary_without_a_result_is_broken_off() {
        let next = "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let counts = count(&format!(
            "running 5 tests\ntest a ... ok\n{next}\nrunning 2 tests\n"
        ));
        assert_eq!((counts.passed, counts.runs, counts.broken_off), (1, 1, 2));
    }

    #[test]
    fn colours_do_not_hide_a_result() {
        let line = "test result: \u{1b}[31mFAILED\u{1b}[m. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let counts = count(line);
        assert_eq!((counts.passed, counts.failed), (1, 2));
    }

    #[test]
    fn other_output_counts_nothing() {
        let output = "running out of memory\nrunning many tests\nthe test result: ok. 9 passed;\nerror: could not compile";
        assert_eq!(count(output), Counts::default());
    }
}
