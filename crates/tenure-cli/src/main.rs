//! The binary `tenure`: everything is in the library beside it, so that tests can reach it.

fn main() -> std::process::ExitCode {
    tenure_cli::main()
}
