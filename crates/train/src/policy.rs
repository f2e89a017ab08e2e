//! The loss of group-relative policy optimisation (GRPO, arXiv 2402.03300) in the form of Dr. GRPO (arXiv 2503.20783), over the
//! drawn tokens of samples; tokens that an output format forced are no choice of the policy.
//!
//! A sample is a reply, or all that an agent wrote in a trajectory ([`crate::rollouts`]). For a token with probability ratio
//! `ρ = exp(new - old)` and advantage `A` of its sample the loss is
//! `-min(ρ A, clip(ρ, 1 - ε, 1 + ε) A) + β (exp(reference - new) - (reference - new) - 1)`; summed over the drawn tokens of
//! a sample and divided by the number of samples. Neither the length of a sample nor the deviation of the rewards of its group
//! changes the weight of a token.

use portable::{Lora, Targets};

use crate::batch::{Pass, passes};
use crate::error::Result;
use crate::examples::Example;
use crate::gradient::score;
use crate::lessons::{Learned, Learner};

/// Settings of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// ε
    pub clip: f32,
    /// β; 0 computes no reference.
    pub kl: f32,
}

/// The log-probabilities of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogProbs {
    /// By the adapter in training.
    pub new: f32,
    /// By the adapter that sampled it.
    pub old: f32,
    /// By the adapter that training started from.
    pub reference: f32,
}

/// What differs between the sources of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampledBy {
    /// The adapter in training: every ratio is 1.
    Trained,
    /// The adapter that training started from.
    Reference,
}

impl Policy {
    /// What determines the loss, for the settings of a run.
    pub fn setting(&self) -> String {
        format!("{self:?}, advantages: rewards minus their mean")
    }

    /// The derivative of a token's loss by `new`.
    pub fn derivative(&self, token: LogProbs, advantage: f32) -> f32 {
        let ratio = (token.new - token.old).exp();
        let is_clipped = if advantage > 0.0 { ratio > 1.0 + self.clip } else { ratio < 1.0 - self.clip };
        let policy = if is_clipped { 0.0 } else { -advantage * ratio };
        let divergence = if self.kl == 0.0 { 0.0 } else { self.kl * (1.0 - (token.reference - token.new).exp()) };
        policy + divergence
    }
}

/// An update of the adapter by samples.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    pub policy: Policy,
    pub learner: Learner<'a>,
    /// The adapter that training started from; `None` for the base alone.
    pub reference: Option<&'a Lora>,
    pub sampled_by: SampledBy,
    pub pass_tokens: usize,
    /// The number by which the sum over all samples is divided.
    pub samples: usize,
}

impl Update<'_> {
    /// Adds the gradients of groups of replies, whose weights are advantages, to `sums`; replies of a group share their prompt.
    /// `reward` is the mean reward.
    ///
    /// # Errors
    /// If the computation fails.
    pub fn learn(&self, groups: &[&[Example]], reward: f32, sums: &mut [Vec<f32>]) -> Result<Learned> {
        let (mut loss, mut divergence, mut answer_tokens, mut tokens) = (0.0, 0.0, 0, 0);
        for pass in passes(groups, self.pass_tokens) {
            let sum = self.accumulate(&pass, sums)?;
            (loss, divergence) = (loss + sum.0, divergence + sum.1);
            answer_tokens += pass.targets.len();
            tokens += pass.tokens.len();
        }
        let by_token = |sum: f32| sum / answer_tokens.max(1) as f32;
        Ok(Learned { loss: by_token(loss), tokens, rewarded: Some((reward, by_token(divergence))) })
    }

    /// The sums over the tokens of a pass of `-log p` and of the divergence from the reference.
    fn accumulate(&self, pass: &Pass, sums: &mut [Vec<f32>]) -> Result<(f32, f32)> {
        let Learner { network, lora, kept } = self.learner;
        let is_needed = self.policy.kl != 0.0 || self.sampled_by == SampledBy::Reference;
        let before = is_needed.then(|| score(network, self.reference, pass)).transpose()?;
        let tokens = |new: &[f32]| -> Vec<LogProbs> {
            let with_reference = |(at, new): (usize, &f32)| {
                let reference = before.as_ref().map_or(*new, |before| before[at].log_prob);
                let old = if self.sampled_by == SampledBy::Trained { *new } else { reference };
                LogProbs { new: *new, old, reference }
            };
            new.iter().enumerate().map(with_reference).collect()
        };
        let (advantages, scale) = (pass.row_weights(), 1.0 / self.samples as f32);
        let Pass { tokens: ids, sequences, rows, targets, .. } = pass;
        let about = Targets { tokens: ids, sequences, rows, targets };
        let new = network.add_gradients(lora, &about, kept, sums, |new| {
            let derivative = |(token, by): (LogProbs, &f32)| scale * self.policy.derivative(token, *by);
            tokens(new).into_iter().zip(&advantages).map(derivative).collect()
        })?;
        let divergence = |token: LogProbs| (token.reference - token.new).exp() - (token.reference - token.new) - 1.0;
        Ok((-new.iter().sum::<f32>(), tokens(&new).into_iter().map(divergence).sum()))
    }
}

/// The advantages of the samples of a group: rewards minus their mean. GRPO divides them by the deviation of the rewards, which
/// gives groups with almost equal rewards more weight than equation 7 of GAM (arXiv 2511.18423) has; Dr. GRPO does not.
/// `None` if all rewards are equal, since nothing is learnt from them.
pub fn advantages(rewards: &[f32]) -> Option<Vec<f32>> {
    /// Differences of equal rewards by rounding are smaller; rewards are at most 1.
    const ROUNDING: f32 = 1e-6;
    let mean = rewards.iter().sum::<f32>() / rewards.len() as f32;
    let advantages: Vec<f32> = rewards.iter().map(|reward| reward - mean).collect();
    advantages.iter().any(|by| by.abs() > ROUNDING).then_some(advantages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advantage_is_a_reward_minus_the_mean() {
        assert_eq!(advantages(&[1.0, 0.0, 0.0, 1.0]), Some(vec![0.5, -0.5, -0.5, 0.5]));
        assert_eq!(advantages(&[0.25, 0.75, 0.5]), Some(vec![-0.25, 0.25, 0.0]));
        // The mean of three of them is rounded.
        assert_eq!(advantages(&[0.9, 0.9, 0.9]), None);
        assert_eq!((advantages(&[1.0]), advantages(&[])), (None, None));
    }

    #[test]
    fn the_derivative_is_that_of_the_loss() {
        let policy = Policy { clip: 0.2, kl: 0.1 };
        let loss = |token: LogProbs, advantage: f64| {
            let [new, old, reference] = [token.new, token.old, token.reference].map(f64::from);
            let ratio = (new - old).exp();
            let surrogate = (ratio * advantage).min(ratio.clamp(0.8, 1.2) * advantage);
            -surrogate + 0.1 * ((reference - new).exp() - (reference - new) - 1.0)
        };
        for advantage in [-1.5_f32, 0.7] {
            for new in [-2.0_f32, -1.2, -1.0, -0.9, -0.1] {
                let token = LogProbs { new, old: -1.05, reference: -1.6 };
                let at = |by: f32| loss(LogProbs { new: new + by, ..token }, f64::from(advantage));
                let step = 1e-3;
                let slope = ((at(step) - at(-step)) / (2.0 * f64::from(step))) as f32;
                let found = policy.derivative(token, advantage);
                assert!((found - slope).abs() < 2e-3, "{found}, want {slope} at {new} for {advantage}");
            }
        }
    }
}
