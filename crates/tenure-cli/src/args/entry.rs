//! From the process's arguments to [`Cli`]: usage errors, suggestions and the short help.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use super::{Cli, Color, Command, JsonTarget};
use crate::exit::Exit;
use crate::output::codes::Code;
use crate::output::secret::redact_text;

/// What `tenure` alone prints: enough for the first minute.
pub struct ShortHelp;

impl ShortHelp {
    /// Five commands and one example.
    pub const TEXT: &str = "\
tenure runs a command while holding a lock, so that it never runs twice at once.

  tenure run nightly-report -- ./report.sh

Commands:
  run       run a command while holding a lock
  ls        list locks: who holds them, who waits
  show      show one lock
  acquire   take a lock that outlives this process, for scripts
  doctor    examine the store

All commands: tenure --help      One of them: tenure run --help";
}

/// The whole grammar, for completions and the manual.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments. `Err` holds a text that is to be printed, where, and the exit code.
///
/// # Errors
/// Usage errors, and also `--help` and `--version`, which end the process as well.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Answer> {
    let mut command = command();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = command
        .try_get_matches_from_mut(&arguments)
        .map_err(Answer::from)?;
    let cli = Cli::from_arg_matches(&matches)
        .map_err(|error| Answer::from(error.format(&mut command)))?;
    match &cli.command {
        Command::Run(run) if name_was_forgotten(&arguments, &run.name) => {
            Err(no_name("run", &run.name))
        }
        Command::Elect(elect) if name_was_forgotten(&arguments, &elect.name) => {
            Err(no_name("elect", &elect.name))
        }
        _ => Ok(cli),
    }
}

/// Something to print instead of doing anything.
#[derive(Debug)]
pub struct Answer {
    /// With colour codes.
    pub text: String,
    /// The same in one plain line, if it is an error.
    pub what: String,
    /// Whether it was asked for, and so belongs on stdout.
    pub asked_for: bool,
    /// How to end.
    pub exit: Exit,
}

impl From<clap::Error> for Answer {
    fn from(mut error: clap::Error) -> Self {
        let asked_for = matches!(
            error.kind(),
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
        );
        if error.kind() == ErrorKind::InvalidSubcommand {
            suggest_command(&mut error);
        }
        let mut text = redact_text(error.render().ansi().to_string().trim_end());
        if !asked_for {
            text = text.replacen("error:", &format!("error[{}]:", Code::Usage.text()), 1);
        }
        let plain = redact_text(&error.render().to_string());
        let what = plain.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = what.split_whitespace().collect();
        let what = words.join(" ");
        Self {
            text,
            what: what.trim_start_matches("error: ").to_owned(),
            asked_for,
            exit: if asked_for {
                Exit::Success
            } else {
                Exit::Usage
            },
        }
    }
}

fn no_name(command: &str, word: &str) -> Answer {
    let what = format!("no NAME before `--`: tenure {command} NAME -- {word} …\n");
    Answer::from(clap::Error::raw(ErrorKind::MissingRequiredArgument, what))
}

// `tenure run -- make all` would run `all` under the lock `make`. A name that begins with a dash
// can stand nowhere else.
fn name_was_forgotten(arguments: &[OsString], name: &str) -> bool {
    let before = arguments.iter().position(|argument| argument == "--");
    before.is_some_and(|end| {
        !name.starts_with('-') && !arguments[..end].iter().any(|argument| argument == name)
    })
}

// clap compares by Jaro similarity, which does not see that `rnu` is a slip of the finger.
fn suggest_command(error: &mut clap::Error) {
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let nearest = command()
        .get_subcommands()
        .map(|known| {
            (
                strsim::damerau_levenshtein(typed, known.get_name()),
                known.get_name().to_owned(),
            )
        })
        .filter(|(distance, _)| *distance <= 2)
        .min();
    if let Some((_, name)) = nearest {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(vec![name]),
        );
    }
}

/// What `--color` says, looked up before parsing because usage errors are coloured too.
pub fn color(arguments: &[OsString]) -> anstream::ColorChoice {
    let texts: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .collect();
    let after = |flag: &str| {
        texts
            .windows(2)
            .find(|pair| pair[0] == flag)
            .map(|pair| pair[1])
    };
    let joined = texts.iter().find_map(|text| text.strip_prefix("--color="));
    match joined.or_else(|| after("--color")) {
        Some("always") => anstream::ColorChoice::Always,
        Some("never") => anstream::ColorChoice::Never,
        _ => anstream::ColorChoice::Auto,
    }
}

/// Where the events of `run` and `elect` are wanted, looked up without parsing because who reads them wants to
/// hear of usage errors too.
pub fn json_target(arguments: &[OsString]) -> Option<JsonTarget> {
    let end = arguments.iter().position(|argument| argument == "--");
    let mut texts = arguments[..end.unwrap_or(arguments.len())]
        .iter()
        .filter_map(|argument| argument.to_str());
    let grammar = command();
    let called = texts.find(|text| grammar.find_subcommand(text).is_some())?;
    if !matches!(called, "run" | "elect") {
        return None;
    }
    texts.find_map(|text| match text.strip_prefix("--json")? {
        "" => Some(JsonTarget::Descriptor(2)),
        value => value.strip_prefix('=')?.parse().ok(),
    })
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Cli, Answer> {
        parse(line.iter().map(OsString::from))
    }

    #[test]
    fn the_grammar_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_command_starts_at_the_first_word_that_is_no_option() {
        let Ok(Cli {
            command: Command::Run(run),
            ..
        }) = parsed(&[
            "tenure", "run", "x", "--ttl", "5s", "./job.sh", "--flag", "--ttl", "9",
        ])
        else {
            panic!("it must parse")
        };
        assert_eq!(run.job.command, ["./job.sh", "--flag", "--ttl", "9"]);
        assert_eq!(run.ttl.as_secs(), 5);
    }

    #[test]
    fn everything_after_two_dashes_is_the_command() {
        let Ok(Cli {
            command: Command::Run(run),
            common,
        }) = parsed(&["tenure", "run", "x", "--", "-q", "--store", "y"])
        else {
            panic!("it must parse")
        };
        assert_eq!(run.job.command, ["-q", "--store", "y"]);
        assert!(!common.quiet);
    }

    #[test]
    fn a_forgotten_name_is_not_taken_from_the_command() {
        for line in [
            ["tenure", "run", "--", "make", "all"].as_slice(),
            &["tenure", "run", "--ttl", "5s", "--", "make", "all"],
        ] {
            let answer = parsed(line).expect_err("no name");
            assert_eq!(answer.exit, Exit::Usage);
            assert!(answer.text.contains("tenure run NAME -- make"));
        }
        assert!(parsed(&["tenure", "run", "x", "--", "make", "--", "y"]).is_ok());
        assert!(parsed(&["tenure", "run", "--", "-x", "make"]).is_ok());
    }

    #[test]
    fn a_slip_of_the_finger_gets_a_suggestion() {
        let answer = parsed(&["tenure", "rnu"]).expect_err("no such command");
        assert_eq!(answer.exit, Exit::Usage);
        assert!(answer.text.contains("run"), "{}", answer.text);
    }

    #[test]
    fn a_usage_error_never_shows_a_password() {
        let answer =
            parsed(&["tenure", "ls", "a", "redis://:hunter22@cache"]).expect_err("too many words");
        assert!(!answer.text.contains("hunter22"), "{}", answer.text);
    }
}
