//! `tenure lab check FILE`.

use super::check;
use crate::args::CheckArgs;
use crate::history::History;

/// There is no such history, as `sysexits.h` has it.
const NO_INPUT: u8 = 66;

/// Judges a file and says what was found; the exit code tells whether that is a violation.
pub(crate) fn command(args: &CheckArgs) -> u8 {
    let history = match History::read(&args.file) {
        Ok(history) => history,
        Err(unreadable) => {
            anstream::eprintln!("{unreadable}");
            return NO_INPUT;
        }
    };
    let verdict = check(&history);
    if args.json {
        anstream::println!("{}", verdict.json());
    } else {
        anstream::print!("{}", verdict.text());
    }
    u8::from(verdict.violations().next().is_some())
}
