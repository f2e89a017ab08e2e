//! The `memlocal` command: what was typed, turned into calls of the library crates, and their errors into words.

mod args;
mod ask;
mod corpus;
mod failure;
mod home;
mod ingest;
mod machine;
mod models;
mod progress;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    kernels::cpu::chosen().map_err(|reason| anyhow::anyhow!("MEMLOCAL_CPU: {reason}"))?;
    if let Some(threads) = args.threads {
        kernels::pool::set_threads(threads);
    }
    match &args.command {
        Command::Ask(ask) => ask::run(ask, args),
        Command::Ingest(ingest) => ingest::run(ingest, args),
        Command::Corpus { command } => corpus::run(command, args),
        Command::Models { command } => models::run(command, args),
        Command::PdfText { path } => Ok(sources::print_pdf_text(path)),
    }
}
