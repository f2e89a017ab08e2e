//! What a run learns from: the gradients of a step.

use portable::{Lora, Network};

use crate::batch::{chosen, passes, tokens_of};
use crate::error::{Result, TOKENS};
use crate::examples::{Example, Examples, digest};
use crate::gradient::accumulate;

/// A network with the adapter in training.
#[derive(Debug, Clone, Copy)]
pub struct Learner<'a> {
    pub network: &'a Network,
    pub lora: &'a Lora,
    /// Blocks that keep their activations for the backward pass.
    pub kept: usize,
}

/// What a step has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// Mean of `-log p` over the answer tokens.
    pub loss: f32,
    /// Tokens that went through the network with gradients.
    pub tokens: usize,
    /// Of sampled replies: mean reward, and divergence from the adapter that training started from, in nats a token.
    pub rewarded: Option<(f32, f32)>,
}

/// A source of gradients.
pub trait Lessons {
    /// The inputs that determine the result, by name.
    fn settings(&self) -> Vec<(String, String)>;

    /// The most tokens that go through the network together.
    fn pass_tokens(&self) -> usize;

    /// Bytes that a step takes beside the network and its passes.
    ///
    /// # Errors
    /// If they cannot be computed.
    fn other_bytes(&self) -> Result<usize> {
        Ok(0)
    }

    /// Adds the gradients of a step, counted from 0, to `sums`, which are in the order of [`Lora::variables`].
    ///
    /// # Errors
    /// If the computation fails.
    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> Result<Learned>;
}

/// Supervised learning: answers that are given.
#[derive(Debug, Clone, Copy)]
pub struct Supervised<'a> {
    pub training: &'a Examples,
    /// Groups of examples ([`Examples::groups`]) of a step.
    pub batch: usize,
    /// Tokens of a pass.
    pub pass_tokens: usize,
    pub seed: u64,
}

impl Lessons for Supervised<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        let Supervised { training, batch, pass_tokens, .. } = self;
        [
            ("data", training.digest.clone()),
            (TOKENS, digest(&training.examples)),
            ("examples", training.examples.len().to_string()),
            ("batch", batch.to_string()),
            ("tokens of a pass", pass_tokens.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn pass_tokens(&self) -> usize {
        let Examples { examples, groups, .. } = self.training;
        groups.iter().map(|group| tokens_of(&examples[group.clone()])).fold(self.pass_tokens, usize::max)
    }

    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> Result<Learned> {
        let Examples { examples, groups, .. } = self.training;
        let groups: Vec<&[Example]> = chosen(step, self.batch, groups.len(), self.seed)
            .into_iter()
            .map(|at| &examples[groups[at].clone()])
            .collect();
        let answer_tokens: usize = groups.iter().copied().flatten().map(|example| example.learned().count()).sum();
        let (mut total, mut tokens) = (0.0, 0);
        for pass in passes(&groups, self.pass_tokens) {
            let weight = 1.0 / answer_tokens as f32;
            total += accumulate(learner.network, learner.lora, &pass, weight, learner.kept, sums)?;
            tokens += pass.tokens.len();
        }
        Ok(Learned { loss: total / answer_tokens as f32, tokens, rewarded: None })
    }
}
