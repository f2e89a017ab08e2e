//! Bidirectional attention of an encoder over a ragged batch: sequences are contiguous, without padding.

use std::cell::RefCell;
use std::ops::Range;

use super::product::Tile;
use super::tile::{Rows, attend};
use super::{Heads, KEYS};
use crate::cpu::Isa;
use crate::pool::{Disjoint, parallel_for};

/// Query tokens of one sequence per task; every task gathers the keys and values once.
const TOKENS_PER_TASK: usize = 128;

/// Attention within each of `sequences`, ranges of rows of `qkv: [N, 3, A, D]`; fills `out: [N, A, D]`.
///
/// # Panics
/// If a slice has the wrong size.
pub fn ragged(isa: Isa, heads: Heads, qkv: &[f32], sequences: &[Range<usize>], out: &mut [f32]) {
    assert_eq!(qkv.len(), 3 * out.len());
    let out = Disjoint::new(out);
    let mut tasks = Vec::new();
    for sequence in sequences {
        for start in sequence.clone().step_by(TOKENS_PER_TASK) {
            let rows = start..sequence.end.min(start + TOKENS_PER_TASK);
            tasks.extend((0..heads.queries).map(|head| (sequence.clone(), rows.clone(), head)));
        }
    }
    parallel_for(tasks.len(), &|task| {
        let (sequence, rows, head) = &tasks[task];
        attend_task(isa, heads, qkv, sequence.clone(), rows.clone(), *head, &out);
    });
}

fn attend_task(
    isa: Isa,
    heads: Heads,
    qkv: &[f32],
    sequence: Range<usize>,
    tokens: Range<usize>,
    head: usize,
    out: &Disjoint<'_, f32>,
) {
    thread_local!(static SCRATCH: RefCell<(Rows, [Vec<f32>; 2])> = RefCell::default());
    let (dim, width) = (heads.dim, heads.query_width());
    let part = |token: usize, which: usize| &qkv[token * 3 * width + which * width + head * dim..][..dim];
    SCRATCH.with_borrow_mut(|(rows, [keys, values])| {
        rows.clear(dim);
        [&mut *keys, values].into_iter().for_each(|tile| tile.resize(dim * KEYS, 0.0));
        tokens.clone().for_each(|token| rows.push(part(token, 0), 0..sequence.len()));
        for first_key in (0..sequence.len()).step_by(KEYS) {
            for j in 0..KEYS.min(sequence.len() - first_key) {
                let token = sequence.start + first_key + j;
                part(token, 1).iter().enumerate().for_each(|(d, key)| keys[d * KEYS + j] = *key);
                values[j * dim..][..dim].copy_from_slice(part(token, 2));
            }
            let tile = Tile { keys, values };
            attend(isa, rows, tile, tile, first_key);
        }
        for (row, token) in tokens.enumerate() {
            // SAFETY: a (token, head) pair belongs to one task.
            rows.finish(row, unsafe { out.part(token * width + head * dim, dim) });
        }
    });
}
