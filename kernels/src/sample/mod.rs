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

mod draw;
pub mod random;
pub mod reference;
mod row;
mod scan;

pub use draw::{Adjustment, Draw, Drawn, Penalties};

use crate::cpu::{Isa, active_isa};
use crate::pool::{Disjoint, parallel_for, threads};

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

#[cfg(test)]
mod tests;
