//! Rotary position embedding, and the write of new keys and values into their pages.
//!
//! # Contract
//! `qkv: [N, (A + 2K)·D]` holds query, key and value heads of every row. For each query and key head and each
//! `i < D/2`: `(x_i, x_{i+D/2})` is rotated by the angle of the row's position (the half-split form of GPT-NeoX, which
//! Hugging Face checkpoints use). Rotated queries go to `q: [N, A, D]`; rotated keys and the values go to slot
//! `slots[n]` (page · 32 + offset) of the pages.
//!
//! # Numerics
//! `f32` tables and rotation; where pages are f16 or in 8 bits their store is the only rounding to it.
//!
//! # Cost
//! Reads and writes every value once.

use std::ops::Range;
use std::sync::OnceLock;

use crate::attention::{Heads, KEYS, PagesMut};
use crate::cpu::active_isa;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};

/// Cosine and sine of every position's angles.
#[derive(Debug, Clone)]
pub struct RopeTable {
    frequencies: Vec<f32>,
    positions: usize,
    magnitude: f32,
    /// Parts of [`POSITIONS_PER_PART`] positions, computed on first use: contexts are long, most texts are not.
    parts: Box<[OnceLock<Angles>]>,
    #[cfg(feature = "cuda")]
    on_device: OnceLock<(candle_core::Tensor, candle_core::Tensor)>,
}

/// `[positions, D/2]` each.
#[derive(Debug, Clone)]
struct Angles {
    cos: Vec<f32>,
    sin: Vec<f32>,
}

const POSITIONS_PER_PART: usize = 1024;

impl RopeTable {
    /// Tables for `positions` positions: position `p` rotates pair `i` by `p · frequencies[i]`; both factors are scaled by
    /// `magnitude` (1 except with YaRN).
    pub fn new(frequencies: &[f32], positions: usize, magnitude: f32) -> RopeTable {
        RopeTable {
            frequencies: frequencies.to_vec(),
            positions,
            magnitude,
            parts: vec![OnceLock::new(); positions.div_ceil(POSITIONS_PER_PART)].into(),
            #[cfg(feature = "cuda")]
            on_device: OnceLock::new(),
        }
    }

    /// Positions in the table.
    pub fn positions(&self) -> usize {
        self.positions
    }

    fn angles_of(&self, positions: Range<usize>) -> Angles {
        let angles = positions.flat_map(|p| self.frequencies.iter().map(move |f| p as f32 * f));
        let (cos, sin) = angles.map(|angle| (angle.cos() * self.magnitude, angle.sin() * self.magnitude)).unzip();
        Angles { cos, sin }
    }

    /// Cosines and sines of all positions, `[positions, D/2]` each.
    pub fn angles(&self) -> (Vec<f32>, Vec<f32>) {
        let Angles { cos, sin } = self.angles_of(0..self.positions);
        (cos, sin)
    }

    /// The same in GPU memory, copied on first use.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_device(
        &self,
        device: &candle_core::Device,
    ) -> candle_core::Result<&(candle_core::Tensor, candle_core::Tensor)> {
        if self.on_device.get().is_none() {
            let (cos, sin) = self.angles();
            let _ =
                self.on_device.set((candle_core::Tensor::new(cos, device)?, candle_core::Tensor::new(sin, device)?));
        }
        self.on_device.get().ok_or_else(|| candle_core::Error::Msg("no angles".into()))
    }

    /// Rotates one head in place.
    #[inline]
    pub fn rotate(&self, position: usize, head: &mut [f32]) {
        let (cos, sin) = self.angles_at(position);
        turn(active_isa(), cos, sin, head);
    }

    /// The transpose of [`RopeTable::rotate`], in place: gradients go through it.
    #[inline]
    pub fn rotate_back(&self, position: usize, head: &mut [f32]) {
        let (cos, sin) = self.angles_at(position);
        turn_back(active_isa(), cos, sin, head);
    }

    /// Cosines and sines of one position, `[D/2]` each.
    ///
    /// # Panics
    /// If the position is outside the table.
    pub fn angles_at(&self, position: usize) -> (&[f32], &[f32]) {
        assert!(position < self.positions, "position {position} of {}", self.positions);
        let (part, at) = (position / POSITIONS_PER_PART, position % POSITIONS_PER_PART);
        let first = part * POSITIONS_PER_PART;
        let angles = || self.angles_of(first..self.positions.min(first + POSITIONS_PER_PART));
        let Angles { cos, sin } = self.parts[part].get_or_init(angles);
        let pairs = at * self.frequencies.len()..(at + 1) * self.frequencies.len();
        (&cos[pairs.clone()], &sin[pairs])
    }
}

per_isa! {
    fn turn_back(isa, cos: &[f32], sin: &[f32], head: &mut [f32]) = turn_pairs_back;
}

#[inline(always)]
fn turn_pairs_back(cos: &[f32], sin: &[f32], head: &mut [f32]) {
    let (low, high) = head.split_at_mut(cos.len());
    for (((low, high), cos), sin) in low.iter_mut().zip(high).zip(cos).zip(sin) {
        let (a, b) = (*low, *high);
        *low = a.mul_add(*cos, b * sin);
        *high = b.mul_add(*cos, -(a * sin));
    }
}

per_isa! {
    fn turn(isa, cos: &[f32], sin: &[f32], head: &mut [f32]) = turn_pairs;
}

#[inline(always)]
fn turn_pairs(cos: &[f32], sin: &[f32], head: &mut [f32]) {
    let (low, high) = head.split_at_mut(cos.len());
    for (((low, high), cos), sin) in low.iter_mut().zip(high).zip(cos).zip(sin) {
        let (a, b) = (*low, *high);
        *low = a.mul_add(*cos, -(b * sin));
        *high = b.mul_add(*cos, a * sin);
    }
}

/// The rows of a batch: position in the sequence and KV slot.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// `[N]`
    pub positions: &'a [u32],
    /// `[N]`: page · 32 + offset.
    pub slots: &'a [u32],
}

/// Fills `q: [N, A, D]` with the rotated queries of `qkv: [N, (A + 2K)·D]`.
///
/// # Panics
/// If a slice has the wrong size or a position is outside the table.
pub fn rotate_queries(heads: Heads, qkv: &[f32], table: &RopeTable, positions: &[u32], q: &mut [f32]) {
    let (rows, query_width) = (positions.len(), heads.query_width());
    let width = query_width + 2 * heads.key_width();
    assert!(qkv.len() == rows * width && q.len() == rows * query_width);
    let q = Disjoint::new(q);
    parallel_for(rows.div_ceil(ROWS_PER_TASK), &|task| {
        for row in task * ROWS_PER_TASK..rows.min((task + 1) * ROWS_PER_TASK) {
            // SAFETY: tasks own disjoint rows.
            let q = unsafe { q.part(row * query_width, query_width) };
            q.copy_from_slice(&qkv[row * width..][..query_width]);
            q.chunks_exact_mut(heads.dim).for_each(|head| table.rotate(positions[row] as usize, head));
        }
    });
}

/// Writes the rotated keys and the values of `qkv: [N, (A + 2K)·D]` into their slots of `pages`.
///
/// # Panics
/// If a slice has the wrong size, or a slot or a position is out of range.
pub fn store_keys_values(heads: Heads, qkv: &[f32], table: &RopeTable, at: Placement<'_>, mut pages: PagesMut<'_>) {
    let (query_width, key_width) = (heads.query_width(), heads.key_width());
    let width = query_width + 2 * key_width;
    assert!(qkv.len() == at.positions.len() * width && at.slots.len() == at.positions.len());
    let shape = heads.page();
    let mut turned = vec![0f32; heads.dim];
    for (row, qkv) in qkv.chunks_exact(width).enumerate() {
        let (page, offset) = (at.slots[row] as usize / KEYS, at.slots[row] as usize % KEYS);
        let (keys, values) = qkv[query_width..].split_at(key_width);
        for head in 0..heads.keys {
            turned.copy_from_slice(&keys[head * heads.dim..][..heads.dim]);
            table.rotate(at.positions[row] as usize, &mut turned);
            pages.write_key(shape, (page, offset), head, &turned);
            pages.write_value(shape, (page, offset), head, &values[head * heads.dim..][..heads.dim]);
        }
    }
}

const ROWS_PER_TASK: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_its_own_angle_whichever_part_it_is_in() {
        let table = RopeTable::new(&[1.0, 0.01], 2 * POSITIONS_PER_PART + 5, 1.5);
        for position in [2 * POSITIONS_PER_PART + 4, 0, 1, POSITIONS_PER_PART - 1, POSITIONS_PER_PART] {
            let mut head = [1.0, 0.0, 0.0, 1.0];
            table.rotate(position, &mut head);
            let [fast, slow] = [position as f32, position as f32 * 0.01];
            let want = [fast.cos(), -slow.sin(), fast.sin(), slow.cos()].map(|x| 1.5 * x);
            assert_eq!(head, want, "position {position}");
        }
    }

    #[test]
    #[should_panic(expected = "position 5 of 5")]
    fn a_position_outside_the_table_is_refused() {
        RopeTable::new(&[1.0], 5, 1.0).rotate(5, &mut [0.0; 2]);
    }
}
