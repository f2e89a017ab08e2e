//! `memlocal-train`: makes training data and trains adapters.

mod command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use launch::failure::{self, refusal};
use launch::flags::STYLES;
use launch::usage;
use train::TrainError;

#[global_allocator]
static ALLOCATOR: kernels::memory::LargePages = kernels::memory::LargePages;

/// Trains low-rank adapters for a language model.
#[derive(Debug, Parser)]
#[command(name = "memlocal-train", version, about, styles = STYLES)]
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
    let Cli { command } = usage::parse(Cli::command());
    let done = match command {
        Command::Data(args) => command::data::data(&args),
        Command::Run(args) => command::run::run(&args),
        Command::Reinforce(args) => command::reinforce::reinforce(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&with_hint(error)),
    }
}

/// Gives an error of training its hint.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<TrainError>().and_then(TrainError::hint) {
        Some(hint) => refusal(format!("{error:#}"), hint),
        None => error,
    }
}
