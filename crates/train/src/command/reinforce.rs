//! `memlocal-train reinforce`.

use std::path::{Path, PathBuf};

use calls::Agent;
use candle_core::Device;
use clap::Args;
use clap::builder::PossibleValuesParser;
use launch::flags::at_least_one;
use portable::{Lora, LoraSettings};
use train::TrainError;
use train::policy::Policy;
use train::reinforce::Reinforcement;
use train::rollouts::Offline;
use train::sampler::EngineSampler;

use super::{Loaded, Schedule, TrainArgs, say};

#[derive(Debug, Args)]
pub(crate) struct ReinforceArgs {
    #[command(flatten)]
    training: TrainArgs,
    /// Conversations whose last turn is the wanted answer; replies are sampled with the newest adapter and rewarded by the F1
    /// of their words.
    #[arg(long, required_unless_present = "rollouts", conflicts_with = "rollouts")]
    data: Option<PathBuf>,
    /// Files of `memlocal-bench qa --rollouts`, sampled with the adapter of `--start`: one trajectory of every question in each.
    #[arg(long, num_args = 1.., requires = "agent")]
    rollouts: Vec<PathBuf>,
    /// The agents whose replies in the rollouts are learnt from, such as `researcher,judge`: GAM's information check is a call of
    /// the judge.
    #[arg(long, conflicts_with = "data", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Agent::ALL.map(|agent| agent.to_string())))]
    agent: Vec<String>,
    /// Prompts of `--data`, or trajectories of `--rollouts`, of a step.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Replies to each prompt of `--data`.
    #[arg(long, default_value_t = 8, conflicts_with = "rollouts", value_parser = clap::value_parser!(u32).range(2..))]
    samples: u32,
    /// Tokens of a reply to a prompt of `--data` at most.
    #[arg(long, default_value_t = 32, conflicts_with = "rollouts", value_parser = at_least_one)]
    reply_tokens: usize,
    /// Temperature at which replies are drawn and scored; calls of --rollouts at another one are left out, and counted
    /// [default: 1; with --rollouts 0.3, as `memlocal-bench qa` draws them].
    #[arg(long)]
    temperature: Option<f32>,
    /// Weight of the divergence from the adapter that training starts from.
    #[arg(long, default_value_t = 0.02)]
    kl: f32,
    /// How far probability ratios of `--rollouts` may be from 1; replies to `--data` have a ratio of 1.
    #[arg(long, default_value_t = 0.2, conflicts_with = "data")]
    ratio_clip: f32,
    #[arg(long, default_value_t = 1e-4)]
    rate: f32,
    /// Steps over which the learning rate rises; half of all at most.
    #[arg(long, default_value_t = 5)]
    warm_up: usize,
    /// Steps; all prompts or trajectories once if not given.
    #[arg(long, value_parser = at_least_one)]
    steps: Option<usize>,
}

pub(crate) fn reinforce(args: &ReinforceArgs) -> anyhow::Result<()> {
    let temperature = args.temperature();
    anyhow::ensure!(
        temperature > 0.0 && temperature.is_finite(),
        "the temperature is {temperature}; it must be a number above 0"
    );
    anyhow::ensure!(args.kl >= 0.0, "the weight of the divergence is {}; it must be at least 0", args.kl);
    anyhow::ensure!(args.ratio_clip > 0.0, "the clip of ratios is {}; it must be above 0", args.ratio_clip);
    let mut loaded = args.training.load()?;
    loaded.base = loaded.base.at_temperature(temperature)?;
    match &args.data {
        Some(path) => by_samples(args, loaded, path),
        None => by_rollouts(args, loaded),
    }
}

fn by_samples(args: &ReinforceArgs, loaded: Loaded, data: &Path) -> anyhow::Result<()> {
    let reader = loaded.base.reader();
    let tasks = reader.tasks(data, args.reply_tokens)?;
    say(&format!(
        "{} tasks, {} prompts of a step, {} replies to each; {} left out as longer than {}",
        tasks.tasks.len(),
        args.batch,
        args.samples,
        tasks.too_long,
        reader.longest
    ));
    let (temperature, reply_tokens) = (args.temperature(), args.reply_tokens);
    let (model, time) = (args.training.model.clone(), loaded.time);
    let mut sampler = EngineSampler { model, temperature, reply_tokens, time };
    let batch = args.batch as usize;
    let steps = args.steps.unwrap_or(tasks.tasks.len().div_ceil(batch));
    let mut lessons = Reinforcement {
        tasks: &tasks,
        sampler: &mut sampler,
        sampling: args.sampling(),
        batch,
        samples: args.samples as usize,
        reply_tokens,
        pass_tokens: args.training.pass_tokens,
        policy: args.policy(),
        reference: args.reference(&loaded)?,
        seed: args.training.seed,
    };
    args.training.train(loaded, &mut lessons, args.schedule(steps))
}

fn by_rollouts(args: &ReinforceArgs, loaded: Loaded) -> anyhow::Result<()> {
    let agents = Agent::ALL.into_iter().filter(|agent| args.agent.contains(&agent.to_string()));
    let agents: Vec<Agent> = agents.collect();
    let reader = loaded.base.reader();
    let rollouts = reader.rollouts(&args.rollouts, &agents, args.temperature())?;
    say(&format!(
        "{} trajectories with {} calls of the {}, mean reward {:.3}; left out: {} (longest: {} tokens)",
        rollouts.trajectories.len(),
        rollouts.trajectories.iter().map(Vec::len).sum::<usize>(),
        args.agent.join(" and the "),
        rollouts.reward,
        rollouts.left_out,
        reader.longest
    ));
    let batch = args.batch as usize;
    let steps = args.steps.unwrap_or(rollouts.trajectories.len().div_ceil(batch));
    let mut lessons = Offline {
        rollouts: &rollouts,
        sampling: args.sampling(),
        batch,
        pass_tokens: args.training.pass_tokens,
        policy: args.policy(),
        reference: args.reference(&loaded)?,
        seed: args.training.seed,
    };
    args.training.train(loaded, &mut lessons, args.schedule(steps))
}

impl ReinforceArgs {
    fn temperature(&self) -> f32 {
        self.temperature.unwrap_or(if self.data.is_some() { 1.0 } else { 0.3 })
    }

    fn sampling(&self) -> String {
        format!("temperature {}", self.temperature())
    }

    fn policy(&self) -> Policy {
        Policy { clip: self.ratio_clip, kl: self.kl }
    }

    fn schedule(&self, steps: usize) -> Schedule {
        Schedule { rate: self.rate, warm_up: self.warm_up, steps }
    }

    /// The adapter that training starts from, frozen.
    fn reference(&self, loaded: &Loaded) -> Result<Option<Lora>, TrainError> {
        let training = &self.training;
        let settings = LoraSettings { rank: training.rank, alpha: training.alpha, targets: training.targets()? };
        // Modules that the adapter lacks have no effect, whatever their A: it may be zero, since they are not trained.
        let frozen =
            |adapter| Lora::from_adapter(loaded.base.network.spec(), settings.clone(), adapter, &Device::Cpu, || 0.0);
        Ok(loaded.start.as_ref().map(frozen).transpose()?)
    }
}
