//! `cargo xtask gpu`: builds and runs the GPU's checks and measurements; `--pack` makes a bundle of them for a
//! machine without network or toolchain: the binary, and the first layers and tokens of a small model, in 25 MB at most.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::{cargo, target};

/// The largest compressed bundle.
const MAX_BYTES: u64 = 25_000_000;
/// The largest model in it; its bits hardly compress.
const MODEL_MEGABYTES: &str = "12";

/// Builds and runs; without a GPU the binary prints that and exits with 2. `model` is a GGUF file for generation.
pub fn run(model: Option<&str>) -> Result<ExitCode, String> {
    let binary = build()?;
    let out = format!("benches/runs/{}-gpu", today()?);
    let status = Command::new(&binary).arg(&out).args(model).status();
    let status = status.map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Writes `memlocal-gpu.tar.xz` into the target folder.
pub fn pack(model: &str) -> Result<ExitCode, String> {
    let binary = build()?;
    let folder = target().join("memlocal-gpu");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    std::fs::copy(&binary, folder.join("memlocal-gpu")).map_err(|error| format!("cannot copy the binary: {error}"))?;
    let cut = folder.join("model.gguf");
    done(Command::new(&binary).args(["cut", model]).arg(&cut).arg(MODEL_MEGABYTES))?;
    let run = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nexec ./memlocal-gpu \"${1:-out}\" model.gguf\n";
    std::fs::write(folder.join("run.sh"), run).map_err(|error| format!("cannot write run.sh: {error}"))?;
    let bundle = target().join("memlocal-gpu.tar.xz");
    done(Command::new("tar").arg("-C").arg(target()).arg("-cJf").arg(&bundle).arg("memlocal-gpu"))?;
    let bytes = bundle.metadata().map_err(|error| format!("no bundle: {error}"))?.len();
    eprintln!("xtask: {} of {bytes} bytes; on the machine: tar -xf, then sh memlocal-gpu/run.sh OUT", bundle.display());
    if bytes > MAX_BYTES {
        return Err(format!("that is more than {MAX_BYTES} bytes"));
    }
    Ok(ExitCode::SUCCESS)
}

fn build() -> Result<PathBuf, String> {
    if std::env::var_os("CUDA_HOME").is_none() {
        return Err("CUDA_HOME names no CUDA toolkit to build with".into());
    }
    done(cargo().args(["build", "--release", "--package", "gpu", "--features", "cuda"]))?;
    Ok(target().join("release/memlocal-gpu"))
}

fn today() -> Result<String, String> {
    let date = Command::new("date").arg("+%F").output().map_err(|error| format!("no date: {error}"))?;
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_owned())
}

fn done(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", command.get_program().display())),
        Err(error) => Err(format!("cannot run {}: {error}", command.get_program().display())),
    }
}
