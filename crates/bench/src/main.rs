//! The `memlocal-bench` command: data sets, scorers, reports, plots and load generators (`eval`) at the command line.

mod args;
mod engine_speed;
mod forms;
mod provenance;
mod qa;
mod retrieval;
mod server_speed;

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use launch::config_file::Sections;
use launch::flags::KvFormat;
use launch::{config_file, failure, shell};
use models::KvPrecision;

use args::{Args, Command};

#[global_allocator]
static MEMORY: kernels::memory::LargePages = kernels::memory::LargePages;

fn main() -> ExitCode {
    kernels::memory::limit_heaps();
    let args: Args = match config_file::parse(Args::command(), Sections::Ignored) {
        Ok(args) => args,
        Err(error) => return failure::report(&error),
    };
    launch::exit_on_interrupt();
    run(&args).unwrap_or_else(|error| failure::report(&error))
}

fn run(args: &Args) -> Result<ExitCode> {
    let global = &args.global;
    launch::set_up_cpu(global)?;
    let isa = kernels::cpu::active_isa();
    let kv = match global.kv {
        KvFormat::F16 => String::new(),
        other => format!(", KV cache in {}", KvPrecision::from(other)),
    };
    eval::name_kernels(match &launch::gpu_names(global)[..] {
        [] => format!("{isa}, {} numerics{kv}", isa.numerics()),
        gpus => format!("CUDA, {}", gpus.join(", ")),
    });
    match &args.command {
        Command::Retrieval(bench) => retrieval::run(bench, global)?,
        Command::Engine(bench) => engine_speed::run(bench, global)?,
        Command::Serve(bench) => server_speed::run(bench, global)?,
        Command::Forms(bench) => forms::run(bench, global)?,
        Command::Qa(bench) => qa::run(bench, global)?,
        Command::Rescore { run } => qa::rescore(run)?,
        Command::Compare { a, b } => qa::compare(a, b)?,
        Command::Plot { runs, out } => qa::plot(runs, out)?,
        Command::Publish { run, out } => eval::qa::publish(run, out)?,
        Command::Replay { run } => return qa::replay(run),
        Command::Completions { shell } => shell::print_completions::<Args>(*shell)?,
        Command::Man { folder } => shell::write_man_pages::<Args>(folder)?,
        Command::PdfText { path } => return Ok(sources::print_pdf_text(path)),
    }
    Ok(ExitCode::SUCCESS)
}
