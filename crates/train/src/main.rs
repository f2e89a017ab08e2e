//! `memlocal-train`: makes training data and trains adapters.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use train::TrainError;

#[global_allocator]
static ALLOCATOR: kernels::memory::LargePages = kernels::memory::LargePages;

/// Trains low-rank adapters for a language model.
#[derive(Debug, Parser)]
#[command(name = "memlocal-train", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes training examples from question-answering items (`*.jsonl.gz`).
    Data(command::data::DataArgs),
    /// Trains an adapter on given answers; the same command resumes a killed run.
    Run(command::run::RunArgs),
    /// Trains an adapter by rewards of sampled replies (GRPO); the same command resumes a killed run.
    Reinforce(command::reinforce::ReinforceArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Data(args) => command::data::data(&args),
        Command::Run(args) => command::run::run(&args),
        Command::Reinforce(args) => command::reinforce::reinforce(&args),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    error.chain().skip(1).for_each(|cause| eprintln!("cause: {cause}"));
    if let Some(hint) = error.downcast_ref::<TrainError>().and_then(TrainError::hint) {
        eprintln!("hint: {hint}");
    }
    ExitCode::FAILURE
}
