//! Builds the clock shim, which is embedded in the program: who runs the lab needs no C compiler.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=clockshim/clockshim.c");
    let folder = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    let shim = folder.join("clockshim.so");
    // Other systems have no LD_PRELOAD; the lab then says that it cannot turn a server's clock.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "linux") {
        return written(std::fs::write(shim, []).is_ok(), "an empty file");
    }
    let compiler = cc::Build::new().opt_level(2).get_compiler();
    let mut command = compiler.to_command();
    command
        .args(["-shared", "-fPIC", "clockshim/clockshim.c", "-o"])
        .arg(&shim);
    written(
        command.status().is_ok_and(|status| status.success()),
        "the clock shim",
    )
}

fn written(is_there: bool, what: &str) -> ExitCode {
    if is_there {
        return ExitCode::SUCCESS;
    }
    println!("cargo::error={what} cannot be built");
    ExitCode::FAILURE
}
