//! The `memlocal` command: what was typed, turned into calls of the library crates, and their errors into words.

mod answering;
mod args;
mod ask;
mod bench;
mod budget;
mod card;
mod compare;
mod config_file;
mod corpus;
mod explain;
mod failure;
mod forms;
mod home;
mod ingest;
mod machine;
mod methods;
mod models;
mod output;
mod progress;
mod questions;
mod serve;
mod service;
mod shell;
mod speed;

use std::process::ExitCode;

use anyhow::Result;

use args::{Args, Command};
use kernels::cpu::Isa;

#[global_allocator]
static MEMORY: kernels::memory::LargePages = kernels::memory::LargePages;

fn main() -> ExitCode {
    let args = match config_file::parse() {
        Ok(args) => args,
        Err(error) => return failure::report(&error),
    };
    // Everything that is finished is on the disk, so there is nothing to wind down. Where the signal is ignored already
    // (`nohup`, or a job in the background of a script) it stays ignored.
    // A server lets answers come to their end and sees to that itself.
    if !matches!(args.command, Command::Serve(_)) {
        let _ = ctrlc::try_set_handler(|| std::process::exit(failure::report_interruption()));
    }
    run(&args).unwrap_or_else(|error| failure::report(&error))
}

fn run(args: &Args) -> Result<ExitCode> {
    let machine = &args.machine;
    kernels::cpu::select_isa().map_err(unknown_isa)?;
    if let Some(threads) = machine.threads {
        kernels::pool::set_threads(threads);
    }
    match &args.command {
        Command::Ask(ask) => ask::run(ask, machine),
        Command::Ingest(ingest) => ingest::run(ingest, machine),
        Command::Corpus { command } => corpus::run(command, machine),
        Command::Methods { command } => methods::run(command),
        Command::Models { command } => models::run(command, machine),
        Command::Serve(serve) => serve::run(serve, machine),
        Command::Mcp(mcp) => serve::run_mcp(mcp, machine),
        Command::Keys { command } => serve::run_keys(command, machine),
        Command::Completions { shell } => shell::run_completions(*shell),
        Command::Man { folder } => shell::run_man(folder),
        Command::Bench { command } => bench::run(command, machine),
        Command::PdfText { path } => Ok(sources::print_pdf_text(path)),
    }
}

/// What MEMLOCAL_CPU says is nothing that this processor runs.
fn unknown_isa(reason: String) -> anyhow::Error {
    let available: Vec<String> = Isa::available().map(|isa| isa.to_string()).collect();
    failure::refusal(
        format!("MEMLOCAL_CPU: {reason}"),
        format!(
            "this processor runs {}; without MEMLOCAL_CPU the fastest of them that was measured is used",
            available.join(", ")
        ),
    )
}
