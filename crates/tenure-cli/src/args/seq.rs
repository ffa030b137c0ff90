//! The grammar of `tenure seq`.

use clap::Args;

use super::duration::{self, Wait};

/// What `tenure seq --help` begins with.
pub(super) const ABOUT: &str = "\
Print a number that nobody else gets.

Numbers grow and are never given twice, also after a crash and after the store lost its data. There \
are gaps between them, always: numbers without gaps can be promised only by the database that keeps \
what is numbered.";

/// `tenure seq NAME [--block N]`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  order=$(tenure seq orders) || exit")]
pub struct SeqArgs {
    /// The name of the sequence
    pub name: String,
    /// Print this many consecutive numbers, one per line, at the price of one: unique, but later numbers of
    /// others may be in use before these are; 1 to 512
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub block: Option<u32>,
    /// How long to wait for a store that recovers from a loss of its data, or that answered before and cannot be
    /// asked now; before its first answer never longer than 5s
    #[arg(long, value_name = "DURATION", default_value = "forever", value_parser = duration::parse_wait)]
    pub wait: Wait,
}
