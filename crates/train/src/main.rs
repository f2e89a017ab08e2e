//! `memlocal-train`: makes training data and trains adapters.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use candle_core::Device;
use clap::{Args, Parser, Subcommand, ValueEnum};
use models::adapter::{Adapter, LowRank, Projection};
use models::{Checkpoint, LoadOptions};
use portable::{Arithmetic, Network};
use train::TrainError;
use train::batch::tokens_of;
use train::examples::Reader;
use train::forms::{self, Making};
use train::optimiser::{Decay, Settings};
use train::run::{Options, train};

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
    /// Makes training examples of question-answering items (`*.jsonl.gz`).
    Data(DataArgs),
    /// Trains an adapter; the same command goes on after a kill.
    Run(RunArgs),
}

#[derive(Debug, Clone, Args)]
struct DataArgs {
    /// Folder of the sources.
    #[arg(long)]
    from: PathBuf,
    /// File of examples to write, one JSON object a line.
    #[arg(long)]
    out: PathBuf,
    /// File for examples of contexts that are kept out of training.
    #[arg(long)]
    held_out: PathBuf,
    /// Percent of contexts that are kept out.
    #[arg(long, default_value_t = 2)]
    held_out_percent: u64,
    /// Sources to leave out, by the beginning of their names.
    #[arg(long, value_delimiter = ',', default_value = "multirc,friendsqa")]
    without: Vec<String>,
    /// Items of one source at most, by the beginning of its name: `NAME=N`.
    #[arg(long, value_delimiter = ',', value_parser = limit)]
    most: Vec<(String, usize)>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The base model: a GGUF file, or a folder with safetensors.
    #[arg(long)]
    model: PathBuf,
    /// Name of the base model, kept in the adapter's configuration.
    #[arg(long)]
    base: String,
    /// Examples to train on.
    #[arg(long)]
    data: PathBuf,
    /// Examples to score on the way.
    #[arg(long)]
    held_out: Option<PathBuf>,
    /// Held-out examples that are scored.
    #[arg(long, default_value_t = 200)]
    held_out_most: usize,
    /// Folder for checkpoints, curve and adapter.
    #[arg(long)]
    out: PathBuf,
    /// An adapter to start from.
    #[arg(long)]
    start: Option<PathBuf>,
    #[arg(long, default_value_t = 16)]
    rank: usize,
    #[arg(long, default_value_t = 32.0)]
    alpha: f32,
    /// Arithmetic of products with frozen weights: f32, or bf16 with f32 sums [default: bf16 on processors with a unit for it].
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Projections to change.
    #[arg(long, value_delimiter = ',', default_value = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj")]
    targets: Vec<String>,
    /// Groups of examples of a step; neighbours in the data that share most of their prompts are a group.
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Tokens that go through the network together.
    #[arg(long, default_value_t = 2048)]
    pass_tokens: usize,
    /// Longer examples are left out, and counted.
    #[arg(long, default_value_t = 1024)]
    longest: usize,
    #[arg(long, default_value_t = 4e-4)]
    rate: f32,
    /// Steps over which the learning rate rises.
    #[arg(long, default_value_t = 30)]
    warm_up: usize,
    /// Steps; all examples once if not given.
    #[arg(long)]
    steps: Option<usize>,
    #[arg(long, value_enum, default_value = "linear")]
    decay: Decay,
    #[arg(long, default_value_t = 0.01)]
    weight_decay: f32,
    /// Largest norm of a gradient.
    #[arg(long, default_value_t = 1.0)]
    clip: f32,
    /// Memory that the run may take, in MiB; with less, activations are computed twice.
    #[arg(long, default_value_t = 6144)]
    memory: usize,
    /// Time between checkpoints.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration)]
    checkpoint_every: Duration,
    /// Steps between scores of held-out examples.
    #[arg(long, default_value_t = 100)]
    evaluate_every: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many steps, with a checkpoint.
    #[arg(long)]
    stop_after: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precision {
    F32,
    Bf16,
}

impl Precision {
    fn arithmetic(chosen: Option<Precision>) -> Arithmetic {
        match chosen {
            Some(Precision::Bf16) => Arithmetic::Half,
            None if kernels::cpu::active_isa().has_bf16_unit() => Arithmetic::Half,
            Some(Precision::F32) | None => Arithmetic::Fused,
        }
    }
}

fn limit(text: &str) -> Result<(String, usize), String> {
    let (name, most) = text.split_once('=').ok_or("write NAME=N")?;
    Ok((name.to_owned(), most.parse().map_err(|error| format!("{most}: {error}"))?))
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Data(args) => data(&args),
        Command::Run(args) => run(&args),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    error.chain().skip(1).for_each(|cause| eprintln!("cause: {cause}"));
    if let Some(hint) = error.downcast_ref::<TrainError>().and_then(TrainError::hint) {
        eprintln!("hint: {hint}");
    }
    ExitCode::FAILURE
}

fn data(args: &DataArgs) -> anyhow::Result<()> {
    let DataArgs { from, without, seed, most, held_out_percent, .. } = args.clone();
    let making = Making { from, seed, without, most, held_out_percent };
    let made = forms::make(&making)?;
    forms::write(&args.out, &made.lines)?;
    forms::write(&args.held_out, &made.held_out)?;
    for (name, items, examples) in &made.files {
        println!("{name}: {examples} examples of {items} items");
    }
    println!("{} to train on, {} held out, {} unanswerable", made.lines.len(), made.held_out.len(), made.unanswerable);
    Ok(())
}

fn run(args: &RunArgs) -> anyhow::Result<()> {
    kernels::cpu::select_isa().map_err(|reason| TrainError::Settings(format!("MEMLOCAL_CPU: {reason}")))?;
    kernels::memory::keep_everything();
    let checkpoint = Checkpoint::open(&args.model, LoadOptions::default())
        .with_context(|| format!("cannot load {}", args.model.display()))?;
    let network = Network::load(&checkpoint.spec, &checkpoint.weights, args.longest, &Device::Cpu)?
        .with_arithmetic(Precision::arithmetic(args.precision))?;
    let reader = Reader {
        tokenizer: &checkpoint.tokenizer,
        template: &checkpoint.template,
        eos: &checkpoint.eos,
        longest: args.longest,
    };
    let training = reader.read(&args.data)?;
    let held_out = args.held_out.as_ref().map(|path| reader.read(path)).transpose()?;
    let held_out = held_out.map(|held_out| held_out.truncated(args.held_out_most));
    let tokens: usize = training.groups.iter().map(|group| tokens_of(&training.examples[group.clone()])).sum();
    println!(
        "{} examples in {} groups of {} tokens on average; {} left out as longer than {}",
        training.examples.len(),
        training.groups.len(),
        tokens / training.groups.len(),
        training.too_long,
        args.longest
    );
    let start = args.start.as_ref().map(|path| start(path, args, &checkpoint)).transpose()?;
    let targets = args.targets.iter().map(|name| {
        let names = || Projection::ALL.map(Projection::name).join(", ");
        Projection::named(name)
            .ok_or_else(|| TrainError::Settings(format!("`{name}` is no projection; there are {}", names())))
    });
    let steps = args.steps.unwrap_or(training.groups.len().div_ceil(args.batch));
    let (rate, warm_up, decay, weight_decay, clip) =
        (args.rate, args.warm_up.min(steps / 2), args.decay, args.weight_decay, args.clip);
    let options = Options {
        folder: args.out.clone(),
        base: args.base.clone(),
        seed: args.seed,
        rank: args.rank,
        alpha: args.alpha,
        targets: targets.collect::<Result<_, _>>()?,
        start,
        batch: args.batch,
        pass_tokens: args.pass_tokens,
        optimiser: Settings { rate, warm_up, steps, decay, weight_decay, clip },
        memory: args.memory << 20,
        checkpoint_every: args.checkpoint_every,
        evaluate_every: args.evaluate_every,
        stop_after: args.stop_after,
    };
    anyhow::ensure!(args.rank > 0 && args.batch > 0 && steps > 0, "rank, batch and steps are at least 1");
    let outcome = train(&network, &training, held_out.as_ref(), &options, &mut |line| println!("{line}"))?;
    println!(
        "{} steps done, loss {:.4}; the adapter is in {}",
        outcome.steps,
        outcome.loss,
        options.folder.join("adapter").display()
    );
    Ok(())
}

/// The adapter to start from, whose rank and scale must be those of the run.
fn start(path: &Path, args: &RunArgs, checkpoint: &Checkpoint) -> anyhow::Result<Adapter> {
    let adapter = Adapter::open_for(path, &checkpoint.spec)?;
    let scale = args.alpha / args.rank as f32;
    let fits = |module: &LowRank| module.rank == args.rank && (module.scale - scale).abs() < 1e-6;
    if !adapter.modules.values().all(fits) {
        let reason = format!("{} has another rank or scale than --rank and --alpha", path.display());
        return Err(TrainError::Settings(reason).into());
    }
    Ok(adapter)
}
