//! Sampling: draws the next token from each row of logits, with all sampling options, in one pass over the rows of a step.
//!
//! # Contract
//! `logits: [R, V]`; a request names its row and is applied in this order:
//! 1. Adjustments: `x += bias`; of a token that occurs in prompt or reply `x / repetition` if `x > 0`, else
//!    `x · repetition`; then `x -= frequency · count + presence · [count > 0]`, where `count` counts the reply only.
//! 2. The mask: tokens that it does not allow get -inf.
//! 3. Temperature 0: the token of the largest logit, the lowest id of equal ones. Otherwise token `i` has the weight
//!    `exp((x_i - max x) / temperature)`.
//! 4. The `top_k` heaviest tokens are kept, then those of weight `min_p` and above, then the fewest, heaviest first, whose
//!    weights reach the share `top_p` of what is left; of equal logits the lower id comes first.
//! 5. One token is drawn with a probability proportional to its weight.
//!
//! Steps 1 and 2 change the row in place. A row with NaN or +inf is reported.
//!
//! # Numerics
//! Random numbers are a function of (seed, position) ([`random`]), so a draw depends neither on the batch nor on
//! speculation. Weights are `f32` ([`crate::math::exp`]), summed in 16 lanes within blocks of 256 tokens and in `f64` over
//! blocks, in a fixed order: all ISAs draw the same tokens. Tokens lighter than 1e-14 are never drawn; together they have
//! less than 1e-8 of the probability.
//!
//! # Cost
//! No sort, no copy of the row. One pass for mask and block maxima, one for block sums, which skips blocks whose largest
//! weight is too small. `top_p` is exact by rejection, as in FlashInfer's sorting-free sampling: a token is drawn from all,
//! and accepted if the tokens before it weigh less than `top_p`; else those tokens are drawn from. That takes another pass
//! over the blocks that have a heavier token, and `1 / top_p` attempts at most on average. `top_k` looks only at blocks
//! whose maximum reaches the k-th largest block maximum.

pub mod random;
pub mod reference;
mod row;
mod scan;
mod top_k;

pub use top_k::{MAX_TOP_K, TopK, TopKRequest, top_k, top_k_rows};

use crate::cpu::{Isa, active_isa};
use crate::pool::{Disjoint, parallel_for, threads};

/// How the next token is drawn from one row.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Bit `id % 32` of word `id / 32` says whether a token is allowed, no token beyond its end; all are if there is no mask.
    pub mask: Option<&'a [u32]>,
    /// Tokens whose logits change, each at most once.
    pub adjustments: &'a [Adjustment],
    pub penalties: Penalties,
    /// 0 is greedy.
    pub temperature: f32,
    /// 0 keeps all.
    pub top_k: usize,
    /// 1 keeps all.
    pub top_p: f32,
    /// 0 keeps all.
    pub min_p: f32,
    pub seed: u64,
    /// Which token of the reply this is.
    pub position: u64,
}

impl Draw<'_> {
    /// The token of the largest logit.
    pub const GREEDY: Draw<'static> = Draw {
        mask: None,
        adjustments: &[],
        penalties: Penalties::NONE,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        seed: 0,
        position: 0,
    };

    /// How many of the heaviest tokens are enough to draw from, if they are few and known without adjustments.
    pub fn heaviest_tokens(&self) -> Option<usize> {
        let wanted = if self.temperature > 0.0 { self.top_k } else { 1 };
        Some(wanted).filter(|wanted| (1..=MAX_TOP_K).contains(wanted) && self.adjustments.is_empty())
    }
}

/// What changes the logit of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustment {
    pub token: u32,
    /// Occurrences in the reply so far.
    pub count: u32,
    /// True if it occurs in the prompt or the reply.
    pub seen: bool,
    /// Added to the logit.
    pub bias: f32,
}

/// How much less likely tokens become that occurred already.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// For each occurrence in the reply; 0 is none.
    pub frequency: f32,
    /// Once for a token of the reply; 0 is none.
    pub presence: f32,
    /// Factor for tokens of prompt and reply; 1 is none.
    pub repetition: f32,
}

impl Penalties {
    /// No penalty.
    pub const NONE: Penalties = Penalties { frequency: 0.0, presence: 0.0, repetition: 1.0 };

    /// The adjusted logit.
    fn adjusted(self, logit: f32, adjustment: Adjustment) -> f32 {
        let Adjustment { count, seen, bias, .. } = adjustment;
        let biased = logit + bias;
        let repeated = match (seen, biased > 0.0) {
            (true, true) => biased / self.repetition,
            (true, false) => biased * self.repetition,
            (false, _) => biased,
        };
        if count == 0 { repeated } else { repeated - self.frequency.mul_add(count as f32, self.presence) }
    }
}

/// The outcome of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    Token(u32),
    /// The mask allows no token whose logit is above -inf.
    Nothing,
    /// A logit is NaN or +inf.
    NotFinite,
}

/// Draws from rows of `logits: [R, V]`, each request from the row that it names; rows ascend. Rows are drawn in parallel, or
/// one after the other with each split over the threads if there are more threads than rows.
///
/// # Panics
/// If rows do not ascend or a row or an adjusted token does not exist.
pub fn draw_rows(isa: Isa, logits: &mut [f32], width: usize, requests: &[(usize, Draw<'_>)]) -> Vec<Drawn> {
    assert!(requests.is_sorted_by(|a, b| a.0 < b.0), "rows ascend");
    let mut drawn = vec![Drawn::Nothing; requests.len()];
    let (rows, outcomes) = (Disjoint::new(logits), Disjoint::new(&mut drawn));
    let draw = |index: usize| {
        let (row, request) = &requests[index];
        // SAFETY: rows ascend, so every task owns one row of logits and one outcome.
        let (logits, outcome) = unsafe { (rows.part(row * width, width), outcomes.part(index, 1)) };
        outcome[0] = row::draw(isa, logits, request);
    };
    if requests.len() < threads() {
        (0..requests.len()).for_each(draw);
    } else {
        parallel_for(requests.len(), &draw);
    }
    drawn
}

/// Draws from one row, which it changes.
///
/// # Panics
/// If an adjusted token does not exist.
pub fn draw_row(logits: &mut [f32], draw: &Draw<'_>) -> Drawn {
    row::draw(active_isa(), logits, draw)
}

/// Draws from the heaviest tokens of a row, where [`Draw::heaviest_tokens`] of them are enough.
pub fn draw_from_top_k(top_k: &TopK, draw: &Draw<'_>) -> Drawn {
    let mut tokens = top_k.clone();
    tokens.sort_unstable_by_key(|(id, _)| *id);
    let mut logits: Vec<f32> = tokens.iter().map(|(_, logit)| *logit).collect();
    match row::draw(active_isa(), &mut logits, &Draw { mask: None, ..*draw }) {
        Drawn::Token(index) => Drawn::Token(tokens[index as usize].0),
        other => other,
    }
}

#[cfg(test)]
mod tests;
