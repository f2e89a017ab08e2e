//! The subcommands, and what those that train have in common.

pub(crate) mod data;
pub(crate) mod reinforce;
pub(crate) mod run;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use launch::flags::at_least_one;
use models::adapter::{Adapter, Projection};
use models::{DecoderSpec, LocalTime};
use portable::Arithmetic;
use train::base::{Base, digest};
use train::examples::Examples;
use train::lessons::Lessons;
use train::memory::{Plan, parameters};
use train::optimiser::{Decay, Settings};
use train::run::{Options, train};
use train::{TrainError, state};

/// Prints a line. Training continues if its output is no longer read.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Options of every training run.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// The base model: a GGUF file, or a folder with safetensors.
    #[arg(long)]
    pub model: PathBuf,
    /// Name of the base model, kept in the adapter's configuration.
    #[arg(long)]
    base: String,
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
    #[arg(long, default_value_t = 16, value_parser = at_least_one)]
    rank: usize,
    #[arg(long, default_value_t = 32.0)]
    alpha: f32,
    /// Arithmetic of products with frozen weights: f32, or bf16 with f32 sums [default: bf16 on processors with a unit for it].
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Projections to change.
    #[arg(long, value_delimiter = ',', default_value = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj")]
    targets: Vec<String>,
    /// Tokens that go through the network together.
    #[arg(long, default_value_t = 2048)]
    pub pass_tokens: usize,
    /// Longer examples are left out, and counted.
    #[arg(long, default_value_t = 1024)]
    longest: usize,
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
    /// Compute threads; a run resumes only with the number that it began with [default: one for each core].
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Time between checkpoints.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration)]
    checkpoint_every: Duration,
    /// Steps between scores of held-out examples.
    #[arg(long, default_value_t = 100)]
    evaluate_every: usize,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop after this number of steps, with a checkpoint.
    #[arg(long)]
    stop_after: Option<usize>,
}

/// The length and learning rate of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub rate: f32,
    pub warm_up: usize,
    pub steps: usize,
}

/// What a run needs, loaded.
pub(crate) struct Loaded {
    pub base: Base,
    pub start: Option<Adapter>,
    /// The time in the prompts.
    pub time: LocalTime,
}

impl TrainArgs {
    /// Loads the base model and the adapter to start from.
    pub fn load(&self) -> anyhow::Result<Loaded> {
        if let Some(threads) = self.threads {
            kernels::pool::set_threads(threads);
        }
        let (targets, time) = (self.targets()?, state::time(&self.out)?);
        let cannot = || format!("cannot load {}", self.model.display());
        let checkpoint = Base::open(&self.model).with_context(cannot)?;
        self.check_memory(&checkpoint.spec, &targets)?;
        let arithmetic = self.precision.map(Precision::arithmetic);
        let base = Base::of(checkpoint, self.longest, arithmetic).with_context(cannot)?.at(time);
        let start_from = |path: &PathBuf| base.start_from(path, self.rank, self.alpha, &targets);
        let start = self.start.as_ref().map(start_from).transpose()?;
        Ok(Loaded { base, start, time })
    }

    /// The weights alone may be more than the memory that the run may take: it is compared before they are loaded.
    fn check_memory(&self, spec: &DecoderSpec, targets: &[Projection]) -> Result<(), TrainError> {
        let (tokens, allowed) = (self.pass_tokens, self.memory_bytes());
        let needed = Plan::least(spec, parameters(spec, self.rank, targets), tokens);
        if needed > allowed { Err(TrainError::Memory { tokens, needed, allowed }) } else { Ok(()) }
    }

    fn memory_bytes(&self) -> usize {
        self.memory.saturating_mul(1 << 20)
    }

    fn held_out(&self, base: &Base) -> Result<Option<Examples>, TrainError> {
        let Some(path) = &self.held_out else { return Ok(None) };
        let reader = base.reader();
        let read = reader.read(path)?;
        let (all, too_long) = (read.examples.len(), read.too_long);
        let held_out = read.truncated(self.held_out_most);
        say(&format!(
            "{} of {all} held-out examples are scored; {too_long} left out as longer than {}",
            held_out.examples.len(),
            reader.longest
        ));
        Ok(Some(held_out))
    }

    pub fn targets(&self) -> Result<Vec<Projection>, TrainError> {
        let named = |name: &String| {
            let names = || Projection::ALL.map(Projection::name).join(", ");
            Projection::named(name)
                .ok_or_else(|| TrainError::Settings(format!("`{name}` is no projection; there are {}", names())))
        };
        self.targets.iter().map(named).collect()
    }

    /// Trains, and prints progress.
    pub fn train(&self, loaded: Loaded, lessons: &mut dyn Lessons, schedule: Schedule) -> anyhow::Result<()> {
        let Loaded { base, start, time } = loaded;
        let Schedule { rate, warm_up, steps } = schedule;
        let (decay, weight_decay, clip) = (self.decay, self.weight_decay, self.clip);
        let options = Options {
            folder: self.out.clone(),
            base: self.base.clone(),
            base_digest: digest(&self.model)?,
            seed: self.seed,
            rank: self.rank,
            alpha: self.alpha,
            targets: self.targets()?,
            start,
            optimiser: Settings { rate, warm_up: warm_up.min(steps / 2), steps, decay, weight_decay, clip },
            memory: self.memory_bytes(),
            checkpoint_every: self.checkpoint_every,
            evaluate_every: self.evaluate_every,
            stop_after: self.stop_after,
            time,
        };
        let held_out = self.held_out(&base)?;
        let outcome = train(&base.network, lessons, held_out.as_ref(), &options, &mut say)?;
        let adapter = options.folder.join("adapter");
        say(&format!(
            "{} steps done, loss {:.4}; the adapter is in {}",
            outcome.steps,
            outcome.loss,
            adapter.display()
        ));
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    F32,
    Bf16,
}

impl Precision {
    fn arithmetic(self) -> Arithmetic {
        match self {
            Precision::Bf16 => Arithmetic::Half,
            Precision::F32 => Arithmetic::Fused,
        }
    }
}
