//! The same work in PyTorch and transformers on the same card, where Python has them.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use candle_core::Device;

use crate::report::Report;

const PART: &str = "PyTorch";
const SCRIPT: &str = include_str!("torch.py");
/// What Python may take to find the two packages; the first import reads gigabytes.
const IMPORT: Duration = Duration::from_secs(90);

/// Runs the script and takes in its lines: name, value, unit, with tabs between.
pub fn measure(report: &mut Report, device: &Device) -> Result<()> {
    let probe = python("import torch, transformers").stderr(Stdio::null()).spawn();
    let found = probe.map(|child| wait(child, IMPORT.min(report.left())));
    if !matches!(found, Ok(Ok((Some(status), _))) if status.success()) {
        report.left_out(PART, "python3 does not import torch and transformers");
        return Ok(());
    }
    // The script needs the memory that the networks had before.
    kernels::cuda::device::release_unused(device)?;
    let (ended, lines) = wait(python(SCRIPT).spawn()?, report.left())?;
    for line in lines.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, value, unit] = cells[..] else { continue };
        let unit = if unit == "TFLOP/s" { "TFLOP/s" } else { "tokens/s" };
        report.measured(PART, name, value.parse().unwrap_or(f64::NAN), unit);
    }
    match ended {
        None => report.left_out(PART, "the rest, the time was over"),
        Some(status) if !status.success() => {
            report.left_out(PART, &format!("the rest, the script ended with {status}"));
        }
        Some(_) => {}
    }
    Ok(())
}

fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    command.args(["-u", "-c", script]).stdout(Stdio::piped());
    command
}

/// Waits until a program ends, or ends it: its status, if it ended by itself, and what it wrote. Lines are few: they wait in
/// the pipe.
fn wait(mut child: Child, most: Duration) -> Result<(Option<ExitStatus>, String)> {
    let started = Instant::now();
    let mut status = child.try_wait()?;
    while status.is_none() && started.elapsed() < most {
        std::thread::sleep(Duration::from_millis(200));
        status = child.try_wait()?;
    }
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let mut wrote = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut wrote)?;
    }
    Ok((status, wrote))
}
