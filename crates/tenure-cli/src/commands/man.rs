//! `tenure man [COMMAND]`: manual pages in roff, for `man -l -` or a package.

use clap_mangen::Man;

use crate::args;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::{Failure, Result};

/// Prints the page of tenure, or of one of its commands.
pub fn execute(page: Option<&str>, output: Output) -> Result<Exit> {
    let mut grammar = args::command();
    // Fills in what subcommands inherit.
    grammar.build();
    let command = match page {
        None => grammar,
        Some(name) => {
            let found = grammar.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                Failure::new(Code::Usage, format!("there is no command '{name}'"))
                    .help("tenure --help lists them")
            })?
        }
    };
    let mut roff = Vec::new();
    let rendered = Man::new(command).render(&mut roff);
    rendered.map_err(|error| Failure::new(Code::System, format!("cannot render: {error}")))?;
    output.print(String::from_utf8_lossy(&roff).trim_end())?;
    Ok(Exit::Success)
}
