//! The inner loops: products of some rows with one packed panel, generic over [`SimdF32x16`].
//!
//! Quantised weights are unpacked in registers on the way to the dot product; nothing is written in between. That costs
//! about an instruction and a half per 64 weights, shared by the rows of a tile.

use std::ops::Range;

use super::activations::Tile;
use super::bf16::Rounded;
use super::output::Columns;
use super::pack::{self, BLOCK, GROUPS};
use super::{Activations, Format, PANEL};
use crate::per_isa::per_isa;
use crate::simd::{SimdF32x16, prefetch};

/// Prefetch distance in bytes of weights: with few rows a block is consumed faster than memory delivers it, and the hardware
/// prefetcher stops at page borders.
const AHEAD: usize = 8 << 10;

/// The left operand: rows of `cols` values, as `f32` and as its products need them.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub x: &'a [f32],
    pub quantised: &'a Activations,
    pub rounded: &'a Rounded,
    pub cols: usize,
}

per_isa! {
    /// Writes the products of rows `range` with a packed panel; the first of them begins a tile.
    pub(super) fn multiply(isa, format: Format, packed: &[u8], rows: Rows<'_>, range: Range<usize>, out: Columns<'_>) =
        multiply_rows::<L>;
}

#[inline(always)]
fn multiply_rows<L: SimdF32x16>(format: Format, packed: &[u8], rows: Rows<'_>, range: Range<usize>, out: Columns<'_>) {
    // The format is named in every arm, so that each is compiled for it alone.
    match format {
        Format::F32 => multiply_dense(packed, L::from_f32s, rows, range, out),
        Format::F16 => multiply_dense(packed, L::from_halves, rows, range, out),
        Format::Bf16 => multiply_dense(packed, L::from_bf16s, rows, range, out),
        Format::Q4_0 => multiply_quantised::<L>(Format::Q4_0, packed, rows.quantised, range, out),
        Format::Q4_1 => multiply_quantised::<L>(Format::Q4_1, packed, rows.quantised, range, out),
        Format::Q5_0 => multiply_quantised::<L>(Format::Q5_0, packed, rows.quantised, range, out),
        Format::Q5_1 => multiply_quantised::<L>(Format::Q5_1, packed, rows.quantised, range, out),
        Format::Q8_0 => multiply_quantised::<L>(Format::Q8_0, packed, rows.quantised, range, out),
        Format::Q4K => multiply_quantised::<L>(Format::Q4K, packed, rows.quantised, range, out),
        Format::Q5K => multiply_quantised::<L>(Format::Q5K, packed, rows.quantised, range, out),
        Format::Q6K => multiply_quantised::<L>(Format::Q6K, packed, rows.quantised, range, out),
        Format::Q2K => multiply_quantised::<L>(Format::Q2K, packed, rows.quantised, range, out),
        Format::Q3K => multiply_quantised::<L>(Format::Q3K, packed, rows.quantised, range, out),
        Format::Iq4Nl => multiply_quantised::<L>(Format::Iq4Nl, packed, rows.quantised, range, out),
        Format::Iq4Xs => multiply_quantised::<L>(Format::Iq4Xs, packed, rows.quantised, range, out),
    }
}

#[inline(always)]
fn multiply_dense<L: SimdF32x16, const BYTES: usize>(
    packed: &[u8],
    load: impl Fn(&[u8; BYTES]) -> L + Copy,
    rows: Rows<'_>,
    range: Range<usize>,
    out: Columns<'_>,
) {
    for first in range.clone().step_by(L::DENSE_ROWS) {
        let tile = first..range.end.min(first + L::DENSE_ROWS);
        out.prefetch(&tile);
        match tile.len() {
            1 => out.write(&tile, dense::<L, 1, BYTES>(packed, load, rows, [first])),
            2 => out.write(&tile, dense(packed, load, rows, tile_of::<2>(&tile))),
            3 | 4 => out.write(&tile, dense(packed, load, rows, tile_of::<4>(&tile))),
            5 | 6 if L::DENSE_ROWS == 6 => out.write(&tile, dense(packed, load, rows, tile_of::<6>(&tile))),
            _ => out.write(&tile, dense(packed, load, rows, tile_of::<8>(&tile))),
        }
    }
}

/// Missing rows repeat the last: computing an unused register of sums is cheaper than another loop.
#[inline(always)]
fn tile_of<const R: usize>(rows: &Range<usize>) -> [usize; R] {
    let mut tile = [rows.start; R];
    for (r, row) in tile.iter_mut().enumerate() {
        *row = (rows.start + r).min(rows.end - 1);
    }
    tile
}

#[inline(always)]
fn multiply_quantised<L: SimdF32x16>(
    format: Format,
    packed: &[u8],
    x: &Activations,
    range: Range<usize>,
    out: Columns<'_>,
) {
    let mut first = range.start;
    while first < range.end {
        // Beside a matrix unit a tile may have more rows than fit into registers.
        let height = x.height_at(first);
        let tile = first..range.end.min(first + height);
        out.prefetch(&tile);
        match height {
            1 => out.write(&tile, quantised::<L, 1>(format, packed, x.tile(first))),
            2 => out.write(&tile, quantised::<L, 2>(format, packed, x.tile(first))),
            4 => out.write(&tile, quantised::<L, 4>(format, packed, x.tile(first))),
            _ => out.write(&tile, quantised::<L, 8>(format, packed, x.tile(first))),
        }
        first = tile.end;
    }
}

#[inline(always)]
fn dense<L: SimdF32x16, const R: usize, const BYTES: usize>(
    packed: &[u8],
    load: impl Fn(&[u8; BYTES]) -> L,
    rows: Rows<'_>,
    tile: [usize; R],
) -> [L; R] {
    let (weights, _) = packed.as_chunks::<BYTES>();
    let mut x = [rows.x; R];
    for (x, row) in x.iter_mut().zip(tile) {
        *x = &rows.x[row * rows.cols..][..rows.cols];
    }
    let mut sums = [L::splat(0.0); R];
    for (k, w) in weights[..rows.cols].iter().enumerate() {
        prefetch(w.as_ptr().wrapping_add(AHEAD));
        let w = load(w);
        for (sum, x) in sums.iter_mut().zip(&x) {
            *sum = L::splat(x[k]).mul_add(w, *sum);
        }
    }
    sums
}

#[inline(always)]
fn quantised<L: SimdF32x16, const R: usize>(format: Format, packed: &[u8], x: &[Tile<R>]) -> [L; R] {
    let mut sums = [L::splat(0.0); R];
    let mut blocks = Blocks::<L>::new(format, packed);
    for x in x {
        let weights = blocks.next();
        // No loop: where it is none, shifts are by constants.
        add_group(format, &weights, 0, x, &mut sums);
        if format.group_len() < BLOCK {
            add_group(format, &weights, 1, x, &mut sums);
        }
    }
    sums
}

/// Adds the products with those columns of a block that share a scale: all of them, or one half.
#[inline(always)]
fn add_group<L: SimdF32x16, const R: usize>(
    format: Format,
    weights: &Block<'_, L>,
    part: usize,
    x: &Tile<R>,
    sums: &mut [L; R],
) {
    let zero = if format.is_bytes() { L::ZERO_OF_BYTES } else { format.zero() };
    let fours = GROUPS * format.group_len() / BLOCK;
    let together = L::together(format.largest()).min(fours);
    let scales = weights.scales(part);
    let mut dots = [L::ints(0); R];
    if zero != 0 {
        for (dot, [first, second]) in dots.iter_mut().zip(x.half_sums) {
            *dot = L::ints(-zero * if fours == GROUPS { first + second } else { [first, second][part] });
        }
    }
    for run in 0..fours / together {
        let first = part * fours + run * together;
        let mut partial = dots.map(L::begin);
        if together == GROUPS {
            // No loop: the compiler unrolls none for AVX2, and shifts by a variable take up to a fifth more time.
            add_four(format, weights, 0, together, x, &mut partial);
            add_four(format, weights, 1, together, x, &mut partial);
            add_four(format, weights, 2, together, x, &mut partial);
            add_four(format, weights, 3, together, x, &mut partial);
            add_four(format, weights, 4, together, x, &mut partial);
            add_four(format, weights, 5, together, x, &mut partial);
            add_four(format, weights, 6, together, x, &mut partial);
            add_four(format, weights, 7, together, x, &mut partial);
        } else {
            for four in first..first + together {
                add_four(format, weights, four, together, x, &mut partial);
            }
        }
        for (dot, partial) in dots.iter_mut().zip(partial) {
            *dot = L::end(*dot, partial);
        }
    }
    for r in 0..R {
        sums[r] = L::from_ints(dots[r]).mul_add(scales.d.mul(L::splat(x.scale[r])), sums[r]);
        if format.has_min() {
            let scaled_sum = if fours == GROUPS { x.scaled_sum[r] } else { x.scale[r] * x.half_sums[r][part] as f32 };
            sums[r] = scales.m.mul_add(L::splat(scaled_sum), sums[r]);
        }
    }
}

/// Adds the products with columns `4·four ..` of a block, `together` of which are added in narrow numbers.
#[inline(always)]
fn add_four<L: SimdF32x16, const R: usize>(
    format: Format,
    weights: &Block<'_, L>,
    four: usize,
    together: usize,
    x: &Tile<R>,
    partial: &mut [L::Ints; R],
) {
    let w = weights.group(four);
    let w = if together > 1 { L::bytes_here(w) } else { w };
    for (partial, q) in partial.iter_mut().zip(&x.q) {
        let dot_of = if format.is_bytes() { L::dot_bytes } else { L::dot };
        let sum = dot_of(*partial, w, &q.as_chunks::<4>().0[four]);
        *partial = if together > 1 { L::partial_here(sum) } else { sum };
    }
}

/// The blocks of a quantised panel, front to back.
pub(super) struct Blocks<'a, L> {
    format: Format,
    rest: &'a [u8],
    /// How many were taken.
    taken: usize,
    super_scales: Scales<L>,
}

impl<'a, L: SimdF32x16> Blocks<'a, L> {
    #[inline(always)]
    pub(super) fn new(format: Format, packed: &'a [u8]) -> Blocks<'a, L> {
        Blocks { format, rest: packed, taken: 0, super_scales: Scales { d: L::splat(0.0), m: L::splat(0.0) } }
    }

    /// The next block; there must be one.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Block<'a, L> {
        let format = self.format;
        if pack::super_bytes(format) > 0 && self.taken.is_multiple_of(8) {
            self.super_scales = Scales::of_superblock(format, self.take(pack::super_bytes(format)));
        }
        self.taken += 1;
        for line in 0..pack::block_bytes(format).div_ceil(64) {
            prefetch(self.rest.as_ptr().wrapping_add(AHEAD + 64 * line));
        }
        let scales = self.take(pack::scale_bytes(format));
        let high = self.take(pack::high_bytes(format));
        let low = self.take(pack::low_bytes(format));
        Block { format, super_scales: self.super_scales, scales, high, low }
    }

    #[inline(always)]
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

/// 32 columns of 16 rows.
pub(super) struct Block<'a, L> {
    format: Format,
    super_scales: Scales<L>,
    scales: &'a [u8],
    high: &'a [u8],
    low: &'a [u8],
}

/// The `d` and `m` of 16 rows.
#[derive(Clone, Copy)]
pub(super) struct Scales<L> {
    pub d: L,
    pub m: L,
}

impl<L: SimdF32x16> Scales<L> {
    /// The f16 scales in front of a superblock.
    #[inline(always)]
    fn of_superblock(format: Format, bytes: &[u8]) -> Scales<L> {
        let (halves, _) = bytes.as_chunks::<{ 2 * PANEL }>();
        let m = if format.has_min() { L::from_halves(&halves[1]) } else { L::splat(0.0) };
        Scales { d: L::from_halves(&halves[0]), m }
    }
}

impl<L: SimdF32x16> Block<'_, L> {
    /// The scales of the block, or of one half of it.
    #[inline(always)]
    pub(super) fn scales(&self, part: usize) -> Scales<L> {
        let (small, _) = self.scales.as_chunks::<PANEL>();
        let Scales { d, m } = self.super_scales;
        match self.format {
            Format::Q4K | Format::Q5K => {
                let (d, m) = (d.mul(L::from_u8s(&small[0])), m.mul(L::from_u8s(&small[1])));
                Scales { d, m: L::splat(0.0).sub(m) }
            }
            Format::Q2K => {
                let (scale, min) = (small[part].map(|pair| pair & 15), small[part].map(|pair| pair >> 4));
                Scales { d: d.mul(L::from_u8s(&scale)), m: L::splat(0.0).sub(m.mul(L::from_u8s(&min))) }
            }
            Format::Q3K | Format::Q6K => Scales { d: d.mul(L::from_i8s(&small[part])), m },
            Format::Iq4Xs => Scales { d: d.mul(L::from_i8s(&small[0])), m },
            _ => Scales::of_superblock(self.format, self.scales),
        }
    }

    /// The 64 weights of columns `4·group ..`.
    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> L::Bytes {
        let ((low, _), (high, _)) = (self.low.as_chunks::<64>(), self.high.as_chunks::<64>());
        if self.format == Format::Q8_0 {
            return L::bytes(&low[group]);
        }
        if pack::low_bits(self.format) == 2 {
            let two = L::and(shifted::<L>(&low[group / 4], -2 * (group % 4) as i32), 3);
            if self.format == Format::Q3K {
                // Bit `group` to bit 2.
                return L::or(two, L::and(shifted::<L>(&high[0], 2 - group as i32), 4));
            }
            return two;
        }
        let pair = L::bytes(&low[group / 2]);
        let four = if group.is_multiple_of(2) { L::and(pair, 15) } else { L::and(L::shift_right(pair, 4), 15) };
        match self.format {
            Format::Iq4Nl | Format::Iq4Xs => L::looked_up(four, &Format::TABLE),
            // Bit `group` to bit 4.
            Format::Q5_0 | Format::Q5_1 | Format::Q5K => {
                L::or(four, L::and(shifted::<L>(&high[0], 4 - group as i32), 0x10))
            }
            // Bits `2·(group % 4)` and the next to bits 4 and 5.
            Format::Q6K => L::or(four, L::and(shifted::<L>(&high[group / 4], 4 - 2 * (group % 4) as i32), 0x30)),
            _ => four,
        }
    }
}

/// Bytes shifted to the left, or to the right by a negative number. No closure: those are not always inlined, and then use none
/// of the processor's vector instructions.
#[inline(always)]
fn shifted<L: SimdF32x16>(bytes: &[u8; 64], left: i32) -> L::Bytes {
    let bytes = L::bytes(bytes);
    if left >= 0 { L::shift_left(bytes, left) } else { L::shift_right(bytes, -left) }
}

/// Weight `col` of row `lane` of a packed panel: what an embedding lookup reads.
pub(super) fn weight(format: Format, packed: &[u8], lane: usize, col: usize) -> f32 {
    let half = |at: usize| super::format::f16_at(&packed[at..]);
    match format {
        Format::F32 => {
            let at = 4 * (col * PANEL + lane);
            return f32::from_le_bytes([packed[at], packed[at + 1], packed[at + 2], packed[at + 3]]);
        }
        Format::F16 => return half(2 * (col * PANEL + lane)),
        Format::Bf16 => {
            let at = 2 * (col * PANEL + lane);
            return half::bf16::from_le_bytes([packed[at], packed[at + 1]]).to_f32();
        }
        _ => {}
    }
    let (block, group, byte) = (col / BLOCK, col % BLOCK / 4, 4 * lane + col % 4);
    let superblock = if pack::super_bytes(format) > 0 { block / 8 + 1 } else { 0 };
    let block_at = block * pack::block_bytes(format) + superblock * pack::super_bytes(format);
    let super_at = superblock.saturating_sub(1) * (pack::super_bytes(format) + 8 * pack::block_bytes(format));
    let high_at = block_at + pack::scale_bytes(format);
    let low_at = high_at + pack::high_bytes(format);
    let bits = pack::low_bits(format);
    let together = 8 / bits;
    let low = packed[low_at + 64 * (group / together) + byte] >> (bits * (group % together)) & (0xff_u8 >> (8 - bits));
    let high = match pack::high_bytes(format) {
        64 => packed[high_at + byte] >> group & 1,
        128 => packed[high_at + 64 * (group / 4) + byte] >> (2 * (group % 4)) & 3,
        _ => 0,
    };
    // Nothing is above eight bits.
    let q = if bits == 8 { low } else { low | high << bits };
    let (d, m) = match format {
        Format::Q4K | Format::Q5K => {
            let (scale, min) = (packed[block_at + lane], packed[block_at + PANEL + lane]);
            (half(super_at + 2 * lane) * f32::from(scale), -(half(super_at + 2 * (PANEL + lane)) * f32::from(min)))
        }
        Format::Q2K => {
            let pair = packed[block_at + PANEL * (group / 4) + lane];
            let (d, m) = (half(super_at + 2 * lane), half(super_at + 2 * (PANEL + lane)));
            (d * f32::from(pair & 15), -(m * f32::from(pair >> 4)))
        }
        Format::Q3K | Format::Q6K | Format::Iq4Xs => {
            let part = if format.group_len() < BLOCK { group / 4 } else { 0 };
            let scale = packed[block_at + PANEL * part + lane].cast_signed();
            (half(super_at + 2 * lane) * f32::from(scale), 0.0)
        }
        _ if format.has_min() => (half(block_at + 2 * lane), half(block_at + 2 * (PANEL + lane))),
        _ => (half(block_at + 2 * lane), 0.0),
    };
    d.mul_add(format.whole(q) as f32, m)
}
