//! `cargo xtask crash`: the long form of the tests that kill `memlocal` (`tests/crash.rs`), `memlocal-train`
//! (`crates/train/tests/killed.rs`) and `memlocal-bench` (`crates/bench/tests/killed.rs`) at random moments.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Package, test target and name of each test, and its share of the kills in percent.
const TESTS: [([&str; 3], u32); 3] = [
    (["memlocal", "tests", "crash::a_killed_program_loses_nothing_and_repeats_nothing"], 60),
    (["train", "tests", "killed::a_killed_run_loses_no_checkpoint_and_ends_as_an_undisturbed_one"], 20),
    (["bench", "tests", "killed::a_bench_that_is_killed_again_and_again_loses_no_call_and_gives_the_same_answers"], 20),
];

/// The default number of kills of all tests together.
const KILLS: u32 = 1000;

/// Runs the tests with the number of kills, the seed and the folder for their reports that are given.
///
/// # Errors
/// Unknown arguments; cargo that cannot be started; a folder that cannot be written.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let (mut kills, mut seed, mut out) = (KILLS, None, None);
    let mut rest = arguments;
    while let [name, value, others @ ..] = rest {
        let number = || value.parse::<u32>().map_err(|_| format!("`{value}` is no number"));
        match *name {
            "--kills" => kills = number()?,
            "--seed" => seed = Some(number()?.to_string()),
            "--out" => out = Some(Path::new(value)),
            other => return Err(format!("`{other}` is no argument of crash")),
        }
        rest = others;
    }
    if let [alone, ..] = rest {
        return Err(format!("`{alone}` needs a value"));
    }
    let (mut report, mut all_pass) = (String::new(), true);
    for ([package, target, name], percent) in TESTS {
        let part = (kills * percent).div_ceil(100).to_string();
        let mut test = crate::cargo();
        test.args(["test", "--release", "--package", package, "--test", target, "--", "--exact", name, "--nocapture"]);
        test.env("MEMLOCAL_KILLS", part).envs(seed.iter().map(|seed| ("MEMLOCAL_SEED", seed)));
        let (lines, passes) = printed(test)?;
        all_pass &= passes;
        let result = if passes { "passed" } else { "failed" };
        let of_test = lines.iter().filter(|line| REPORTED.iter().any(|start| line.starts_with(start)));
        report.extend([package, ": ", result, "\n"]);
        of_test.for_each(|line| report.extend(["  ", line, "\n"]));
    }
    if let Some(folder) = out {
        let file = folder.join("kills.txt");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, report))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(if all_pass { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The beginnings of the lines that the tests report.
const REPORTED: [&str; 3] = ["an undisturbed run: ", "killed ", "at most "];

/// The lines that a test prints, which are printed here too, and whether it passes.
fn printed(mut test: Command) -> Result<(Vec<String>, bool), String> {
    let mut child = test.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let out = child.stdout.take().ok_or("the test has no output")?;
    let print = |line: String| {
        println!("{line}");
        line
    };
    let lines = BufReader::new(out).lines().map_while(Result::ok).map(print).collect();
    Ok((lines, child.wait().map_err(|error| error.to_string())?.success()))
}
