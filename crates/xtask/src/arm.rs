//! The kernels' tests on 64-bit Arm, emulated: `cargo xtask arm`.

use std::process::{Command, ExitCode};

pub const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";

/// Builds the kernels for Arm and runs their tests under an emulator that has NEON's dot product.
pub fn run() -> ExitCode {
    let missing = missing();
    if !missing.is_empty() {
        eprintln!("xtask: {} not found", missing.join(" and "));
        eprintln!("hint: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static");
        eprintln!("hint: rustup target add {TARGET}");
        return ExitCode::FAILURE;
    }
    let mut command = crate::cargo();
    command.args(["test", "--release", "-p", "kernels", "--no-default-features", "--target", TARGET]);
    // Its many draws take minutes here; another test compares the draws of every instruction set.
    command.args(["--", "--skip", "chi_squared"]);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L /usr/aarch64-linux-gnu"));
    // The C parts of dependencies are compiled by the same toolchain.
    command.env("CC_aarch64_unknown_linux_gnu", LINKER);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The programs that are needed and not here.
pub fn missing() -> Vec<&'static str> {
    [LINKER, EMULATOR].into_iter().filter(|program| !is_there(program)).collect()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
