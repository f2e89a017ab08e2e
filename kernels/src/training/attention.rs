//! Causal attention of whole sequences, rotary positions included, and its gradient.
//!
//! # Contract
//! `qkv: [N, (A + 2K)·D]` holds the heads of every row before their rotation; the rows of a sequence are neighbours and its
//! first has position 0. A sequence may have branches: several continuations of one prefix, which do not see each other
//! ([`Sequence`]). `out: [N, A·D]`. Probabilities are computed for blocks of queries, in both passes, and never kept.
//!
//! # Cost
//! A task is one key head of one sequence with all query heads that share it.

use std::ops::Range;

use super::product::{View, ViewMut, multiply_serial};
use crate::attention::Heads;
use crate::cpu::active_isa;
use crate::math::{exp, sum_in_lanes};
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::rope::RopeTable;

/// Queries whose probabilities are there at once.
const BLOCK: usize = 128;

/// A sequence, or several with the same beginning, whose rows exist once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its rows in the batch: those of the prefix, then those of each branch.
    pub rows: Range<usize>,
    /// The first row of each branch, counted from the first row of the sequence, ascending; none for a plain sequence.
    /// A branch continues the prefix: its first row has the position after it, and sees it and the branch alone.
    pub branches: Vec<usize>,
}

impl From<Range<usize>> for Sequence {
    fn from(rows: Range<usize>) -> Sequence {
        Sequence { rows, branches: Vec::new() }
    }
}

impl Sequence {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows of the prefix; all rows of a plain sequence.
    pub fn prefix(&self) -> usize {
        self.branches.first().copied().unwrap_or(self.rows.len())
    }

    /// The first row of the branch that a row, counted from the first of the sequence, belongs to.
    fn branch(&self, row: usize) -> Option<usize> {
        let after = self.branches.partition_point(|first| *first <= row);
        after.checked_sub(1).map(|at| self.branches[at])
    }

    /// The position of a row, counted from the first of the sequence.
    pub fn position(&self, row: usize) -> usize {
        self.branch(row).map_or(row, |first| self.prefix() + row - first)
    }

    /// The number of positions.
    pub fn positions(&self) -> usize {
        let ends = self.branches.iter().copied().skip(1).chain([self.rows.len()]);
        let longest = self.branches.iter().zip(ends).map(|(first, end)| end - first).max().unwrap_or(0);
        self.prefix() + longest
    }

    /// The earlier rows that a row does not see.
    pub fn hidden_from(&self, row: usize) -> Range<usize> {
        self.branch(row).map_or(0..0, |first| self.prefix()..first)
    }
}

/// What both passes need to know.
#[derive(Debug, Clone, Copy)]
pub struct Causal<'a> {
    pub heads: Heads,
    pub rope: &'a RopeTable,
    pub sequences: &'a [Sequence],
    /// Latest tokens that a query sees, itself included; not with branches.
    pub window: Option<usize>,
}

impl Causal<'_> {
    fn width(&self) -> usize {
        self.heads.query_width() + 2 * self.heads.key_width()
    }

    /// Runs `work` for every key head of every sequence.
    fn for_each(&self, work: &(dyn Fn(&Sequence, usize) + Sync)) {
        let keys = self.heads.keys;
        let branched = |sequence: &Sequence| !sequence.branches.is_empty();
        assert!(self.window.is_none() || !self.sequences.iter().any(branched), "branches with a sliding window");
        parallel_for(self.sequences.len() * keys, &|task| work(&self.sequences[task / keys], task % keys));
    }

    /// Head `at` of the rows, next to each other and turned if `turned`: `[T, D]`.
    fn gather(&self, qkv: &[f32], sequence: &Sequence, at: usize, turned: bool) -> Vec<f32> {
        let (dim, width) = (self.heads.dim, self.width());
        let mut head = Vec::with_capacity(sequence.len() * dim);
        for row in sequence.rows.clone() {
            head.extend_from_slice(&qkv[row * width + at * dim..][..dim]);
        }
        if turned {
            let rows = head.chunks_exact_mut(dim).enumerate();
            rows.for_each(|(row, head)| self.rope.rotate(sequence.position(row), head));
        }
        head
    }

    /// The part of a block's scores that matters: key columns `from ..`.
    fn keys_of(&self, block: &Range<usize>) -> Range<usize> {
        let from = self.window.map_or(0, |window| (block.start + 1).saturating_sub(window));
        from..block.end
    }

    /// Probabilities of a block of queries: `[block, keys]`.
    fn probabilities(
        &self,
        sequence: &Sequence,
        q: &[f32],
        k: &[f32],
        block: &Range<usize>,
        scores: &mut Vec<f32>,
    ) -> Range<usize> {
        let dim = self.heads.dim;
        let keys = self.keys_of(block);
        scores.clear();
        scores.resize(block.len() * keys.len(), 0.0);
        let q = View::new(&q[block.start * dim..block.end * dim], block.len(), dim);
        let k = View::new(&k[keys.start * dim..keys.end * dim], keys.len(), dim);
        let scale = 1.0 / (dim as f32).sqrt();
        multiply_serial(q, k.transposed(), scale, ViewMut::new(scores, block.len(), keys.len()), false);
        for (row, scores) in scores.chunks_exact_mut(keys.len()).enumerate() {
            let row = block.start + row;
            let oldest = self.window.map_or(0, |window| (row + 1).saturating_sub(window));
            let first = oldest - keys.start;
            let end = row + 1 - keys.start;
            scores[..first].fill(0.0);
            scores[end..].fill(0.0);
            // `exp` makes zeros of these.
            scores[sequence.hidden_from(row)].fill(f32::NEG_INFINITY);
            softmax(active_isa(), &mut scores[first..end]);
        }
        keys
    }

    /// The output for `qkv`.
    ///
    /// # Panics
    /// If a sequence is outside `qkv` or is longer than the table of angles.
    pub fn forward(&self, qkv: &[f32]) -> Vec<f32> {
        let (heads, dim) = (self.heads, self.heads.dim);
        let (width, out_width) = (self.width(), heads.query_width());
        let mut out = vec![0f32; qkv.len() / width * out_width];
        let parts = Disjoint::new(&mut out);
        self.for_each(&|sequence, key_head| {
            let rows = &sequence.rows;
            let k = self.gather(qkv, sequence, heads.queries + key_head, true);
            let v = self.gather(qkv, sequence, heads.queries + heads.keys + key_head, false);
            let (mut scores, mut mixed) = (Vec::new(), vec![0f32; BLOCK * dim]);
            for head in key_head * heads.group()..(key_head + 1) * heads.group() {
                let q = self.gather(qkv, sequence, head, true);
                for block in blocks(rows.len()) {
                    let keys = self.probabilities(sequence, &q, &k, &block, &mut scores);
                    let mixed = &mut mixed[..block.len() * dim];
                    let v = View::new(&v[keys.start * dim..keys.end * dim], keys.len(), dim);
                    let p = View::new(&scores, block.len(), keys.len());
                    multiply_serial(p, v, 1.0, ViewMut::new(mixed, block.len(), dim), false);
                    for (row, mixed) in block.zip(mixed.chunks_exact(dim)) {
                        // SAFETY: tasks own disjoint heads of disjoint rows.
                        let out = unsafe { parts.part((rows.start + row) * out_width + head * dim, dim) };
                        out.copy_from_slice(mixed);
                    }
                }
            }
        });
        out
    }

    /// The gradient for `qkv`, from the output and its gradient.
    ///
    /// # Panics
    /// As [`Causal::forward`].
    pub fn backward(&self, qkv: &[f32], out: &[f32], grad: &[f32]) -> Vec<f32> {
        let (heads, dim) = (self.heads, self.heads.dim);
        let (width, out_width) = (self.width(), heads.query_width());
        let scale = 1.0 / (dim as f32).sqrt();
        let mut result = vec![0f32; qkv.len()];
        let parts = Disjoint::new(&mut result);
        self.for_each(&|sequence, key_head| {
            let rows = &sequence.rows;
            let len = rows.len();
            let k = self.gather(qkv, sequence, heads.queries + key_head, true);
            let v = self.gather(qkv, sequence, heads.queries + heads.keys + key_head, false);
            let (mut k_grad, mut v_grad) = (vec![0f32; len * dim], vec![0f32; len * dim]);
            let (mut scores, mut score_grad) = (Vec::new(), Vec::new());
            let (mut q_grad, mut grads) = (vec![0f32; len * dim], vec![0f32; BLOCK * dim]);
            let put = |at: usize, values: &[f32], turned: bool| {
                let mut back = vec![0f32; dim];
                for (row, values) in values.chunks_exact(dim).enumerate() {
                    back.copy_from_slice(values);
                    if turned {
                        self.rope.rotate_back(sequence.position(row), &mut back);
                    }
                    // SAFETY: tasks own disjoint heads of disjoint rows.
                    unsafe { parts.part((rows.start + row) * width + at * dim, dim) }.copy_from_slice(&back);
                }
            };
            for head in key_head * heads.group()..(key_head + 1) * heads.group() {
                let q = self.gather(qkv, sequence, head, true);
                for block in blocks(len) {
                    let keys = self.probabilities(sequence, &q, &k, &block, &mut scores);
                    let grads = &mut grads[..block.len() * dim];
                    for (row, grads) in block.clone().zip(grads.chunks_exact_mut(dim)) {
                        grads.copy_from_slice(&grad[(rows.start + row) * out_width + head * dim..][..dim]);
                    }
                    let grads = View::new(grads, block.len(), dim);
                    let kept = keys.start * dim..keys.end * dim;
                    let p = View::new(&scores, block.len(), keys.len());
                    multiply_serial(
                        p.transposed(),
                        grads,
                        1.0,
                        ViewMut::new(&mut v_grad[kept.clone()], keys.len(), dim),
                        true,
                    );
                    score_grad.clear();
                    score_grad.resize(scores.len(), 0.0);
                    let v = View::new(&v[kept.clone()], keys.len(), dim);
                    let into = ViewMut::new(&mut score_grad, block.len(), keys.len());
                    multiply_serial(grads, v.transposed(), 1.0, into, false);
                    for (row, (p, g)) in
                        block.clone().zip(scores.chunks_exact(keys.len()).zip(score_grad.chunks_exact_mut(keys.len())))
                    {
                        let at = (rows.start + row) * out_width + head * dim;
                        softmax_backward(active_isa(), p, &out[at..at + dim], &grad[at..at + dim], g);
                    }
                    let s = View::new(&score_grad, block.len(), keys.len());
                    let k = View::new(&k[kept.clone()], keys.len(), dim);
                    let q_block = block.start * dim..block.end * dim;
                    let into = ViewMut::new(&mut q_grad[q_block.clone()], block.len(), dim);
                    multiply_serial(s, k, scale, into, false);
                    let q = View::new(&q[q_block], block.len(), dim);
                    let into = ViewMut::new(&mut k_grad[kept], keys.len(), dim);
                    multiply_serial(s.transposed(), q, scale, into, true);
                }
                put(head, &q_grad, true);
            }
            put(heads.queries + key_head, &k_grad, true);
            put(heads.queries + heads.keys + key_head, &v_grad, false);
        });
        result
    }
}

fn blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(BLOCK).map(move |start| start..len.min(start + BLOCK))
}

per_isa! {
    fn softmax(isa, row: &mut [f32]) = softmax_row;
}

#[inline(always)]
fn softmax_row(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for x in row.iter_mut() {
        *x = exp(*x - most);
    }
    let scale = 1.0 / sum_in_lanes(row.len(), |i, sum| sum + row[i]);
    for x in row.iter_mut() {
        *x *= scale;
    }
}

per_isa! {
    fn softmax_backward(isa, p: &[f32], out: &[f32], out_grad: &[f32], grad: &mut [f32]) = softmax_backward_row;
}

/// From the gradient of probabilities to that of scores: `p · (grad - out · out_grad)`.
#[inline(always)]
fn softmax_backward_row(p: &[f32], out: &[f32], out_grad: &[f32], grad: &mut [f32]) {
    let along = sum_in_lanes(out.len(), |i, sum| out[i].mul_add(out_grad[i], sum));
    for (p, grad) in p.iter().zip(grad) {
        *grad = p * (*grad - along);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences_with_and_without_a_window() {
        const STEP: f32 = 1e-2;
        let heads = Heads { queries: 4, keys: 2, dim: 4 };
        let rope = RopeTable::new(&[1.0, 0.1], 16, 1.25);
        for window in [None, Some(3)] {
            let branches = if window.is_none() { vec![2, 3] } else { Vec::new() };
            let sequences = [Sequence { rows: 0..5, branches }, (5..9).into()];
            let attention = Causal { heads, rope: &rope, sequences: &sequences, window };
            let (qkv, grad) = (numbers(9 * 32, 1), numbers(9 * 16, 2));
            let value = |qkv: &[f32]| -> f64 {
                attention.forward(qkv).iter().zip(&grad).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
            };
            let backward = attention.backward(&qkv, &attention.forward(&qkv), &grad);
            for i in 0..qkv.len() {
                let moved = |step: f32| {
                    let mut qkv = qkv.clone();
                    qkv[i] += step;
                    value(&qkv)
                };
                let want = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
                assert!((f64::from(backward[i]) - want).abs() < 2e-3, "at {i}: {}, want {want}", backward[i]);
            }
        }
    }

    #[test]
    fn branches_are_what_sequences_of_their_own_would_be() {
        let heads = Heads { queries: 4, keys: 2, dim: 4 };
        let rope = RopeTable::new(&[1.0, 0.1], 512, 1.0);
        let (prefix, lengths) = (150, [3, 140, 1, 20]);
        let (mut first, mut branches) = (prefix, Vec::new());
        for len in lengths {
            branches.push(first);
            first += len;
        }
        let (qkv, grad) = (numbers(first * 32, 3), numbers(first * 16, 4));
        let sequence = Sequence { rows: 0..first, branches };
        assert_eq!(sequence.positions(), prefix + 140);
        let together = Causal { heads, rope: &rope, sequences: std::slice::from_ref(&sequence), window: None };
        let out = together.forward(&qkv);
        let back = together.backward(&qkv, &out, &grad);
        let mut back_of_prefix = vec![0f32; prefix * 32];
        for (at, len) in lengths.into_iter().enumerate() {
            let rows = sequence.branches[at]..sequence.branches[at] + len;
            let alone = |all: &[f32], width: usize| {
                [&all[..prefix * width], &all[rows.start * width..rows.end * width]].concat()
            };
            let own_qkv = alone(&qkv, 32);
            let own = Causal { heads, rope: &rope, sequences: &[(0..prefix + len).into()], window: None };
            let own_out = own.forward(&own_qkv);
            let close = |got: &[f32], want: &[f32], most: f32| {
                assert_eq!(got.len(), want.len());
                got.iter().zip(want).for_each(|(got, want)| assert!((got - want).abs() < most, "{got}, want {want}"));
            };
            close(&out[rows.start * 16..rows.end * 16], &own_out[prefix * 16..], 1e-5);
            // The gradient of the prefix's own output is counted once.
            let mut own_grad = alone(&grad, 16);
            if at > 0 {
                own_grad[..prefix * 16].fill(0.0);
            }
            let own_back = own.backward(&own_qkv, &own_out, &own_grad);
            close(&back[rows.start * 32..rows.end * 32], &own_back[prefix * 32..], 1e-4);
            back_of_prefix.iter_mut().zip(&own_back).for_each(|(sum, own)| *sum += own);
        }
        for (got, want) in back[..prefix * 32].iter().zip(&back_of_prefix) {
            assert!((got - want).abs() < 1e-3, "{got}, want {want}");
        }
    }

    #[test]
    fn blocks_of_queries_do_not_show() {
        // Sequences longer than a block; each row must be what a plain softmax over its keys gives.
        let heads = Heads { queries: 2, keys: 1, dim: 4 };
        let rope = RopeTable::new(&[1.0, 0.1], 512, 1.0);
        for window in [None, Some(50), Some(200)] {
            let len = 300;
            let qkv = numbers(len * 16, 5);
            let attention = Causal { heads, rope: &rope, sequences: &[(0..len).into()], window };
            let out = attention.forward(&qkv);
            for position in [0, 1, 127, 128, 129, 299] {
                let head = |row: usize, at: usize, turned: bool| {
                    let mut head = qkv[row * 16 + at * 4..][..4].to_vec();
                    if turned {
                        rope.rotate(row, &mut head);
                    }
                    head
                };
                let first = window.map_or(0, |window| (position + 1usize).saturating_sub(window));
                let q = head(position, 1, true);
                let scores: Vec<f64> = (first..=position)
                    .map(|row| head(row, 2, true).iter().zip(&q).map(|(k, q)| f64::from(k * q)).sum::<f64>() / 2.0)
                    .collect();
                let total: f64 = scores.iter().map(|s| s.exp()).sum();
                for i in 0..4 {
                    let mixed =
                        (first..=position).zip(&scores).map(|(row, s)| s.exp() * f64::from(head(row, 3, false)[i]));
                    let want = mixed.sum::<f64>() / total;
                    let got = f64::from(out[position * 8 + 4 + i]);
                    assert!((got - want).abs() < 1e-5, "window {window:?}, row {position}: {got}, want {want}");
                }
            }
        }
    }
}
