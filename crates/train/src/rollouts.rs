//! Learning from rollouts of `memlocal-bench qa --rollouts`: what the agents of a method wrote, rewarded by the score of the answer
//! that it led to (GAM, arXiv 2511.18423, equations 6 and 7).
//!
//! A trajectory is a run of the method on a question: the calls in a file that are about that question. The calls that prepare a
//! case are a trajectory too, rewarded by the mean over the case's questions. The trajectories of a question in several files
//! are a group; each has the advantage of its reward in the group ([`advantages`]), which weighs all that the
//! agents wrote in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use calls::Agent;
use portable::Lora;
use serde::Deserialize;

use crate::batch::chosen;
use crate::error::{Result, TOKENS, TrainError};
use crate::examples::{Example, Reader, digest, forced, json_lines};
use crate::lessons::{Learned, Learner, Lessons};
use crate::memory::frozen_bytes;
use crate::policy::{Policy, SampledBy, Update, advantages};

/// The fields of a line that training needs.
#[derive(Debug, Deserialize)]
struct Line {
    /// Empty for a prompt without a chat.
    prompt: Option<Vec<Turn>>,
    prompt_text: String,
    completion_ids: Vec<u32>,
    /// Unknown in runs of older versions: all tokens count as drawn.
    completion_drawn: Option<Vec<bool>>,
    completion_end: Option<u32>,
    /// Unknown in runs of older versions: it counts as that of the run.
    temperature: Option<f32>,
    role: Agent,
    model: String,
    data_source: String,
    method: String,
    case: String,
    question: Option<String>,
    /// Files of older versions do not have it.
    task: Option<String>,
    answer_reward: f32,
}

#[derive(Debug, Deserialize)]
struct Turn {
    content: String,
}

/// What a trajectory is about; trajectories about the same are a group.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct About {
    data_source: String,
    method: String,
    case: String,
    /// `None` for the preparation of the case.
    question: Option<String>,
    /// A digest of the question, since generated data have the same ids for every seed.
    task: String,
}

/// What the agents wrote in a run of the method, as far as it is learnt from.
#[derive(Debug)]
struct Trajectory {
    reward: f32,
    calls: Vec<Example>,
}

impl Line {
    /// The parts of the prompt that come from its turns and not from the chat template: names of special tokens are plain text
    /// there.
    fn contents(&self) -> Vec<Range<usize>> {
        let text = &self.prompt_text;
        let mut from = 0;
        let find = |turn: &Turn| {
            let content = turn.content.trim();
            let start = from + text[from..].find(content)?;
            from = start + content.len();
            Some(start..from)
        };
        match self.prompt.as_deref() {
            None => Vec::new(),
            Some([]) => std::iter::once(0..text.len()).collect(),
            Some(turns) => turns.iter().filter_map(find).collect(),
        }
    }

    fn about(&self) -> std::result::Result<About, String> {
        let task = self.task.clone().ok_or(
            "it has no `task`, as in files of older versions: repeat the `memlocal-bench qa` of its run with --resume, \
             which writes the file again",
        )?;
        let [data_source, method, case] = [&self.data_source, &self.method, &self.case].map(String::clone);
        Ok(About { data_source, method, case, question: self.question.clone(), task })
    }
}

/// The trajectories of agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollouts {
    /// The calls of each, with the trajectory's advantage as weight.
    pub trajectories: Vec<Vec<Example>>,
    /// Mean reward of all trajectories in the files, those without advantage included.
    pub reward: f32,
    pub left_out: LeftOut,
    /// blake3 of the files.
    pub digest: String,
}

/// What is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Groups of one trajectory, which has nothing to be compared with.
    pub single: usize,
    /// Groups whose trajectories have equal rewards.
    pub equal: usize,
    /// Calls that are longer than the longest sequence.
    pub too_long: usize,
    /// Greedy calls, whose replies were not drawn.
    pub greedy: usize,
    /// Calls whose replies were drawn at another temperature than that of the run.
    pub other_temperature: usize,
    /// Calls of whose replies no token was drawn.
    pub forced: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { single, equal, too_long, greedy, other_temperature, forced } = self;
        write!(f, "{single} questions (or cases) with one trajectory, {equal} with equal rewards; ")?;
        write!(f, "calls: {too_long} too long, {greedy} greedy, {other_temperature} drawn at another temperature, ")?;
        write!(f, "{forced} without a drawn token")
    }
}

/// What a run learns from rollouts, which the adapter that it started from has sampled.
#[derive(Debug)]
pub struct Offline<'a> {
    pub rollouts: &'a Rollouts,
    /// How replies were drawn, for the settings of the run.
    pub sampling: String,
    /// Trajectories of a step.
    pub batch: usize,
    pub pass_tokens: usize,
    pub policy: Policy,
    /// The adapter that sampled; `None` for the base alone.
    pub reference: Option<Lora>,
    pub seed: u64,
}

impl Reader<'_> {
    /// Reads the trajectories of agents, as far as their replies were drawn at `temperature`. Each file has one trajectory of a
    /// question; what the agents wrote in it has one advantage.
    ///
    /// # Errors
    /// If a file cannot be read, a line is no rollout, the files do not belong together, or nothing can be learnt from them.
    pub fn rollouts(&self, paths: &[PathBuf], agents: &[Agent], temperature: f32) -> Result<Rollouts> {
        let mut groups: BTreeMap<About, Vec<Trajectory>> = BTreeMap::new();
        let (mut models, mut left_out) = (BTreeSet::new(), LeftOut::default());
        let mut digests: Vec<String> = Vec::new();
        for path in paths {
            let mut file = BTreeMap::new();
            let digest = json_lines(path, |line: Line| {
                if agents.contains(&line.role) {
                    models.insert(line.model.clone());
                    self.add(&line, temperature, &mut file, &mut left_out)?;
                }
                Ok(())
            })?;
            if let Some(same) = digests.iter().position(|other| *other == digest) {
                return Err(repeated(&paths[same], path));
            }
            digests.push(digest);
            for (about, trajectory) in file {
                groups.entry(about).or_default().push(trajectory);
            }
        }
        if models.len() > 1 {
            return Err(of_several_models(&models));
        }
        let all: Vec<f32> = groups.values().flatten().map(|trajectory| trajectory.reward).collect();
        let reward = all.iter().sum::<f32>() / all.len().max(1) as f32;
        let trajectories = weighed(groups, &mut left_out);
        if trajectories.is_empty() {
            return Err(without_advantage(agents, temperature, left_out));
        }
        Ok(Rollouts { trajectories, reward, left_out, digest: digests.join(" ") })
    }

    /// Adds a call to its trajectory, or counts why it is left out.
    fn add(
        &self,
        line: &Line,
        temperature: f32,
        file: &mut BTreeMap<About, Trajectory>,
        left_out: &mut LeftOut,
    ) -> std::result::Result<(), String> {
        let (example, reward) = (self.rollout(line)?, line.answer_reward);
        let Trajectory { reward: before, calls } =
            file.entry(line.about()?).or_insert_with(|| Trajectory { reward, calls: Vec::new() });
        if *before != reward {
            return Err(format!("its answer_reward is {reward}; an earlier call about the same has {before}"));
        }
        let drawn_at = line.temperature.unwrap_or(temperature);
        if drawn_at <= 0.0 {
            left_out.greedy += 1;
        } else if drawn_at != temperature {
            left_out.other_temperature += 1;
        } else if example.tokens.len() > self.longest {
            left_out.too_long += 1;
        } else if example.learned().next().is_none() {
            left_out.forced += 1;
        } else {
            calls.push(example);
        }
        Ok(())
    }

    fn rollout(&self, line: &Line) -> std::result::Result<Example, String> {
        if line.prompt_text.trim_end().ends_with("<think>") {
            return Err("its reply follows a thought, which a rollout does not have".into());
        }
        let tokens = self.tokenizer.encode_prompt(&line.prompt_text, &line.contents());
        let mut tokens = tokens.map_err(|error| error.to_string())?;
        let from = tokens.len();
        tokens.extend(&line.completion_ids);
        tokens.extend(line.completion_end);
        if from == 0 {
            return Err("the prompt is empty".into());
        }
        let drawn = line.completion_drawn.as_deref();
        if drawn.is_some_and(|drawn| drawn.len() != line.completion_ids.len()) {
            return Err("completion_drawn and completion_ids have different lengths".into());
        }
        let forced = forced(from, drawn.into_iter().flatten().copied());
        Ok(Example { answer: from..tokens.len(), tokens, forced, weight: 0.0 })
    }
}

/// The calls of trajectories whose groups have different rewards, with their advantages.
fn weighed(groups: BTreeMap<About, Vec<Trajectory>>, left_out: &mut LeftOut) -> Vec<Vec<Example>> {
    let mut trajectories = Vec::new();
    for group in groups.into_values() {
        let rewards: Vec<f32> = group.iter().map(|trajectory| trajectory.reward).collect();
        let Some(advantages) = advantages(&rewards) else {
            let count = if group.len() == 1 { &mut left_out.single } else { &mut left_out.equal };
            *count += 1;
            continue;
        };
        for (Trajectory { calls, .. }, weight) in group.into_iter().zip(advantages) {
            if !calls.is_empty() {
                trajectories.push(calls.into_iter().map(|call| Example { weight, ..call }).collect());
            }
        }
    }
    trajectories
}

fn repeated(one: &Path, other: &Path) -> TrainError {
    let reason = format!("{} and {} have the same content", one.display(), other.display());
    TrainError::Rollouts { reason, hint: "sample each file with another --seed of `memlocal-bench qa`" }
}

fn of_several_models(models: &BTreeSet<String>) -> TrainError {
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    let reason = format!("several models wrote them: {}", models.join(", "));
    TrainError::Rollouts { reason, hint: "sample all files with one model and the adapter of --start" }
}

fn without_advantage(agents: &[Agent], temperature: f32, left_out: LeftOut) -> TrainError {
    let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
    let reason = format!(
        "there are no trajectories of the {} with different rewards and replies drawn at temperature {temperature}; left out: {left_out}",
        agents.join(" and the ")
    );
    let hint =
        "give a file for each of several runs of `memlocal-bench qa` on the same questions, each with another --seed";
    TrainError::Rollouts { reason, hint }
}

impl Lessons for Offline<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        let Offline { rollouts, sampling, batch, pass_tokens, policy, .. } = self;
        let calls = || rollouts.trajectories.iter().flatten();
        [
            ("data", rollouts.digest.clone()),
            ("policy", policy.setting()),
            (TOKENS, digest(calls())),
            ("trajectories", rollouts.trajectories.len().to_string()),
            ("calls", calls().count().to_string()),
            ("sampling", sampling.clone()),
            ("batch", batch.to_string()),
            ("tokens of a pass", pass_tokens.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn pass_tokens(&self) -> usize {
        let calls = self.rollouts.trajectories.iter().flatten();
        calls.map(|call| call.tokens.len()).fold(self.pass_tokens, usize::max)
    }

    fn other_bytes(&self) -> Result<usize> {
        Ok(self.reference.as_ref().map_or(0, frozen_bytes))
    }

    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> Result<Learned> {
        let all = &self.rollouts.trajectories;
        let chosen = chosen(step, self.batch, all.len(), self.seed);
        // Calls of a trajectory go through the network each on its own: they may be in different passes.
        let calls: Vec<&[Example]> = chosen.iter().flat_map(|at| all[*at].chunks(1)).collect();
        let update = Update {
            policy: self.policy,
            learner,
            reference: self.reference.as_ref(),
            sampled_by: SampledBy::Reference,
            pass_tokens: self.pass_tokens,
            samples: chosen.len(),
        };
        update.learn(&calls, self.rollouts.reward, sums)
    }
}
