//! The same work in PyTorch and transformers on the same card, where Python has them.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::report::Report;

const SCRIPT: &str = include_str!("torch.py");
/// The whole run is to end within ten minutes.
const WHOLE: f64 = 570.0;

/// Runs the script and takes in its lines: name, value, unit, with tabs between.
pub fn measure(report: &mut Report) -> Result<()> {
    let known = Command::new("python3").args(["-c", "import torch, transformers"]).stderr(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        eprintln!("  left out: python3 has no torch or no transformers");
        return Ok(());
    }
    let mut child = Command::new("python3").args(["-u", "-c", SCRIPT]).stdout(Stdio::piped()).spawn()?;
    let started = Instant::now();
    let most = Duration::from_secs_f64((WHOLE - report.seconds()).max(1.0));
    let pipe = child.stdout.take();
    // Lines are few: they wait in the pipe until the end.
    let ended = loop {
        if child.try_wait()?.is_some() {
            break true;
        }
        if started.elapsed() > most {
            child.kill()?;
            child.wait()?;
            break false;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let mut lines = String::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_string(&mut lines)?;
    }
    for line in lines.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, value, unit] = cells[..] else { continue };
        let unit = if unit == "TFLOP/s" { "TFLOP/s" } else { "tokens/s" };
        report.measured("PyTorch", name, value.parse().unwrap_or(f64::NAN), unit);
    }
    if !ended {
        eprintln!("  stopped: the time was over");
    }
    Ok(())
}
