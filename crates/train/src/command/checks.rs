//! `memlocal-train checks`.

use std::path::PathBuf;

use clap::Args;
use models::adapter::Adapter;
use train::base::Base;
use train::sampler::EngineSampler;
use train::{checks, forms};

#[derive(Debug, Clone, Args)]
pub(crate) struct ChecksArgs {
    /// The base model: a GGUF file, or a folder with safetensors.
    #[arg(long)]
    model: PathBuf,
    /// The adapter that reads the answers.
    #[arg(long)]
    adapter: PathBuf,
    /// Conversations whose last turn is the wanted answer, as `data` writes them.
    #[arg(long)]
    data: PathBuf,
    /// File of examples to write: those of `--data`, each followed by the checks of its sampled answers.
    #[arg(long)]
    out: PathBuf,
    /// Answers that are sampled for each; equal ones are checked once.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    #[arg(long, default_value_t = 1.0)]
    temperature: f32,
    /// Tokens of a sampled answer at most.
    #[arg(long, default_value_t = 32)]
    reply_tokens: usize,
    /// Longer examples are left out.
    #[arg(long, default_value_t = 1024)]
    longest: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn checks(args: &ChecksArgs) -> anyhow::Result<()> {
    let ChecksArgs { temperature, reply_tokens, seed, .. } = *args;
    anyhow::ensure!(temperature > 0.0 && reply_tokens > 0, "temperature and tokens of a reply are above 0");
    let base = Base::load(&args.model, args.longest, None)?;
    let adapter = Adapter::open_for(&args.adapter, &base.checkpoint.spec)?;
    let reader = base.reader();
    let turn_end = reader.turn_end()?;
    let mut sampler = EngineSampler { model: args.model.clone(), temperature, reply_tokens, turn_end };
    let sampling = (args.samples as usize, reply_tokens, seed);
    let say = &mut |line: &str| println!("{line}");
    let made = checks::make(&reader, &args.data, &mut sampler, &adapter, sampling, say)?;
    forms::write(&args.out, &made.lines)?;
    println!(
        "{} examples: checks of {} right answers and {} wrong ones; {} lines left out as longer than {}",
        made.lines.len(),
        made.right,
        made.wrong,
        made.too_long,
        args.longest
    );
    Ok(())
}
