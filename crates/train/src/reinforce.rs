//! Reinforcement on answers: replies are sampled with the newest adapter, rewarded, and compared with each other
//! ([`crate::policy`]). Each step samples anew and updates once, so every probability ratio is 1.

use std::path::Path;

use calls::{Prompt, Role, Turn};
use models::adapter::Adapter;
use portable::Lora;
use random::Random;

use crate::batch::chosen;
use crate::error::{Result, TOKENS, TrainError};
use crate::examples::{Example, Line, Message, Reader, json_lines};
use crate::lessons::{Learned, Learner, Lessons};
use crate::memory::frozen_bytes;
use crate::policy::{Policy, SampledBy, Update, advantages};
use crate::reward::reward;

/// A prompt with the wanted reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub prompt: Prompt,
    /// The prompt's tokens.
    pub tokens: Vec<u32>,
    pub wanted: String,
}

/// The tasks of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tasks {
    pub tasks: Vec<Task>,
    /// Lines left out because they are longer than the longest sequence.
    pub too_long: usize,
    /// blake3 of the file.
    pub digest: String,
}

/// A sampled reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub text: String,
    /// Its tokens, with the one that was drawn to end it.
    pub tokens: Vec<u32>,
    /// Places of tokens that were not drawn, ascending.
    pub forced: Vec<usize>,
    /// It ended by itself; otherwise it has no reward.
    pub is_whole: bool,
}

/// Samples replies with an adapter.
pub trait Sampler {
    /// `count` replies to each prompt, determined by `seed`.
    ///
    /// # Errors
    /// If the model fails.
    fn sample(&mut self, adapter: Adapter, tasks: &[&Task], count: usize, seed: u64) -> Result<Vec<Vec<Sample>>>;

    /// Bytes that it takes while it samples.
    ///
    /// # Errors
    /// If the model cannot be read.
    fn bytes(&self) -> Result<usize>;
}

/// What reinforcement learns from.
pub struct Reinforcement<'a> {
    pub tasks: &'a Tasks,
    pub sampler: &'a mut dyn Sampler,
    /// How replies are drawn, for the settings of the run.
    pub sampling: String,
    /// Tasks of a step.
    pub batch: usize,
    /// Replies to each.
    pub samples: usize,
    /// Tokens of a reply at most.
    pub reply_tokens: usize,
    pub pass_tokens: usize,
    pub policy: Policy,
    /// The adapter that training started from; `None` for the base alone.
    pub reference: Option<Lora>,
    pub seed: u64,
}

impl Reader<'_> {
    /// Reads a file of conversations as tasks; longer ones are left out, and counted.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn tasks(&self, path: &Path, reply_tokens: usize) -> Result<Tasks> {
        let (mut tasks, mut too_long) = (Vec::new(), 0);
        let digest = json_lines(path, |line: Line| {
            let Example { mut tokens, answer, .. } = self.example(&line)?;
            tokens.truncate(answer.start);
            let Line::Chat { messages } = line else { return Err("reinforcement needs messages".into()) };
            let Some((last, before)) = messages.split_last() else { return Err("there is no message".into()) };
            if tokens.len() + reply_tokens > self.longest {
                too_long += 1;
            } else {
                tasks.push(Task { prompt: prompt(before)?, tokens, wanted: last.content.trim().to_owned() });
            }
            Ok(())
        })?;
        if tasks.is_empty() {
            let most = self.longest.saturating_sub(reply_tokens);
            let reason = format!("no prompt of at most {most} tokens ({too_long} longer ones)");
            return Err(TrainError::NoExamples { path: path.to_owned(), reason });
        }
        Ok(Tasks { tasks, too_long, digest })
    }
}

/// The prompt of these messages, each of which is a turn.
fn prompt(messages: &[Message]) -> std::result::Result<Prompt, String> {
    messages.iter().try_fold(Prompt::new(), |prompt, Message { role, content }| {
        let role = match role.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            role => return Err(format!("reinforcement knows no role `{role}`")),
        };
        Ok(prompt.turn(role, content, Turn::default()))
    })
}

impl Lessons for Reinforcement<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        let Reinforcement { tasks, batch, samples, reply_tokens, pass_tokens, policy, .. } = self;
        [
            ("data", tasks.digest.clone()),
            (TOKENS, tasks.token_digest()),
            ("tasks", tasks.tasks.len().to_string()),
            ("sampling", self.sampling.clone()),
            ("batch", batch.to_string()),
            ("samples", samples.to_string()),
            ("tokens of a reply", reply_tokens.to_string()),
            ("tokens of a pass", pass_tokens.to_string()),
            ("policy", policy.setting()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn pass_tokens(&self) -> usize {
        let longest = self.tasks.tasks.iter().map(|task| task.tokens.len()).max().unwrap_or(0);
        // Each reply is a branch that begins with the last token of the prompt.
        self.pass_tokens.max(longest + self.samples * (self.reply_tokens + 1))
    }

    fn other_bytes(&self) -> Result<usize> {
        Ok(self.sampler.bytes()?.saturating_add(self.reference.as_ref().map_or(0, frozen_bytes)))
    }

    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> Result<Learned> {
        let all = &self.tasks.tasks;
        let tasks: Vec<&Task> = chosen(step, self.batch, all.len(), self.seed).into_iter().map(|at| &all[at]).collect();
        let seed = Random::named(self.seed, &format!("replies {step}")).bits();
        let replies = self.sampler.sample(learner.lora.adapter()?, &tasks, self.samples, seed)?;
        let mut groups: Vec<Vec<Example>> = Vec::new();
        let (mut rewarded, mut count) = (0.0, 0);
        for (task, replies) in tasks.iter().zip(&replies) {
            let of = |reply: &Sample| if reply.is_whole { reward(reply.text.trim(), &task.wanted) } else { 0.0 };
            let rewards: Vec<f32> = replies.iter().map(of).collect();
            rewarded += rewards.iter().sum::<f32>();
            count += rewards.len();
            if let Some(advantages) = advantages(&rewards) {
                groups.push(replies.iter().zip(advantages).map(|(reply, by)| task.with(reply, by)).collect());
            }
        }
        let groups: Vec<&[Example]> = groups.iter().map(Vec::as_slice).collect();
        let update = Update {
            policy: self.policy,
            learner,
            reference: self.reference.as_ref(),
            sampled_by: SampledBy::Trained,
            pass_tokens: self.pass_tokens,
            samples: count,
        };
        update.learn(&groups, rewarded / count as f32, sums)
    }
}

impl Tasks {
    /// A digest of the tokens of all prompts.
    fn token_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for Task { tokens, .. } in &self.tasks {
            hasher.update(&(tokens.len() as u64).to_le_bytes());
            hasher.update(&tokens.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<u8>>());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl Task {
    /// The example of a reply.
    fn with(&self, reply: &Sample, weight: f32) -> Example {
        let (start, tokens) = (self.tokens.len(), [&self.tokens[..], &reply.tokens].concat());
        let forced = reply.forced.iter().map(|at| start + at).collect();
        Example { answer: start..tokens.len(), tokens, forced, weight }
    }
}
