//! `memlocal-train run`.

use std::path::PathBuf;

use clap::Args;
use launch::flags::at_least_one;
use train::batch::tokens_of;
use train::lessons::Supervised;

use super::{Schedule, TrainArgs, say};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    training: TrainArgs,
    /// Examples to train on.
    #[arg(long)]
    data: PathBuf,
    /// Groups of examples of a step; neighbours in the data that share most of their prompts are a group.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    #[arg(long, default_value_t = 4e-4)]
    rate: f32,
    /// Steps over which the learning rate rises; half of all at most.
    #[arg(long, default_value_t = 30)]
    warm_up: usize,
    /// Steps; all examples once if not given.
    #[arg(long, value_parser = at_least_one)]
    steps: Option<usize>,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let loaded = args.training.load()?;
    let reader = loaded.base.reader();
    let training = reader.read(&args.data)?;
    let tokens: usize = training.groups.iter().map(|group| tokens_of(&training.examples[group.clone()])).sum();
    say(&format!(
        "{} examples in {} groups of {} tokens on average; {} left out as longer than {}",
        training.examples.len(),
        training.groups.len(),
        tokens / training.groups.len(),
        training.too_long,
        reader.longest
    ));
    let batch = args.batch as usize;
    let steps = args.steps.unwrap_or(training.groups.len().div_ceil(batch));
    let (pass_tokens, seed) = (args.training.pass_tokens, args.training.seed);
    let mut lessons = Supervised { training: &training, batch, pass_tokens, seed };
    args.training.train(loaded, &mut lessons, Schedule { rate: args.rate, warm_up: args.warm_up, steps })
}
