//! Products with bf16 weights by AVX512-BF16: of each pair of columns, [`PairSums`] adds the second and then the first.
//!
//! Weights are interleaved in registers on the way to the product, which costs two instructions for the 24 products of a tile.
//! Subnormal operands and results count as zero (Intel SDM volume 2, VDPBF16PS; the same on AMD).

use std::ops::Range;

use super::PANEL;
use super::bf16::{Panel, Rounded};
#[cfg(target_arch = "x86_64")]
use crate::bf16_unit::example_number;
use crate::simd::{PairSums, SimdF32x16, prefetch};

/// Prefetch distance in bytes of weights.
const AHEAD: usize = 8 << 10;

/// Rows whose sums with two panels fit into the registers.
const AT_ONCE: usize = 12;

/// Two columns of a panel.
type Pair = [u8; 4 * PANEL];

/// Whether the processor has the instructions and they give the bits of the reference, on one example: products of several
/// magnitudes and both signs, the smallest below `f32`'s normal range.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_exact() -> bool {
    static EXACT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *EXACT.get_or_init(|| is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16") && agrees())
}

#[cfg(target_arch = "x86_64")]
fn agrees() -> bool {
    const COLUMNS: usize = 200;
    let row: [u16; COLUMNS] = std::array::from_fn(example_number);
    let weights: [[u16; PANEL]; COLUMNS] =
        std::array::from_fn(|k| std::array::from_fn(|n| example_number(PANEL * k + n + 7)));
    // SAFETY: the processor has these instructions.
    let sums = unsafe { example(&row, &weights) };
    let float = |bits: u16| f32::from_bits(u32::from(bits) << 16);
    (0..PANEL).all(|n| {
        let column: Vec<f32> = weights.iter().map(|weights| float(weights[n])).collect();
        let want = super::reference::dot_in_pairs(&row.map(float), &column);
        sums[n].to_bits() == want.to_bits()
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn example(row: &[u16], weights: &[[u16; PANEL]]) -> [f32; PANEL] {
    let mut sums = crate::simd::Bf16Dots::load(&[0.0; PANEL]);
    for (x, weights) in row.as_chunks::<2>().0.iter().zip(weights.as_chunks::<2>().0) {
        let mut pair: Pair = [0; 4 * PANEL];
        for (bytes, bits) in pair.as_chunks_mut::<2>().0.iter_mut().zip(weights.as_flattened()) {
            *bytes = bits.to_le_bytes();
        }
        sums = sums.add(crate::simd::Bf16Dots::zipped(&pair), both(x));
    }
    let mut out = [0.0; PANEL];
    sums.store(&mut out);
    out
}

/// Writes the products of rows `range` with one or two panels.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,fma,avx2,f16c")]
pub(super) fn multiply(panels: [Option<Panel<'_>>; 2], cols: usize, rows: &Rounded, range: Range<usize>) {
    multiply_panels::<crate::simd::Avx512, crate::simd::Bf16Dots>(panels, cols, rows, range);
}

#[inline(always)]
fn multiply_panels<L: SimdF32x16, S: PairSums>(
    panels: [Option<Panel<'_>>; 2],
    cols: usize,
    rows: &Rounded,
    range: Range<usize>,
) {
    for first in range.clone().step_by(AT_ONCE) {
        let tile = first..range.end.min(first + AT_ONCE);
        if let [Some(a), Some(b)] = panels {
            multiply_tile::<L, S, 2>([a, b], cols, rows, tile);
        } else {
            for panel in panels.into_iter().flatten() {
                multiply_tile::<L, S, 1>([panel], cols, rows, tile.clone());
            }
        }
    }
}

#[inline(always)]
fn multiply_tile<L: SimdF32x16, S: PairSums, const P: usize>(
    panels: [Panel<'_>; P],
    cols: usize,
    rows: &Rounded,
    tile: Range<usize>,
) {
    match tile.len() {
        1 => multiply_rows::<L, S, P, 1>(panels, cols, rows, tile),
        2 => multiply_rows::<L, S, P, 2>(panels, cols, rows, tile),
        3 | 4 => multiply_rows::<L, S, P, 4>(panels, cols, rows, tile),
        5..=8 => multiply_rows::<L, S, P, 8>(panels, cols, rows, tile),
        _ => multiply_rows::<L, S, P, AT_ONCE>(panels, cols, rows, tile),
    }
}

/// Missing rows repeat the last.
#[inline(always)]
fn multiply_rows<L: SimdF32x16, S: PairSums, const P: usize, const R: usize>(
    panels: [Panel<'_>; P],
    cols: usize,
    rows: &Rounded,
    tile: Range<usize>,
) {
    panels.iter().for_each(|panel| panel.out.prefetch(&tile));
    let mut x = [&[][..]; R];
    for (r, x) in x.iter_mut().enumerate() {
        *x = &rows.row((tile.start + r).min(tile.end - 1))[..cols.div_ceil(2)];
    }
    let mut sums = [[S::load(&[0.0; PANEL]); R]; P];
    let mut weights = [&[][..]; P];
    for (weights, panel) in weights.iter_mut().zip(&panels) {
        *weights = &panel.packed[..2 * PANEL * cols].as_chunks().0[..cols / 2];
    }
    for pair in 0..cols / 2 {
        add(&mut sums, weights.map(|weights| &weights[pair]), x.map(|x| &x[pair]));
    }
    if cols % 2 == 1 {
        // The column beyond the last is zeros.
        let mut last = [[0; 4 * PANEL]; P];
        for (last, panel) in last.iter_mut().zip(&panels) {
            last[..2 * PANEL].copy_from_slice(&panel.packed[2 * PANEL * (cols - 1)..][..2 * PANEL]);
        }
        add(&mut sums, last.each_ref(), x.map(|x| &x[cols / 2]));
    }
    for (panel, sums) in panels.into_iter().zip(sums) {
        let mut values = [L::splat(0.0); R];
        for (value, sum) in values.iter_mut().zip(sums) {
            let mut floats = [0.0; PANEL];
            sum.store(&mut floats);
            *value = L::load(&floats);
        }
        panel.out.write(&tile, values);
    }
}

/// Adds the products of a pair of columns.
#[inline(always)]
fn add<S: PairSums, const P: usize, const R: usize>(sums: &mut [[S; R]; P], weights: [&Pair; P], x: [&[u16; 2]; R]) {
    let mut zipped = [S::zipped(weights[0]); P];
    for (zipped, weights) in zipped.iter_mut().zip(weights) {
        prefetch(weights.as_ptr().wrapping_add(AHEAD));
        *zipped = S::zipped(weights);
    }
    for (r, x) in x.into_iter().enumerate() {
        let x = both(x);
        for (sums, weights) in sums.iter_mut().zip(zipped) {
            sums[r] = sums[r].add(weights, x);
        }
    }
}

/// Two columns of a row in one lane.
#[inline(always)]
fn both([first, second]: &[u16; 2]) -> u32 {
    u32::from(*first) | u32::from(*second) << 16
}

#[cfg(test)]
mod tests {
    use super::super::bf16::tests::check_loops;
    use super::*;
    use crate::cpu::Isa;
    use crate::simd;

    /// The loops on every machine; those with the instructions are compared in `tests/matmul.rs` where the processor has them.
    #[test]
    fn loops_give_the_contract_for_every_shape() {
        let shapes = [(256, 8), (32, 1), (96, 5), (50, 3), (51, 2), (1280, 20), (1, 17)];
        // Of magnitudes from 2^-63 to 2^2, so that no sum is subnormal.
        let exponent = |byte| byte & 0x9f | 0x20;
        check_loops(Isa::Avx512Bf16, &shapes, exponent, |panels, cols, rows, range| {
            multiply_panels::<simd::Plain, simd::Widened<simd::Plain>>(panels.map(Some), cols, rows, range);
        });
        check_loops(Isa::Avx512Bf16, &shapes, exponent, |panels, cols, rows, range| {
            for panel in panels {
                let panels = [Some(panel), None];
                multiply_panels::<simd::Plain, simd::Widened<simd::Plain>>(panels, cols, rows, range.clone());
            }
        });
    }
}
