//! One row: from the block maxima and block sums to a token.

use std::cmp::Ordering;

use super::random::uniform;
use super::scan::{BLOCK, Cut, Weights, block_maxima, block_sums, weigh_block};
use super::{Draw, Drawn};
use crate::cpu::Isa;

/// Weights below this, relative to the heaviest token, count as 0.
const LEAST_WEIGHT: f32 = 1e-14;

/// Tokens this far below the heaviest, in units of the temperature, are lighter than that: above `-ln LEAST_WEIGHT`.
const DEPTH: f32 = 32.5;

/// Adjusts, masks and draws from one row.
pub(super) fn draw(isa: Isa, logits: &mut [f32], draw: &Draw<'_>) -> Drawn {
    for adjustment in draw.adjustments {
        let logit = &mut logits[adjustment.token as usize];
        *logit = draw.penalties.adjusted(*logit, *adjustment);
    }
    let Some(maxima) = block_maxima(isa, logits, draw.mask) else { return Drawn::NotFinite };
    let best = maxima.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if best == f32::INFINITY {
        return Drawn::NotFinite;
    }
    if best == f32::NEG_INFINITY {
        return Drawn::Nothing;
    }
    // At a temperature near 0 the scale stays finite, else the best token would get NaN.
    let scale = (1.0 / draw.temperature).min(f32::MAX);
    let weights = Weights { best, scale, least: draw.min_p.clamp(LEAST_WEIGHT, 1.0) };
    let row = Row { isa, logits, maxima: &maxima, weights };
    Drawn::Token(if draw.temperature > 0.0 { row.sample(draw) } else { row.first_of(best) })
}

/// A masked row.
struct Row<'a> {
    isa: Isa,
    logits: &'a [f32],
    maxima: &'a [f32],
    weights: Weights,
}

impl Row<'_> {
    /// Draws by rejection: the tokens before a rejected one reach the share `top_p`, so they are drawn from next.
    fn sample(&self, draw: &Draw<'_>) -> u32 {
        let mut cut = self.top_k(draw.top_k).unwrap_or(Cut::KEEP_ALL);
        let mut sums = self.sums(cut);
        // The first token is accepted even if the share is 0.
        let wanted = (f64::from(draw.top_p) * total(&sums)).max(f64::MIN_POSITIVE);
        let mut attempt = 0;
        loop {
            let (id, logit) = self.pick(&sums, cut, uniform(draw.seed, draw.position, attempt));
            if draw.top_p >= 1.0 {
                return id;
            }
            cut = Cut { logit, end: id };
            sums = self.sums(cut);
            if total(&sums) < wanted {
                return id;
            }
            attempt += 1;
        }
    }

    fn sums(&self, cut: Cut) -> Vec<f64> {
        block_sums(self.isa, self.logits, self.maxima, &self.weights, cut)
    }

    /// The token at a point in `[0, 1)` of the kept weights in the order of ids, and its logit.
    fn pick(&self, sums: &[f64], cut: Cut, at: f64) -> (u32, f32) {
        let (block, share) = position(sums.iter().copied().enumerate(), at * total(sums));
        let mut weights = [0f32; BLOCK];
        let first = block * BLOCK;
        let logits = &self.logits[first..self.logits.len().min(first + BLOCK)];
        weigh_block(self.isa, logits, first as u32, &self.weights, cut, &mut weights);
        let weights = weights.iter().copied().map(f64::from).enumerate();
        // Summed one by one these differ from the block's sum in the last bits.
        let sum: f64 = weights.clone().map(|(_, weight)| weight).sum();
        let (offset, _) = position(weights, share * sum);
        ((first + offset) as u32, logits[offset])
    }

    /// The cut that keeps the k heaviest tokens; `None` if fewer have weight.
    fn top_k(&self, k: usize) -> Option<Cut> {
        if k == 0 || k >= self.logits.len() {
            return None;
        }
        // At least k tokens reach the k-th largest maximum of blocks.
        let bound = if k <= self.maxima.len() {
            let mut maxima = self.maxima.to_vec();
            *maxima.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
        } else {
            f32::NEG_INFINITY
        };
        let bound = bound.max(self.weights.best - DEPTH / self.weights.scale);
        let kept = |logit: f32| logit >= bound;
        let mut tokens = Vec::new();
        for (block, _) in self.maxima.iter().enumerate().filter(|(_, maximum)| kept(**maximum)) {
            let first = block * BLOCK;
            let block = (first as u32..).zip(self.logits[first..].iter().copied()).take(BLOCK);
            tokens.extend(block.filter(|(_, logit)| kept(*logit)));
        }
        if tokens.len() < k {
            return None;
        }
        let (id, logit) = *tokens.select_nth_unstable_by(k - 1, |a, b| heavier_first(*a, *b)).1;
        Some(Cut { logit, end: id + 1 })
    }

    /// The first token of this logit.
    fn first_of(&self, logit: f32) -> u32 {
        let block = self.maxima.iter().position(|maximum| *maximum == logit).unwrap_or(0);
        let first = block * BLOCK;
        let offset = self.logits[first..].iter().position(|other| *other == logit).unwrap_or(0);
        (first + offset) as u32
    }
}

/// Heavier tokens first, the lower id of equal ones first; zero and minus zero are equal.
fn heavier_first(a: (u32, f32), b: (u32, f32)) -> Ordering {
    (b.1 + 0.0).total_cmp(&(a.1 + 0.0)).then(a.0.cmp(&b.0))
}

fn total(sums: &[f64]) -> f64 {
    sums.iter().sum()
}

/// The index at which a running sum of weights passes a point, the last one with weight if rounding keeps it below; and
/// where in its weight, from 0 to 1.
fn position(weights: impl Iterator<Item = (usize, f64)>, at: f64) -> (usize, f64) {
    let (mut left, mut found) = (at, (0, 0.0));
    for (index, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        if left < weight {
            return (index, left / weight);
        }
        left -= weight;
        found = (index, 1.0);
    }
    found
}
