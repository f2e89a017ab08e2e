//! `cargo xtask crash`: the long form of the test that kills `memlocal` at random moments (`tests/crash.rs`).

use std::process::{Command, ExitCode};

const TEST: &str = "crash::a_killed_program_loses_nothing_and_repeats_nothing";

/// Runs the test with the numbers of kills and seed that are given.
///
/// # Errors
/// Unknown arguments; cargo that cannot be started.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut test = Command::new(cargo);
    test.args(["test", "--release", "--package", "memlocal", "--test", "tests", "--", "--exact", TEST, "--nocapture"]);
    test.env("MEMLOCAL_KILLS", "1000");
    let mut rest = arguments;
    while let [name, value, others @ ..] = rest {
        let variable = match *name {
            "--kills" => "MEMLOCAL_KILLS",
            "--seed" => "MEMLOCAL_SEED",
            other => return Err(format!("`{other}` is no argument of crash")),
        };
        let number: u32 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
        test.env(variable, number.to_string());
        rest = others;
    }
    if let [alone, ..] = rest {
        return Err(format!("`{alone}` needs a number"));
    }
    let status = test.status().map_err(|error| error.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
