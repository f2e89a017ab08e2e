//! Learning from rollouts of `memlocal-bench qa --rollouts`: the calls of a method's agent, rewarded by the score of the final
//! answer (GAM, arXiv 2511.18423, equations 6 and 7).
//!
//! Each file holds one trajectory for every question. Equation 7 has one reward for all calls of a trajectory; here every call is
//! an example with its own. With several files the calls of the same question (for a preparation: of the same case) are compared
//! with each other, so a trajectory with more calls weighs more in their mean and deviation. With one file the advantage is the
//! reward minus the mean over the agent's calls.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

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
    /// Unknown in older files: all tokens count as drawn.
    completion_drawn: Option<Vec<bool>>,
    completion_end: Option<u32>,
    /// Unknown in older files: it counts as that of the run.
    temperature: Option<f32>,
    role: Agent,
    method: String,
    case: String,
    question: Option<String>,
    reward: f32,
    advantage: f32,
}

#[derive(Debug, Deserialize)]
struct Turn {
    content: String,
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
}

/// The calls of an agent, each with its advantage as weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollouts {
    pub examples: Vec<Example>,
    /// Mean reward of the calls of the agent at the temperature of the run, those without advantage included.
    pub reward: f32,
    pub left_out: LeftOut,
    /// blake3 of the files.
    pub digest: String,
}

/// The numbers of calls of an agent that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// All of their group have the same reward, or no token of their reply was drawn.
    pub equal: usize,
    /// They are longer than the longest sequence.
    pub too_long: usize,
    /// They are greedy, so their replies were not drawn.
    pub greedy: usize,
    /// Their replies were drawn at another temperature than that of the run.
    pub other_temperature: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { equal, too_long, greedy, other_temperature } = self;
        write!(f, "{equal} as equally rewarded or not drawn, {too_long} as too long, ")?;
        write!(f, "{greedy} as greedy, {other_temperature} as drawn at another temperature")
    }
}

/// What a run learns from rollouts, which the adapter that it started from has sampled.
#[derive(Debug)]
pub struct Offline<'a> {
    pub rollouts: &'a Rollouts,
    /// How replies were drawn, for the settings of the run.
    pub sampling: String,
    /// Calls of a step.
    pub batch: usize,
    pub pass_tokens: usize,
    pub policy: Policy,
    /// The adapter that sampled; `None` for the base alone.
    pub reference: Option<Lora>,
    pub seed: u64,
}

impl Reader<'_> {
    /// Reads the calls of an agent whose replies were drawn at `temperature`.
    ///
    /// # Errors
    /// If a file cannot be read, a line is no rollout, or nothing can be learnt from them.
    pub fn rollouts(&self, paths: &[PathBuf], agent: Agent, temperature: f32) -> Result<Rollouts> {
        let (mut lines, mut digests, mut left_out) = (Vec::new(), Vec::new(), LeftOut::default());
        for path in paths {
            digests.push(json_lines(path, |line: Line| {
                if line.role != agent {
                    return Ok(());
                }
                let (example, drawn_at) = (self.rollout(&line)?, line.temperature.unwrap_or(temperature));
                if drawn_at <= 0.0 {
                    left_out.greedy += 1;
                } else if drawn_at != temperature {
                    left_out.other_temperature += 1;
                } else if example.tokens.len() > self.longest {
                    left_out.too_long += 1;
                } else {
                    lines.push((line, example));
                }
                Ok(())
            })?);
        }
        let reward = lines.iter().map(|(line, _)| line.reward).sum::<f32>() / lines.len().max(1) as f32;
        let mut groups: BTreeMap<[&str; 3], Vec<usize>> = BTreeMap::new();
        for (at, (line, _)) in lines.iter().enumerate() {
            let question = line.question.as_deref().unwrap_or_default();
            groups.entry([&line.method, &line.case, question]).or_default().push(at);
        }
        let mut weights = vec![0.0; lines.len()];
        for group in groups.values() {
            let rewards: Vec<f32> = group.iter().map(|at| lines[*at].0.reward).collect();
            let by_group = if paths.len() > 1 { advantages(&rewards).unwrap_or_default() } else { Vec::new() };
            for (place, at) in group.iter().enumerate() {
                let by_agent = if paths.len() > 1 { 0.0 } else { lines[*at].0.advantage };
                weights[*at] = by_group.get(place).copied().unwrap_or(by_agent);
            }
        }
        let all = lines.len();
        let weighted = lines.into_iter().zip(weights).map(|((_, example), weight)| Example { weight, ..example });
        let is_learned = |example: &Example| example.weight != 0.0 && example.learned().next().is_some();
        let examples: Vec<Example> = weighted.filter(is_learned).collect();
        left_out.equal = all - examples.len();
        if examples.is_empty() {
            let path = paths.first().cloned().unwrap_or_default();
            let reason = format!(
                "no calls of the {agent} at temperature {temperature} with different rewards; left out: {left_out}"
            );
            return Err(TrainError::NoExamples { path, reason });
        }
        Ok(Rollouts { examples, reward, left_out, digest: digests.join(" ") })
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

impl Lessons for Offline<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        let Offline { rollouts, sampling, batch, pass_tokens, policy, .. } = self;
        [
            ("data", rollouts.digest.clone()),
            (TOKENS, digest(&rollouts.examples)),
            ("calls", rollouts.examples.len().to_string()),
            ("sampling", sampling.clone()),
            ("batch", batch.to_string()),
            ("tokens of a pass", pass_tokens.to_string()),
            ("policy", format!("{policy:?}")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn pass_tokens(&self) -> usize {
        self.rollouts.examples.iter().map(|example| example.tokens.len()).fold(self.pass_tokens, usize::max)
    }

    fn other_bytes(&self) -> Result<usize> {
        Ok(self.reference.as_ref().map_or(0, frozen_bytes))
    }

    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> Result<Learned> {
        let examples = &self.rollouts.examples;
        let groups: Vec<&[Example]> =
            chosen(step, self.batch, examples.len(), self.seed).into_iter().map(|at| &examples[at..=at]).collect();
        let update = Update {
            policy: self.policy,
            learner,
            reference: self.reference.as_ref(),
            sampled_by: SampledBy::Reference,
            pass_tokens: self.pass_tokens,
            replies: groups.len(),
        };
        update.learn(&groups, self.rollouts.reward, sums)
    }
}
