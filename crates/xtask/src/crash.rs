//! `cargo xtask crash`: the long form of the tests that kill `memlocal` (`tests/crash.rs`), `memlocal-train`
//! (`crates/train/tests/killed.rs`) and `memlocal-bench` (`crates/bench/tests/killed.rs`) at random moments.

use std::process::{Command, ExitCode};

/// Package, test target and name of each test.
const TESTS: [[&str; 3]; 3] = [
    ["memlocal", "tests", "crash::a_killed_program_loses_nothing_and_repeats_nothing"],
    ["train", "killed", "a_killed_run_loses_no_checkpoint_and_ends_as_an_undisturbed_one"],
    ["bench", "tests", "killed::a_bench_that_is_killed_again_and_again_loses_no_call_and_gives_the_same_answers"],
];

/// Runs each test with the numbers of kills and seed that are given.
///
/// # Errors
/// Unknown arguments; cargo that cannot be started.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut variables = vec![("MEMLOCAL_KILLS", "1000".to_owned())];
    let mut rest = arguments;
    while let [name, value, others @ ..] = rest {
        let variable = match *name {
            "--kills" => "MEMLOCAL_KILLS",
            "--seed" => "MEMLOCAL_SEED",
            other => return Err(format!("`{other}` is no argument of crash")),
        };
        let number: u32 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
        variables.push((variable, number.to_string()));
        rest = others;
    }
    if let [alone, ..] = rest {
        return Err(format!("`{alone}` needs a number"));
    }
    for [package, target, name] in TESTS {
        let mut test = Command::new(&cargo);
        test.args(["test", "--release", "--package", package, "--test", target, "--", "--exact", name, "--nocapture"]);
        let status = test.envs(variables.iter().cloned()).status().map_err(|error| error.to_string())?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
