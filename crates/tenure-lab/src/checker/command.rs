//! `tenure lab check FILE`.

use super::check;
use crate::args::CheckArgs;
use crate::history::History;

/// There is no such file, as `sysexits.h` has it.
const NO_INPUT: u8 = 66;

/// The file is no history, or one that proves nothing; the word of `sysexits.h` for what is in a file.
const BAD_DATA: u8 = 65;

/// Judges a file and says what was found; the exit code tells whether that is a violation.
pub(crate) fn command(args: &CheckArgs) -> u8 {
    let read = match args.file.as_os_str().as_encoded_bytes() {
        b"-" => History::read_from(&mut std::io::stdin()),
        _ => History::read(&args.file),
    };
    let history = match read {
        Ok(history) => history,
        Err(unreadable) => {
            anstream::eprintln!("error: {unreadable}");
            return match unreadable.is_missing {
                true => NO_INPUT,
                false => BAD_DATA,
            };
        }
    };
    let verdict = check(&history);
    if args.json {
        anstream::println!("{}", verdict.json());
    } else {
        anstream::print!("{}", verdict.text());
    }
    if verdict.violations().next().is_some() {
        return 1;
    }
    if verdict.proves_nothing() {
        anstream::eprintln!("error: nothing was judged: this history proves nothing");
        return BAD_DATA;
    }
    0
}
