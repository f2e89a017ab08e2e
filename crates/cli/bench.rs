//! `memlocal bench`: starts `memlocal-bench`, which is installed beside this program.

use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::CommandFactory;
use launch::failure::refusal;

use crate::args::Args;

/// The command line without the word `bench`, if it is a `bench` command line.
pub fn arguments() -> Option<Vec<OsString>> {
    without_bench(env::args_os().collect())
}

/// `bench` is the subcommand if the arguments up to it parse; otherwise it is a value, as in `--data-dir bench`.
fn without_bench(mut words: Vec<OsString>) -> Option<Vec<OsString>> {
    let is_subcommand = |at: usize| {
        let parsed = Args::command().try_get_matches_from(&words[..=at]);
        parsed.is_ok_and(|parsed| parsed.subcommand_name() == Some("bench"))
    };
    let at = (1..words.len()).find(|at| words[*at] == "bench" && is_subcommand(*at))?;
    words.remove(at);
    words.remove(0);
    Some(words)
}

/// Replaces this process with `memlocal-bench` and these arguments.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let here = env::current_exe().context("the path of this program is unknown")?;
    let program = here.with_file_name(format!("memlocal-bench{EXE_SUFFIX}"));
    start(Command::new(&program).args(arguments)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(&program),
        _ => anyhow::Error::from(error).context(format!("{} cannot be started", program.display())),
    })
}

fn missing(program: &Path) -> anyhow::Error {
    let hint = "in memlocal's repository, `cargo build --release -p bench` builds it and \
                `cargo install --path crates/bench` installs it; put it beside memlocal";
    refusal(format!("{} is missing, which runs the benchmarks", program.display()), hint)
}

/// The process keeps its id, so signals reach the benchmark.
#[cfg(unix)]
fn start(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn start(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_is_found_behind_flags_and_everything_else_is_passed_on() {
        let check = |line: &str, want: Option<&str>| {
            let words = ["memlocal"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let want = want.map(|want| want.split_whitespace().map(OsString::from).collect());
            assert_eq!(without_bench(words), want, "{line}");
        };
        check("bench", Some(""));
        check("bench --help", Some("--help"));
        check("bench qa --suite locomo", Some("qa --suite locomo"));
        check("--threads 2 bench --offline serve --load", Some("--threads 2 --offline serve --load"));
        check("--data-dir bench bench forms", Some("--data-dir bench forms"));
        check("--data-dir bench corpus list", None);
        check("ask bench --docs bench", None);
        check("help bench", None);
    }
}
