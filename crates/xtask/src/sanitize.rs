//! Runs the kernels' unsafe code under tools that detect undefined behaviour: `cargo xtask sanitize`.

use std::process::{Command, ExitCode};

/// `-Zsanitizer` is not in stable Rust.
const CARGO: [&str; 2] = ["cargo", "+nightly"];

/// Runs the kernels' tests, for every ISA of this processor, with the address sanitizer, which detects accesses out of
/// bounds; then the thread pool in Miri, which detects data races and invalid borrows.
pub fn run() -> ExitCode {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let sanitized = ["test", "-p", "kernels", "--no-default-features", "--lib", "--tests", "--target", &target];
    let interpreted = ["miri", "test", "-p", "kernels", "--no-default-features", "--lib", "pool::"];
    let address = cargo("asan", &sanitized, "RUSTFLAGS", "-Zsanitizer=address");
    if address != ExitCode::SUCCESS {
        return address;
    }
    cargo("miri", &interpreted, "MIRIFLAGS", "-Zmiri-disable-isolation")
}

/// Runs a step in a separate target folder, so that its build replaces nothing.
fn cargo(folder: &str, arguments: &[&str], variable: &str, value: &str) -> ExitCode {
    eprintln!("xtask: {variable}={value} {} {}", CARGO.join(" "), arguments.join(" "));
    // The toolchain that runs this task must not select the one that it starts.
    let mut command = Command::new(CARGO[0]);
    command.args(&CARGO[1..]).args(arguments).env(variable, value).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    match command.arg("--target-dir").arg(format!("target/{folder}")).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("hint: rustup toolchain install nightly --component miri,rust-src");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
