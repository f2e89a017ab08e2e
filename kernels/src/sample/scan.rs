//! The passes over a row, per ISA: mask and block maxima, block sums of weights.

use crate::cpu::Isa;
use crate::math;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::{SimdF32x16, exp};

/// Tokens of a block; a multiple of 32.
pub(super) const BLOCK: usize = 256;

/// Blocks that a task of a single row takes.
const TASK_BLOCKS: usize = 64;

/// Which tokens are kept: those of a larger logit, and of this logit those of an id below `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub logit: f32,
    pub end: u32,
}

impl Cut {
    pub const KEEP_ALL: Cut = Cut { logit: f32::NEG_INFINITY, end: u32::MAX };

    pub fn keeps(self, id: u32, logit: f32) -> bool {
        logit > self.logit || logit == self.logit && id < self.end
    }
}

/// From logits to weights: `exp((x - best) · scale)`, 0 below `least`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights {
    pub best: f32,
    pub scale: f32,
    pub least: f32,
}

impl Weights {
    #[inline(always)]
    pub fn of(&self, logit: f32) -> f32 {
        let weight = math::exp((logit - self.best) * self.scale);
        if weight < self.least { 0.0 } else { weight }
    }
}

/// Applies a mask to a row and gives the maximum of each block; `None` if a logit is NaN.
pub(super) fn block_maxima(isa: Isa, logits: &mut [f32], mask: Option<&[u32]>) -> Option<Vec<f32>> {
    let width = logits.len();
    let mut maxima = vec![f32::NEG_INFINITY; width.div_ceil(BLOCK)];
    let tasks = maxima.len().div_ceil(TASK_BLOCKS);
    let mut finite = vec![true; tasks];
    let (parts, all, flags) = (Disjoint::new(logits), Disjoint::new(&mut maxima), Disjoint::new(&mut finite));
    parallel_for(tasks, &|task| {
        let (start, blocks) = task_part(task, width);
        let words = mask.map(|mask| mask.get(start / 32..).unwrap_or_default());
        // SAFETY: every task owns its blocks.
        let (logits, maxima, finite) = unsafe {
            let len = (blocks * BLOCK).min(width - start);
            (parts.part(start, len), all.part(start / BLOCK, blocks), flags.part(task, 1))
        };
        mask_and_maximise(isa, logits, words, maxima, &mut finite[0]);
    });
    finite.iter().all(|finite| *finite).then_some(maxima)
}

/// The sum of the weights that a cut keeps, for each block.
pub(super) fn block_sums(isa: Isa, logits: &[f32], maxima: &[f32], weights: &Weights, cut: Cut) -> Vec<f64> {
    let mut sums = vec![0f64; maxima.len()];
    let all = Disjoint::new(&mut sums);
    parallel_for(maxima.len().div_ceil(TASK_BLOCKS), &|task| {
        let (start, blocks) = task_part(task, logits.len());
        let maxima = &maxima[start / BLOCK..][..blocks];
        // SAFETY: every task owns its blocks.
        let sums = unsafe { all.part(start / BLOCK, blocks) };
        sum_weights(isa, &logits[start..], start as u32, maxima, weights, cut, sums);
    });
    sums
}

/// The first token and the number of blocks of a task.
fn task_part(task: usize, width: usize) -> (usize, usize) {
    let first = task * TASK_BLOCKS;
    (first * BLOCK, TASK_BLOCKS.min(width.div_ceil(BLOCK) - first))
}

per_isa! {
    /// Masks blocks in place; their maxima, and whether they are free of NaN.
    fn mask_and_maximise(isa, logits: &mut [f32], mask: Option<&[u32]>, maxima: &mut [f32], finite: &mut bool) =
        mask_and_maximise_blocks;
}

#[inline(always)]
fn mask_and_maximise_blocks(logits: &mut [f32], mask: Option<&[u32]>, maxima: &mut [f32], finite: &mut bool) {
    let mut nan = [0u32; 16];
    for (index, (block, maximum)) in logits.chunks_mut(BLOCK).zip(maxima).enumerate() {
        let word = |chunk: usize| {
            mask.map_or(u32::MAX, |mask| mask.get(index * BLOCK / 32 + chunk).copied().unwrap_or_default())
        };
        let mut largest = [f32::NEG_INFINITY; 16];
        let (whole, rest) = block.as_chunks_mut::<32>();
        let chunks = whole.len();
        for (chunk, logits) in whole.iter_mut().enumerate() {
            let word = word(chunk);
            for half in 0..2 {
                for lane in 0..16 {
                    nan[lane] |= u32::from(logits[half * 16 + lane].is_nan());
                }
            }
            if word != u32::MAX {
                for (bit, logit) in logits.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 1 { *logit } else { f32::NEG_INFINITY };
                }
            }
            for half in 0..2 {
                for lane in 0..16 {
                    let x = logits[half * 16 + lane];
                    largest[lane] = if x > largest[lane] { x } else { largest[lane] };
                }
            }
        }
        for (bit, logit) in rest.iter_mut().enumerate() {
            nan[0] |= u32::from(logit.is_nan());
            *logit = if word(chunks) >> bit & 1 == 1 { *logit } else { f32::NEG_INFINITY };
            largest[0] = if *logit > largest[0] { *logit } else { largest[0] };
        }
        for lanes in [8, 4, 2, 1] {
            for lane in 0..lanes {
                let x = largest[lane + lanes];
                largest[lane] = if x > largest[lane] { x } else { largest[lane] };
            }
        }
        *maximum = largest[0];
    }
    *finite = nan == [0; 16];
}

per_isa! {
    /// Sums of blocks, the first of which begins with token `first`.
    fn sum_weights(isa, logits: &[f32], first: u32, maxima: &[f32], weights: &Weights, cut: Cut, sums: &mut [f64]) =
        sum_weights_lanes::<L>;
}

#[inline(always)]
fn sum_weights_lanes<L: SimdF32x16>(
    logits: &[f32],
    first: u32,
    maxima: &[f32],
    weights: &Weights,
    cut: Cut,
    sums: &mut [f64],
) {
    let blocks = logits.chunks(BLOCK).zip((first..).step_by(BLOCK));
    for ((maximum, (block, first)), sum) in maxima.iter().zip(blocks).zip(sums) {
        let skipped = *maximum < cut.logit || weights.of(*maximum) == 0.0;
        *sum = if skipped { 0.0 } else { f64::from(sum_block::<L>(block, first, weights, cut)) };
    }
}

#[inline(always)]
fn sum_block<L: SimdF32x16>(block: &[f32], first: u32, weights: &Weights, cut: Cut) -> f32 {
    let mut sum = L::splat(0.0);
    for (logits, first) in block.chunks(16).zip((first..).step_by(16)) {
        sum = sum.add(kept_weights::<L>(logits, first, weights, cut));
    }
    sum.sum()
}

per_isa! {
    /// The weights of a block that begins with token `first`, 0 for tokens that are not kept.
    pub(super) fn weigh_block(isa, block: &[f32], first: u32, weights: &Weights, cut: Cut, out: &mut [f32; BLOCK]) =
        weigh_block_lanes::<L>;
}

#[inline(always)]
fn weigh_block_lanes<L: SimdF32x16>(block: &[f32], first: u32, weights: &Weights, cut: Cut, out: &mut [f32; BLOCK]) {
    let out = out.as_chunks_mut::<16>().0;
    for ((logits, first), out) in block.chunks(16).zip((first..).step_by(16)).zip(out) {
        kept_weights::<L>(logits, first, weights, cut).store(out);
    }
}

/// The weights of up to 16 tokens, 0 for those that are not kept.
#[inline(always)]
fn kept_weights<L: SimdF32x16>(logits: &[f32], first: u32, weights: &Weights, cut: Cut) -> L {
    let mut kept = [f32::NEG_INFINITY; 16];
    let (x, bound) = match <&[f32; 16]>::try_from(logits) {
        Ok(logits) if first + 16 <= cut.end => (L::load(logits), cut.logit),
        Ok(logits) if first >= cut.end => (L::load(logits), cut.logit.next_up()),
        // The cut's id divides them, or they are fewer.
        _ => {
            for ((id, logit), kept) in (first..).zip(logits).zip(&mut kept) {
                *kept = if cut.keeps(id, *logit) { *logit } else { f32::NEG_INFINITY };
            }
            (L::load(&kept), f32::NEG_INFINITY)
        }
    };
    let weight = exp(x.sub(L::splat(weights.best)).mul(L::splat(weights.scale)));
    weight.zero_below(x, bound).zero_below(weight, weights.least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_isa_gives_the_bits_of_plain_loops() {
        let width = 3 * BLOCK * TASK_BLOCKS / 2 + 37;
        let row: Vec<f32> = (0..width).map(|i| ((i * 7919 + 13) % 1009) as f32 / 40.0).collect();
        let mask: Vec<u32> = (0..width / 32).map(|i| (i as u32).wrapping_mul(0x9e37_79b9) | (i as u32 % 3)).collect();
        for isa in Isa::available() {
            for mask in [None, Some(&mask[..])] {
                let mut logits = row.clone();
                let maxima = block_maxima(isa, &mut logits, mask).expect("there is no NaN");
                let allowed =
                    |id: usize| mask.is_none_or(|mask| id / 32 < mask.len() && mask[id / 32] >> (id % 32) & 1 == 1);
                let masked = |id: usize| if allowed(id) { row[id] } else { f32::NEG_INFINITY };
                assert!((0..width).all(|id| logits[id].to_bits() == masked(id).to_bits()), "{isa}");
                let largest = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                assert!(logits.chunks(BLOCK).map(largest).eq(maxima.iter().copied()), "{isa}");
                let weights = Weights { best: 25.2, scale: 1.25, least: 1e-8 };
                let cut = Cut { logit: row[5000], end: 5000 };
                for cut in [Cut::KEEP_ALL, cut, Cut { end: 0, ..cut }] {
                    let sums = block_sums(isa, &logits, &maxima, &weights, cut);
                    for (block, sum) in sums.into_iter().enumerate() {
                        let mut lanes = [0f32; 16];
                        for (index, logit) in logits.iter().enumerate().skip(block * BLOCK).take(BLOCK) {
                            lanes[index % 16] += if cut.keeps(index as u32, *logit) { weights.of(*logit) } else { 0.0 };
                        }
                        for width in [8, 4, 2, 1] {
                            (0..width).for_each(|lane| lanes[lane] += lanes[lane + width]);
                        }
                        assert_eq!(sum.to_bits(), f64::from(lanes[0]).to_bits(), "{isa}, block {block}, {cut:?}");
                    }
                }
                logits[width - 3] = f32::NAN;
                assert_eq!(block_maxima(isa, &mut logits, mask), None, "{isa}");
            }
        }
    }
}
