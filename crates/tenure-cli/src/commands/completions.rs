//! `tenure completions SHELL`.

use clap_complete::Shell;

use crate::args;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::failure::Result;

/// Prints the completion script.
pub fn execute(shell: Shell, output: Output) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "tenure", &mut script);
    output.print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Success)
}
