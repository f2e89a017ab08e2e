//! Development tasks: `cargo xtask ci` is exactly what continuous integration runs.

mod arm;
mod random_weights;

use std::process::{Command, ExitCode};

/// The steps of `ci`, in order: the tests first, since they say most.
const CI: [(&str, &[&str]); 3] = [
    ("the tests", &["test", "--release"]),
    ("the lints", &["clippy", "--release", "--all-targets", "--", "-D", "warnings"]),
    ("the formatting", &["fmt", "--check"]),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((task, [])) if task == "ci" => ci(),
        Some((task, [])) if task == "arm" => arm::run(),
        Some((task, arguments)) if task == "random-weights" => random_weights(arguments),
        _ => {
            eprintln!("cargo xtask ci    run the tests, the lints and the formatting check");
            eprintln!("cargo xtask arm   run the kernels' tests on 64-bit Arm, emulated");
            eprintln!("{}", random_weights::USAGE);
            ExitCode::from(2)
        }
    }
}

fn random_weights(arguments: &[String]) -> ExitCode {
    match random_weights::run(arguments) {
        Ok(path) => {
            eprintln!("xtask: wrote {}", path.display());
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn ci() -> ExitCode {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    for (what, arguments) in CI {
        // A toolchain without clippy or rustfmt can still run the tests.
        if !has(&cargo, arguments[0]) {
            eprintln!("xtask: {what} are not checked: this toolchain has no `cargo {}`", arguments[0]);
            continue;
        }
        eprintln!("xtask: {what}: cargo {}", arguments.join(" "));
        match Command::new(&cargo).args(arguments).status() {
            Ok(status) if status.success() => {}
            Ok(_) => {
                eprintln!("xtask: {what} failed");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("xtask: cannot run {cargo}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// True if the toolchain has this subcommand.
fn has(cargo: &str, subcommand: &str) -> bool {
    let help = Command::new(cargo).args([subcommand, "--help"]).output();
    help.is_ok_and(|output| output.status.success())
}
