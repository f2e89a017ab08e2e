//! Learning from rollouts of `memlocal-bench qa --rollouts`: the calls of a method's agent, rewarded by the score of the final
//! answer (GAM, arXiv 2511.18423, equations 6 and 7).
//!
//! Each file holds one trajectory for every question. Calls of the same question (for a preparation: of the same case) in several
//! files are compared with each other; with one file the advantage is that of equation 7, the reward minus the agent's mean.

use std::collections::BTreeMap;
use std::path::PathBuf;

use calls::Agent;
use portable::Lora;
use serde::Deserialize;

use crate::batch::chosen;
use crate::error::{Result, TOKENS, TrainError};
use crate::examples::{Example, Reader, digest, json_lines};
use crate::lessons::{Learned, Learner, Lessons};
use crate::policy::{Policy, SampledBy, Update, advantages};

/// The fields of a line that training needs.
#[derive(Debug, Deserialize)]
struct Line {
    prompt_text: String,
    completion_ids: Vec<u32>,
    completion_end: Option<u32>,
    role: Agent,
    method: String,
    case: String,
    question: Option<String>,
    reward: f32,
    advantage: f32,
}

/// The calls of an agent, each with its advantage as weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollouts {
    pub examples: Vec<Example>,
    /// Mean reward of all calls of the agent, those without advantage included.
    pub reward: f32,
    /// Calls from which nothing is learnt: all of their group have the same reward, or their reply has no token.
    pub equal: usize,
    /// Calls that are longer than the longest sequence.
    pub too_long: usize,
    /// blake3 of the files.
    pub digest: String,
}

/// What a run learns from rollouts, which the adapter that it started from has sampled.
#[derive(Debug)]
pub struct Offline<'a> {
    pub rollouts: &'a Rollouts,
    /// Calls of a step.
    pub batch: usize,
    pub pass_tokens: usize,
    pub policy: Policy,
    /// The adapter that sampled; `None` for the base alone.
    pub reference: Option<Lora>,
    pub seed: u64,
}

impl Reader<'_> {
    /// Reads the calls of an agent.
    ///
    /// # Errors
    /// If a file cannot be read, a line is no rollout, or nothing can be learnt from them.
    pub fn rollouts(&self, paths: &[PathBuf], agent: Agent) -> Result<Rollouts> {
        let (mut lines, mut digests, mut too_long) = (Vec::new(), Vec::new(), 0);
        for path in paths {
            digests.push(json_lines(path, |line: Line| {
                if line.role == agent {
                    let example = self.rollout(&line)?;
                    if example.tokens.len() > self.longest {
                        too_long += 1;
                    } else {
                        lines.push((line, example));
                    }
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
        let examples: Vec<Example> =
            weighted.filter(|example| example.weight != 0.0 && !example.answer.is_empty()).collect();
        if examples.is_empty() {
            let path = paths.first().cloned().unwrap_or_default();
            let reason = format!("no calls of the {agent} with different rewards ({all} calls, {too_long} too long)");
            return Err(TrainError::NoExamples { path, reason });
        }
        let equal = all - examples.len();
        Ok(Rollouts { examples, reward, equal, too_long, digest: digests.join(" ") })
    }

    fn rollout(&self, line: &Line) -> std::result::Result<Example, String> {
        let mut tokens = self.tokenizer.encode_prompt(&line.prompt_text, &[]).map_err(|error| error.to_string())?;
        let from = tokens.len();
        tokens.extend(&line.completion_ids);
        tokens.extend(line.completion_end);
        if from == 0 {
            return Err("the prompt is empty".into());
        }
        Ok(Example { answer: from..tokens.len(), tokens, weight: 0.0 })
    }
}

impl Lessons for Offline<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        let Offline { rollouts, batch, pass_tokens, policy, .. } = self;
        [
            ("data", rollouts.digest.clone()),
            (TOKENS, digest(&rollouts.examples)),
            ("calls", rollouts.examples.len().to_string()),
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
