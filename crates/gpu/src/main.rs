//! Checks and measures the CUDA kernels on a GPU in one unattended run without network: `memlocal-gpu OUT [MODEL.gguf]`.
//! `--only PART` runs one part in its own process, as `compute-sanitizer` and a part that crashes need it.
//!
//! Checks: candle's quantised products; every kernel against its reference on the processor with poisoned outputs; a batch against each sequence alone,
//! scattered pages against pages in order, a cached prefix against a computed one; greedy text against the processor's.
//! Measures: copy and products as ceilings; prefill, decoding and embedding at the sizes of Qwen2.5-7B, 14B and BGE-M3; the
//! same in PyTorch where there is one. Rows and a summary go to OUT.
//!
//! Exit codes: 0 all checks passed, 1 a check failed, 2 there is no usable GPU.

use std::process::ExitCode;
use std::time::Instant;

#[cfg(feature = "cuda")]
mod batch;
#[cfg(feature = "cuda")]
mod ceiling;
#[cfg(feature = "cuda")]
mod greedy;
#[cfg(feature = "cuda")]
mod invariants;
#[cfg(feature = "cuda")]
mod numerics;
#[cfg(feature = "cuda")]
mod products;
#[cfg(feature = "cuda")]
mod report;
#[cfg(feature = "cuda")]
mod speed;
#[cfg(feature = "cuda")]
mod torch;

mod cut;

fn main() -> ExitCode {
    let started = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cut", from, to, megabytes] => cut::cut(from, to, megabytes).map(|()| ExitCode::SUCCESS),
        [out] if !out.starts_with('-') => run(out, None, None, started),
        [out, "--only", part] => run(out, None, Some(part), started),
        [out, model] => run(out, Some(model), None, started),
        [out, model, "--only", part] => run(out, Some(model), Some(part), started),
        _ => {
            eprintln!("memlocal-gpu OUT [MODEL.gguf] [--only PART]   check and measure; results go to the folder OUT");
            eprintln!("                                              parts: kernels, invariants, greedy, ceilings,");
            eprintln!("                                              products, speed, torch");
            eprintln!("memlocal-gpu cut FROM.gguf TO.gguf MEGABYTES  the first layers of a model, as many as fit");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("memlocal-gpu: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(not(feature = "cuda"))]
#[expect(clippy::unnecessary_wraps, reason = "with a GPU it can fail")]
fn run(_: &str, _: Option<&str>, _: Option<&str>, _: Instant) -> anyhow::Result<ExitCode> {
    eprintln!("memlocal-gpu: this build has no CUDA (build it with --features cuda)");
    Ok(ExitCode::from(2))
}

/// One part of the run.
#[cfg(feature = "cuda")]
type Part<'a> = &'a dyn Fn(&mut report::Report) -> anyhow::Result<()>;

#[cfg(feature = "cuda")]
fn run(out: &str, model: Option<&str>, only: Option<&str>, started: Instant) -> anyhow::Result<ExitCode> {
    use anyhow::Context;
    let device = match kernels::cuda::device::open(0) {
        Ok(device) => device,
        Err(error) => {
            eprintln!("memlocal-gpu: no card can be used: {:#}", anyhow::Error::from(error));
            return Ok(ExitCode::from(2));
        }
    };
    let out = std::path::Path::new(out);
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut report = report::Report::new(&kernels::cuda::device::device_info(&device)?, started);
    report.products(kernels::cuda::settle_quantised(&device));
    // What takes longest comes last: whatever is cut off is what can be missed best.
    let parts: [(&str, Part<'_>); 7] = [
        ("kernels", &|report| numerics::check(report, &device)),
        ("invariants", &|report| invariants::check(report, &device)),
        ("greedy", &|report| model.map_or(Ok(()), |model| greedy::check(report, &device, model))),
        ("ceilings", &|report| ceiling::measure(report, &device)),
        ("products", &|report| products::measure(report, &device)),
        ("speed", &|report| speed::measure(report, &device)),
        ("torch", &|report| torch::measure(report, &device)),
    ];
    anyhow::ensure!(only.is_none_or(|only| parts.iter().any(|(name, _)| *name == only)), "there is no part {only:?}");
    for (name, part) in parts.into_iter().filter(|(name, _)| only.is_none_or(|only| *name == only)) {
        eprintln!("memlocal-gpu: {name}, {:.0} s gone", report.seconds());
        if report.left().is_zero() {
            report.left_out(name, "the time was over");
        } else if let Err(error) = part(&mut report) {
            report.failed(name, &format!("{error:#}"));
        }
        // After every part, so that a run that is stopped leaves what it has.
        report.write(out)?;
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
