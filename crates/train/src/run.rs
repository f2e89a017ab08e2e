//! A training run: steps, progress, checkpoints, the adapter.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use models::LocalTime;
use models::adapter::{Adapter, Projection, Saved, SavedPrecision};
use portable::{Lora, LoraSettings, Network};
use random::Random;

use crate::batch::{Pass, passes};
use crate::curve::{self, Row};
use crate::error::{Result, THREADS, TrainError, io};
use crate::examples::Examples;
use crate::gradient::{score, zeros};
use crate::lessons::{Learned, Learner, Lessons};
use crate::memory::{Plan, adapter_bytes};
use crate::optimiser::{AdamW, Settings};
use crate::state::{self, Position};

/// The folder of a run that holds the adapter.
pub const ADAPTER: &str = "adapter";

/// The file that a run locks.
const LOCK: &str = "lock";

/// The largest number in f16, in which adapters are saved.
const LARGEST_WEIGHT: f32 = 65504.0;

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder for checkpoints, curve and adapter.
    pub folder: PathBuf,
    /// Name of the base model, for the adapter's configuration.
    pub base: String,
    /// A digest of the base model's files, such as [`crate::base::digest`].
    pub base_digest: String,
    pub seed: u64,
    pub rank: usize,
    pub alpha: f32,
    pub targets: Vec<Projection>,
    /// The adapter to start from, with the same rank and scale; otherwise one that changes nothing.
    pub start: Option<Adapter>,
    pub optimiser: Settings,
    /// The memory limit of the run in bytes.
    pub memory: usize,
    /// Time between checkpoints.
    pub checkpoint_every: Duration,
    /// Steps between scores of the held-out examples.
    pub evaluate_every: usize,
    /// Stop with a checkpoint after this many steps, as if killed.
    pub stop_after: Option<usize>,
    /// The time in the prompts, which checkpoints keep ([`crate::state::time`]).
    pub time: LocalTime,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub steps: usize,
    /// Mean loss of the last steps, fifty at most.
    pub loss: f32,
    /// On the held-out examples: loss, and the share of answers that greedy decoding gives exactly.
    pub held_out: Option<(f32, f32)>,
    /// The memory that the run takes at most, in bytes.
    pub memory_bytes: usize,
}

/// Trains an adapter, from the last checkpoint if there is one. `say` receives lines of progress.
///
/// # Errors
/// Any [`TrainError`]; saved files are kept.
pub fn train(
    network: &Network,
    lessons: &mut dyn Lessons,
    held_out: Option<&Examples>,
    options: &Options,
    say: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let mut run = Run::begin(network, lessons, held_out, options, say)?;
    let last = options.stop_after.unwrap_or(usize::MAX).min(options.optimiser.steps);
    let mut saved = Instant::now();
    while run.position.step < last {
        run.step(say)?;
        if saved.elapsed() >= options.checkpoint_every {
            run.save()?;
            saved = Instant::now();
        }
    }
    run.save()?;
    let tail = &run.rows[run.rows.len().saturating_sub(50)..];
    let loss = tail.iter().map(|row| row.loss).sum::<f32>() / tail.len().max(1) as f32;
    let held_out = run.rows.iter().rev().find_map(|row| row.held_out);
    Ok(Outcome { steps: run.position.step, loss, held_out, memory_bytes: run.plan.bytes() })
}

struct Run<'a> {
    network: &'a Network,
    lessons: &'a mut dyn Lessons,
    held_out: Vec<Pass>,
    options: &'a Options,
    lora: Lora,
    optimiser: AdamW,
    plan: Plan,
    position: Position,
    rows: Vec<Row>,
    /// Seconds of a step, and of scoring the held-out examples once, for the time left; 0 as long as they are unknown.
    pace: f64,
    evaluation: f64,
    _lock: File,
}

impl<'a> Run<'a> {
    fn begin(
        network: &'a Network,
        lessons: &'a mut dyn Lessons,
        held_out: Option<&'a Examples>,
        options: &'a Options,
        say: &mut dyn FnMut(&str),
    ) -> Result<Run<'a>> {
        check(options)?;
        let lock = lock(&options.folder)?;
        let settings = LoraSettings { rank: options.rank, alpha: options.alpha, targets: options.targets.clone() };
        let mut random = Random::named(options.seed, "adapter");
        let uniform = || (random.unit() * 2.0 - 1.0) as f32;
        let lora = match &options.start {
            Some(adapter) => Lora::from_adapter(network.spec(), settings, adapter, network.device(), uniform)?,
            None => Lora::new(network.spec(), settings, network.device(), uniform)?,
        };
        let mut optimiser = AdamW::new(options.optimiser, &lora.variables())?;
        let parameters: usize = optimiser.parameters.iter().map(|parameter| parameter.value.len()).sum();
        let tokens = lessons.pass_tokens();
        let other = lessons.other_bytes()?.saturating_add(options.start.as_ref().map_or(0, adapter_bytes));
        let plan = options.memory.checked_sub(other);
        let plan = plan.and_then(|limit| Plan::new(network.spec(), parameters, tokens, limit)).ok_or_else(|| {
            let needed = Plan::least(network.spec(), parameters, tokens).saturating_add(other);
            TrainError::Memory { tokens, needed, allowed: options.memory }
        })?;
        let plan = Plan { other, ..plan };
        say(&format!("{parameters} trainable weights; memory {plan}"));
        let (settings, time) = (settings_of(options, network, lessons), Some(options.time.to_string()));
        let mut position = Position { step: 0, tokens: 0, seconds: 0.0, settings, time };
        let mut rows = Vec::new();
        // Compared first: the parameters of a run with other settings do not fit, which would look like damage.
        if let Some(before) = state::position_of(&options.folder)? {
            compare(&options.folder, &before.settings, &position.settings)?;
        }
        if let Some((before, restored)) = state::load(&options.folder, &optimiser.parameters)? {
            optimiser.parameters = restored;
            optimiser.store(&lora.variables())?;
            rows = curve::read(&options.folder, before.step);
            say(&format!("resumes after step {}", before.step));
            position = Position { time: position.time, ..before };
        }
        let held_out = held_out.map_or_else(Vec::new, |held_out| {
            let groups = held_out.groups.iter().map(|group| &held_out.examples[group.clone()]);
            passes(&groups.collect::<Vec<_>>(), tokens)
        });
        let (pace, evaluation) = (0.0, 0.0);
        Ok(Run {
            network,
            lessons,
            held_out,
            options,
            lora,
            optimiser,
            plan,
            position,
            rows,
            pace,
            evaluation,
            _lock: lock,
        })
    }

    fn step(&mut self, say: &mut dyn FnMut(&str)) -> Result<()> {
        let begun = Instant::now();
        let (step, options) = (self.position.step, self.options);
        let mut gradients = zeros(&self.lora);
        let learner = Learner { network: self.network, lora: &self.lora, kept: self.plan.kept };
        let Learned { loss, tokens, rewarded } = self.lessons.step(step, learner, &mut gradients)?;
        let norm = self.optimiser.update(step, &gradients);
        let weight = self.optimiser.largest();
        if !(loss.is_finite() && norm.is_finite() && weight <= LARGEST_WEIGHT) {
            return Err(TrainError::Diverged { step: step + 1, loss, norm, weight });
        }
        self.optimiser.store(&self.lora.variables())?;
        let seconds = begun.elapsed().as_secs_f64();
        self.position.step += 1;
        self.position.tokens += tokens as u64;
        self.position.seconds += seconds;
        self.pace = if self.pace == 0.0 { seconds } else { 0.9 * self.pace + 0.1 * seconds };
        let done = self.position.step;
        let due = done.is_multiple_of(options.evaluate_every.max(1)) || done == options.optimiser.steps;
        let begun = Instant::now();
        let held_out = if due && !self.held_out.is_empty() { Some(self.evaluate()?) } else { None };
        if held_out.is_some() {
            self.evaluation = begun.elapsed().as_secs_f64();
        }
        let rate = options.optimiser.rate_at(step);
        let (tokens_so_far, time) = (self.position.tokens, self.position.seconds);
        self.rows.push(Row { step: done, loss, rate, norm, tokens: tokens_so_far, seconds: time, held_out, rewarded });
        let left = Duration::from_secs(Duration::from_secs_f64(self.seconds_left()).as_secs());
        let held_out = held_out
            .map_or(String::new(), |(loss, exact)| format!(", held out: loss {loss:.4}, exact {:.1} %", 100.0 * exact));
        let rewarded =
            rewarded.map_or(String::new(), |(reward, kl)| format!("reward {reward:.3}, divergence {kl:.4}, "));
        say(&format!(
            "step {done} of {}: {rewarded}loss {loss:.4}, norm {norm:.2}, rate {rate:.2e}, {tokens} tokens, {:.0} tokens/s, {} left{held_out}",
            options.optimiser.steps,
            tokens as f64 / seconds,
            humantime::format_duration(left)
        ));
        Ok(())
    }

    /// Seconds of the steps that are not done, with the scores of held-out examples between them.
    fn seconds_left(&self) -> f64 {
        let (done, steps) = (self.position.step, self.options.optimiser.steps);
        let evaluations = evaluations_left(done, steps, self.options.evaluate_every.max(1));
        self.pace * (steps - done) as f64 + self.evaluation * evaluations as f64
    }

    /// Mean loss of the held-out answers, and the share that greedy decoding would give exactly.
    fn evaluate(&self) -> Result<(f32, f32)> {
        let (mut loss, mut tokens, mut exact, mut answers) = (0.0, 0, 0, 0);
        for pass in &self.held_out {
            let scored = score(self.network, Some(&self.lora), pass)?;
            loss -= scored.iter().map(|scored| scored.log_prob).sum::<f32>();
            tokens += scored.len();
            exact += pass
                .answers
                .iter()
                .filter(|answer| scored[answer.start..answer.end].iter().all(|s| s.is_first))
                .count();
            answers += pass.answers.len();
        }
        Ok((loss / tokens as f32, exact as f32 / answers as f32))
    }

    fn save(&self) -> Result<()> {
        let options = self.options;
        let how = Saved {
            base: &options.base,
            rank: options.rank,
            alpha: options.alpha,
            targets: &options.targets,
            precision: SavedPrecision::F16,
        };
        self.lora.adapter()?.save(&options.folder.join(ADAPTER), &how)?;
        curve::write(&options.folder, &self.rows)?;
        state::save(&options.folder, &self.position, &self.optimiser.parameters)
    }
}

/// The steps after `done` behind which held-out examples are scored: every `every`-th and the last.
fn evaluations_left(done: usize, steps: usize, every: usize) -> usize {
    steps / every - done / every + usize::from(done < steps && !steps.is_multiple_of(every))
}

/// Refuses numbers with which every run fails or learns nothing.
fn check(options: &Options) -> Result<()> {
    let Settings { rate, weight_decay, clip, .. } = options.optimiser;
    let positive = [("learning rate", rate), ("alpha", options.alpha), ("largest norm of a gradient", clip)];
    if let Some((name, value)) = positive.into_iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        return Err(TrainError::Settings(format!("the {name} is {value}; it must be above 0")));
    }
    if weight_decay.is_nan() || weight_decay < 0.0 {
        return Err(TrainError::Settings(format!("the weight decay is {weight_decay}; it must be at least 0")));
    }
    Ok(())
}

/// Locks the folder of a run, which is created if it does not exist: two runs would write to the same files.
fn lock(folder: &Path) -> Result<File> {
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TrainError::Busy { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io(&path)(source)),
    }
}

/// The inputs that determine the result of a run.
fn settings_of(options: &Options, network: &Network, lessons: &dyn Lessons) -> Vec<(String, String)> {
    let Options { base, base_digest, seed, rank, alpha, targets, start, optimiser, .. } = options;
    let mut settings = lessons.settings();
    let of_run = [
        ("base model", base.clone()),
        ("content of the base model", base_digest.clone()),
        ("seed", seed.to_string()),
        ("rank", rank.to_string()),
        ("alpha", alpha.to_string()),
        ("start", start.as_ref().map_or_else(|| "none".to_owned(), |adapter| format!("{:x?}", adapter.digest()))),
        ("targets", format!("{targets:?}")),
        ("arithmetic", format!("{:?}", network.arithmetic())),
        ("optimiser", format!("{optimiser:?}")),
        (THREADS, kernels::pool::threads().to_string()),
    ];
    settings.extend(of_run.map(|(name, value)| (name.to_owned(), value)));
    settings
}

fn compare(folder: &Path, before: &[(String, String)], now: &[(String, String)]) -> Result<()> {
    let Some((what, now)) = now.iter().find(|setting| !before.contains(setting)) else { return Ok(()) };
    let before = before.iter().find(|(name, _)| name == what).map_or("unknown", |(_, value)| value).to_owned();
    Err(TrainError::OtherRun { path: folder.to_owned(), what: what.clone(), before, now: now.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_that_are_left_are_those_that_are_due() {
        for (steps, every) in [(10_usize, 3), (9, 3), (5, 100), (7, 1)] {
            for done in 0..=steps {
                let due = (done + 1..=steps).filter(|step| step.is_multiple_of(every) || *step == steps).count();
                assert_eq!(evaluations_left(done, steps, every), due, "after {done} of {steps}, every {every}");
            }
        }
    }
}
