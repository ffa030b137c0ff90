//! `cargo xtask soak`: random faults against every shape of store, for as long as one likes, and at the
//! end changes of the core that its tests must notice.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mutants::mutants;
use crate::options::SoakOptions;
use crate::shell::{self, Failure};

/// What `tenure lab chaos` can start.
pub(crate) const SHAPES: [&str; 6] = [
    "redis",
    "sentinel",
    "cluster",
    "redlock:3",
    "redlock:5",
    "sqlite",
];

/// The part that is no shape.
pub(crate) const MUTANTS: &str = "mutants";

/// What came of one part.
struct Outcome {
    /// `redis, seed 3`.
    part: String,
    /// In a few words; `Err` if that is not as it should be.
    result: Result<String, String>,
}

/// Goes on after something was found, so that one night shows all of it, and then says what came of each
/// part.
///
/// # Errors
/// When something does not build, is missing, or was found; how to see it again has been said by then.
pub(crate) fn soak(options: &SoakOptions) -> Result<(), Failure> {
    let shapes: Vec<_> = SHAPES.iter().filter(|it| options.has(it)).collect();
    let mut outcomes = Vec::new();
    if !shapes.is_empty() {
        let program = build(options)?;
        for shape in shapes {
            for seed in (options.seed..).take(options.seeds as usize) {
                outcomes.push(chaos(&program, shape, seed, options));
            }
        }
    }
    if options.has(MUTANTS) {
        shell::heading("mutants");
        let result = match mutants(&[]) {
            Ok(()) => Ok("no change of the core survives".to_owned()),
            Err(failure) => Err(failure.to_string()),
        };
        let part = MUTANTS.to_owned();
        outcomes.push(Outcome { part, result });
    }
    summary(&outcomes)
}

fn build(options: &SoakOptions) -> Result<PathBuf, Failure> {
    let needs_server = SHAPES.iter().any(|it| *it != "sqlite" && options.has(it));
    if needs_server && !shell::succeeds(Command::new("redis-server").arg("--version")) {
        return Err(Failure::new(
            "redis-server is missing (Debian, Ubuntu: apt-get install redis-server)",
        ));
    }
    shell::heading("build");
    shell::run(&mut shell::cargo([
        "build",
        "--release",
        "-p",
        "tenure-lab",
    ]))?;
    Ok(shell::target_folder().join("release").join("tenure-lab"))
}

/// One run. What it wrote down is kept only if something is wrong.
fn chaos(program: &Path, shape: &str, seed: u64, options: &SoakOptions) -> Outcome {
    let part = format!("{shape}, seed {seed}");
    shell::heading(&part);
    let name = format!("{}-{seed}", shape.replace(':', "-"));
    let folder = shell::target_folder().join("soak").join(name);
    // What an earlier soak kept would be taken for ours.
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new(program);
    command.args(["chaos", "--start", shape, "--seed", &seed.to_string()]);
    command
        .args(["--for", &options.length])
        .arg("--keep")
        .arg(&folder);
    let (code, hints) = run(&mut command);
    if code.as_ref().is_ok_and(|code| *code != Some(0)) {
        shell::say(&hints);
    }
    let result = match code {
        Ok(Some(0)) => {
            let _ = std::fs::remove_dir_all(&folder);
            Ok("no violation".to_owned())
        }
        Ok(Some(1)) => Err(again("found something", &folder)),
        Ok(code) => Err(again(&format!("broke off ({code:?})"), &folder)),
        Err(error) => Err(format!("could not start: {error}")),
    };
    Outcome { part, result }
}

/// Runs it and passes on what it says, but for where it keeps what it wrote down: that is returned, since
/// it stays there only if something is wrong.
fn run(command: &mut Command) -> (io::Result<Option<i32>>, String) {
    shell::say(&shell::paint("2", &format!("$ {}", shell::show(command))));
    let mut hints = Vec::new();
    let code = command
        .stdout(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            let lines = child.stdout.take().map(BufReader::new);
            for line in lines.into_iter().flat_map(BufRead::lines) {
                let line = line?;
                match line.starts_with("history:") || line.starts_with("again:") {
                    true => hints.push(line),
                    false => shell::say(&line),
                }
            }
            child.wait().map(|status| status.code())
        });
    (code, hints.join("\n"))
}

fn again(what: &str, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "{what}\n    history: {folder}/history.jsonl (cargo run -- lab check FILE judges it again)\n    \
         again:   cargo run -- lab chaos --plan {folder}/plan.json"
    )
}

/// One line for each part; an error if not all of them are as they should be.
fn summary(outcomes: &[Outcome]) -> Result<(), Failure> {
    shell::heading("soak");
    for Outcome { part, result } in outcomes {
        shell::say(&match result {
            Ok(text) => format!("  ok      {part}: {text}"),
            Err(text) => shell::paint("31", &format!("  FAILED  {part}: {text}")),
        });
    }
    let failed = outcomes.iter().filter(|it| it.result.is_err()).count();
    shell::say(&format!(
        "{} passed, {failed} failed",
        outcomes.len() - failed
    ));
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new("the soak found something, see above")),
    }
}
