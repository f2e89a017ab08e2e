//! Products with bf16 weights on AMX: rows of `x` are rounded to bf16 and multiplied as in [`crate::bf16_unit`].
//!
//! A task interleaves the columns of two panels at once, a step before the unit multiplies them, and keeps them for the other rows of
//! its pass. Few rows are multiplied from a buffer of two steps that stays in the nearest cache.

use std::cell::RefCell;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::bf16_pairs;
use super::output::Columns;
use super::{Format, PANEL};
use crate::bf16_unit::{self, Bf16Unit, Line, ROWS, Right, STEP, Strided, Sums};
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};
use crate::simd::{self, SimdF32x16, prefetch};

/// Prefetch distance in bytes of weights.
const AHEAD: usize = 8 << 10;

/// Steps of the buffer for rows that are multiplied in one go: one is unpacked while the unit reads the other. More would be
/// stored at addresses that differ by 4 KiB from those that are read, and loads wait for such stores.
const RING: usize = 2;

/// Rows that are multiplied in one go: two tiles.
const AT_ONCE: usize = 2 * ROWS;

/// Two panels of one step.
type Pair = [Right; 2];

/// Whether products with weights of a format run on instructions for bf16. `f32` and f16 keep their precision; quantised weights are
/// unpacked to bf16 more slowly than they are multiplied without these.
pub(super) fn applies(isa: Isa, format: Format) -> bool {
    isa.multiplies_bf16() && format == Format::Bf16
}

/// Rounds to the nearest bf16, ties away from zero. NaN becomes a quiet NaN: rounded, it could become zero or infinite.
pub(crate) fn rounded(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = if x.is_nan() { bits | 0x40_0000 } else { bits.wrapping_add(0x8000) };
    (rounded >> 16) as u16
}

/// `[M, K]` rows rounded to bf16, in tiles of some rows, step by step; columns beyond K are zeros.
#[derive(Debug, Default)]
pub(super) struct Rounded {
    rows: usize,
    steps: usize,
    /// Rows of a tile.
    height: usize,
    lines: Vec<Line>,
}

impl Rounded {
    /// Rounds `x: [rows, cols]` as products on an ISA read it.
    pub fn round(&mut self, isa: Isa, x: &[f32], rows: usize, cols: usize) {
        self.round_in_tiles(isa, tile_rows(isa), x, rows, cols);
    }

    /// Rounds `x: [rows, cols]` in tiles of up to `most` rows, by the instructions of an ISA.
    fn round_in_tiles(&mut self, isa: Isa, most: usize, x: &[f32], rows: usize, cols: usize) {
        let height = rows.min(most).max(1);
        (self.rows, self.steps, self.height) = (rows, cols.div_ceil(STEP), height);
        let per_tile = self.steps * height;
        let tiles = rows.div_ceil(height);
        if self.lines.len() < tiles * per_tile {
            self.lines.resize(tiles * per_tile, Line::ZERO);
        }
        let lines = Disjoint::new(&mut self.lines);
        parallel_for(tiles, &|tile| {
            // SAFETY: every task owns one tile.
            let lines = unsafe { lines.part(tile * per_tile, per_tile) };
            for (r, x) in x.chunks_exact(cols).skip(tile * height).take(height).enumerate() {
                round_row(isa, x, &mut lines[r..], height);
            }
        });
    }

    /// The pairs of columns of a row, in tiles of one.
    #[inline(always)]
    pub fn row(&self, row: usize) -> &[[u16; 2]] {
        let lines = &self.lines[row * self.steps..][..self.steps];
        // SAFETY: a line is an array of its size and has no padding.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * STEP / 2) }
    }

    /// One step of the tile that begins with row `first`.
    #[inline(always)]
    fn step(&self, first: usize, step: usize) -> &[Line] {
        &self.lines[(first / self.height * self.steps + step) * self.height..][..self.height]
    }
}

/// Maximum rows of the tiles that products on an ISA read.
fn tile_rows(isa: Isa) -> usize {
    if isa == Isa::Amx { ROWS } else { 1 }
}

per_isa! {
    /// Writes a row into every `stride`th line.
    fn round_row(isa, x: &[f32], lines: &mut [Line], stride: usize) = round_into;
}

#[inline(always)]
fn round_into(x: &[f32], lines: &mut [Line], stride: usize) {
    for (line, x) in lines.iter_mut().step_by(stride).zip(x.chunks(STEP)) {
        line.0.iter_mut().zip(x).for_each(|(line, x)| *line = rounded(*x));
        line.0[x.len()..].fill(0);
    }
}

/// A packed panel and where its products go.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a> {
    pub packed: &'a [u8],
    pub out: Columns<'a>,
}

/// Writes the products of rows `range` with one or two panels of bf16; the first row begins a tile.
pub(super) fn multiply(isa: Isa, panels: [Option<Panel<'_>>; 2], cols: usize, rows: &Rounded, range: Range<usize>) {
    thread_local!(static UNPACKED: RefCell<Vec<Pair>> = RefCell::default());
    UNPACKED.with_borrow_mut(|unpacked| match isa {
        // SAFETY: an `Isa` is only selected after `is_available` returned true.
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => unsafe { on_amx(unpacked, panels, cols, rows, range) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Bf16 => unsafe { bf16_pairs::multiply(panels, cols, rows, range) },
        _ => unreachable!("{isa} has no unit for bf16"),
    });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma,avx2,f16c")]
fn on_amx(unpacked: &mut Vec<Pair>, panels: [Option<Panel<'_>>; 2], cols: usize, rows: &Rounded, range: Range<usize>) {
    multiply_panels::<simd::Avx512, bf16_unit::Amx>(unpacked, panels, cols, rows, range);
}

#[inline(always)]
fn multiply_panels<L: SimdF32x16, U: Bf16Unit>(
    unpacked: &mut Vec<Pair>,
    panels: [Option<Panel<'_>>; 2],
    cols: usize,
    rows: &Rounded,
    range: Range<usize>,
) {
    let steps = if range.len() > AT_ONCE { rows.steps } else { RING.min(rows.steps) };
    if unpacked.len() < steps {
        unpacked.resize(steps, [[Line::ZERO; STEP / 2]; 2]);
    }
    let right = &mut unpacked[..steps];
    let two = panels[1].is_some();
    let mut unit = U::new(rows.height);
    for first in range.clone().step_by(AT_ONCE) {
        let tiles = [Some(first), Some(first + ROWS).filter(|next| *next < range.end)];
        for panel in panels.into_iter().flatten() {
            panel.out.prefetch(&(first..range.end.min(first + AT_ONCE)));
        }
        unit.clear();
        if first == range.start {
            let packed = panels.map(|panel| panel.map_or(&[][..], |panel| panel.packed));
            interleave_and_multiply::<L, U>(packed, cols, rows, tiles, right, &mut unit);
        } else {
            for (step, right) in right.iter().enumerate() {
                unit.add(left(rows, tiles, step), operands(right, two));
            }
        }
        for (i, first) in tiles.into_iter().enumerate() {
            for (j, panel) in panels.into_iter().enumerate() {
                if let (Some(first), Some(panel)) = (first, panel) {
                    let mut sums = Sums::ZERO;
                    unit.store(i, j, &mut sums);
                    let mut values = [L::splat(0.0); ROWS];
                    for (value, sums) in values.iter_mut().zip(&sums.0) {
                        *value = L::load(sums);
                    }
                    panel.out.write(&(first..range.end.min(first + ROWS)), values);
                }
            }
        }
    }
}

#[inline(always)]
fn left(rows: &Rounded, [a, b]: [Option<usize>; 2], step: usize) -> [Option<&[Line]>; 2] {
    let of = |first: usize| rows.step(first, step);
    [a.map(of), b.map(of)]
}

#[inline(always)]
fn operands(right: &Pair, two: bool) -> [Option<Strided<'_>>; 2] {
    [Some((&right[0]).into()), two.then(|| (&right[1]).into())]
}

/// Multiplies the first tiles of a pass and leaves the interleaved panels in `right`, as many steps as it holds.
#[inline(always)]
fn interleave_and_multiply<L: SimdF32x16, U: Bf16Unit>(
    packed: [&[u8]; 2],
    cols: usize,
    rows: &Rounded,
    tiles: [Option<usize>; 2],
    right: &mut [Pair],
    unit: &mut U,
) {
    let (steps, two, is_ring) = (rows.steps, !packed[1].is_empty(), right.len() < rows.steps);
    let slot = |step: usize| if is_ring { step % RING } else { step };
    for step in 0..=steps {
        if step < steps {
            let right = &mut right[slot(step)];
            interleave::<L>(packed[0], cols, step, &mut right[0]);
            if two {
                interleave::<L>(packed[1], cols, step, &mut right[1]);
            }
        }
        // A step later: stores have to reach the cache.
        if let Some(step) = step.checked_sub(1) {
            unit.add(left(rows, tiles, step), operands(&right[slot(step)], two));
        }
    }
}

/// One step of a panel; columns beyond the last are zeros.
#[inline(always)]
fn interleave<L: SimdF32x16>(packed: &[u8], cols: usize, step: usize, out: &mut Right) {
    let (pairs, rest) = packed[..2 * PANEL * cols].as_chunks::<{ 4 * PANEL }>();
    let pairs = &pairs[step * STEP / 2..];
    let taken = pairs.len().min(STEP / 2);
    for (out, pair) in out.iter_mut().zip(pairs) {
        prefetch(pair.as_ptr().wrapping_add(AHEAD));
        L::interleave(pair, &mut out.0);
    }
    if taken < STEP / 2 {
        let mut last = [0; 4 * PANEL];
        last[..rest.len()].copy_from_slice(rest);
        L::interleave(&last, &mut out[taken].0);
        out[taken + 1..].fill(Line::ZERO);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::output::{Output, RowEpilogue, to_be_written};
    use super::super::{pack, panel, reference};
    use super::*;

    /// Compares products of `shapes` (columns, rows) with the reference of an ISA. `exponent` limits the upper bytes of the weights.
    pub fn check_loops(
        isa: Isa,
        shapes: &[(usize, usize)],
        exponent: impl Fn(u8) -> u8,
        mut multiply: impl FnMut([Panel<'_>; 2], usize, &Rounded, Range<usize>),
    ) {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        for (cols, m) in shapes.iter().copied() {
            let x: Vec<f32> = (0..m * cols).map(|_| random() as f32 / 2f32.powi(30) - 1.0).collect();
            let panel_bytes = pack::panel_bytes(Format::Bf16, cols);
            let mut packed: Vec<u8> = (0..2 * panel_bytes).map(|_| random() as u8).collect();
            packed.iter_mut().skip(1).step_by(2).for_each(|byte| *byte = exponent(*byte));
            let (first, second) = packed.split_at(panel_bytes);
            let mut rows = Rounded::default();
            rows.round_in_tiles(Isa::Scalar, tile_rows(isa), &x, m, cols);
            let mut got = vec![f32::NAN; m * 2 * PANEL];
            let out = Output::new(to_be_written(&mut got), 2 * PANEL, None);
            // SAFETY: there is one task.
            let [a, b] = [0, PANEL].map(|first| unsafe { out.columns(first, PANEL, RowEpilogue::None) });
            multiply([Panel { packed: first, out: a }, Panel { packed: second, out: b }], cols, &rows, 0..m);
            for (row, x) in x.chunks_exact(cols).enumerate() {
                for n in 0..2 * PANEL {
                    let packed = [first, second][n / PANEL];
                    let weights: Vec<f32> =
                        (0..cols).map(|col| panel::weight(Format::Bf16, packed, n % PANEL, col)).collect();
                    let want = reference::dot_bf16(isa.numerics(), x, &weights);
                    let got = got[row * 2 * PANEL + n];
                    assert_eq!(got.to_bits(), want.to_bits(), "{m}x{cols}, row {row}, output {n}");
                }
            }
        }
    }

    fn check_loops_on<U: Bf16Unit>() {
        let mut unpacked = Vec::new();
        let shapes = [(256, 16), (32, 1), (96, 5), (50, 3), (51, 20), (1280, 40), (256, 80)];
        // Neither infinite nor NaN.
        check_loops(
            Isa::Amx,
            &shapes,
            |byte| byte & 0xbf,
            |panels, cols, rows, range| {
                multiply_panels::<simd::Plain, U>(&mut unpacked, panels.map(Some), cols, rows, range);
            },
        );
    }

    /// The loops on every machine; compiled for AVX-512 they are compared in `tests/matmul.rs` where there is a unit.
    #[test]
    fn loops_give_the_contract_for_every_shape() {
        check_loops_on::<bf16_unit::Plain>();
    }

    /// On AMX where the processor has it, else on its instructions emulated.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn loops_on_the_unit_give_the_contract_for_every_shape() {
        bf16_unit::emulated::emulate_where_missing();
        check_loops_on::<bf16_unit::Amx>();
    }

    #[test]
    fn rounding_is_to_the_nearest_and_away_from_zero_between() {
        let cases =
            [(1.0, 0x3f80), (1.0 + 1.0 / 256.0, 0x3f81), (1.0 + 1.0 / 257.0, 0x3f80), (-1.0 - 1.0 / 256.0, 0xbf81)];
        assert!(cases.iter().all(|(x, bits)| rounded(*x) == *bits));
        assert_eq!([f32::INFINITY, f32::MAX].map(rounded), [0x7f80; 2]);
    }

    #[test]
    fn nan_stays_nan_on_every_isa() {
        let bits = [0x7f80_0001, 0x7f80_7fff, 0x7fc0_0000, 0x7fff_7fff, 0x7fff_8000, 0x7fff_ffff];
        let both = bits.into_iter().flat_map(|bits| [bits, bits | 0x8000_0000]);
        let row: Vec<f32> = both.map(f32::from_bits).chain([1.0, f32::INFINITY]).collect();
        let want = [0x7fc0, 0xffc0, 0x7fc0, 0xffc0, 0x7fc0, 0xffc0, 0x7fff, 0xffff, 0x7fff, 0xffff, 0x7fff, 0xffff];
        for isa in Isa::available() {
            let mut lines = [Line::ZERO];
            round_row(isa, &row, &mut lines, 1);
            assert_eq!(lines[0].0[..row.len()], [&want[..], &[0x3f80, 0x7f80]].concat(), "{isa}");
        }
    }
}
