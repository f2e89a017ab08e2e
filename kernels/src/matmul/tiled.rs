//! Products of many rows on a matrix unit: the panel is unpacked once, then multiplied tile by tile.
//!
//! The unit accumulates over the columns of one scale, 32 (16 of Q2_K, Q3_K and Q6_K, padded with zeros), so that the `f32` sums are those
//! of [`panel`](super::panel), in the same order.

use std::cell::RefCell;
use std::ops::Range;

use super::activations::{Tile, WORTH_A_UNIT};
use super::output::Columns;
use super::pack::{BLOCK, GROUPS};
use super::panel::{Blocks, Rows};
use super::{Format, PANEL};
use crate::cpu::Isa;
#[cfg(any(test, target_arch = "aarch64"))]
use crate::matrix_unit;
use crate::matrix_unit::{AT_ONCE, MatrixUnit, ROWS, Right, Sums};
#[cfg(any(test, target_arch = "aarch64"))]
use crate::simd;
use crate::simd::SimdF32x16;

/// How many of the first rows of a pass the matrix unit multiplies.
pub(super) fn rows(isa: Isa, format: Format, rows: usize) -> usize {
    let rest = rows % ROWS;
    match isa.has_matrix_unit() && !format.is_dense() {
        false => 0,
        true if rest >= WORTH_A_UNIT => rows,
        true => rows - rest,
    }
}

/// Writes the products of rows `range` with a packed panel; the first of them begins a tile.
pub(super) fn multiply(isa: Isa, format: Format, packed: &[u8], rows: Rows<'_>, range: Range<usize>, out: Columns<'_>) {
    thread_local!(static UNPACKED: RefCell<Unpacked> = RefCell::default());
    UNPACKED.with_borrow_mut(|panel| match isa {
        // SAFETY: an `Isa` is only selected after `is_available` returned true.
        #[cfg(target_arch = "aarch64")]
        Isa::I8mm => unsafe { on_i8mm(panel, format, packed, rows, range, out) },
        _ => unreachable!("{isa} has no tiles"),
    });
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,dotprod")]
fn on_i8mm(panel: &mut Unpacked, format: Format, packed: &[u8], rows: Rows<'_>, range: Range<usize>, out: Columns<'_>) {
    multiply_tiles::<simd::Neon, matrix_unit::I8mm>(panel, format, packed, rows, range, out);
}

#[inline(always)]
fn multiply_tiles<L: SimdF32x16, T: MatrixUnit>(
    panel: &mut Unpacked,
    format: Format,
    packed: &[u8],
    rows: Rows<'_>,
    range: Range<usize>,
    out: Columns<'_>,
) {
    panel.unpack::<L>(format, packed, rows.cols);
    let unit = T::new();
    for first in range.clone().step_by(ROWS) {
        let left = rows.quantised.tile(first);
        let sums: [L; ROWS] = match format {
            Format::Q2K => multiply_tile::<L, T, true, 2>(&unit, left, &panel.groups),
            Format::Q3K | Format::Q6K => multiply_tile::<L, T, false, 2>(&unit, left, &panel.groups),
            _ if format.has_min() => multiply_tile::<L, T, true, 1>(&unit, left, &panel.groups),
            _ => multiply_tile::<L, T, false, 1>(&unit, left, &panel.groups),
        };
        out.write(&(first..range.end.min(first + ROWS)), sums);
    }
}

/// While the unit multiplies some groups, the sums of those before are scaled and added up.
#[inline(always)]
fn multiply_tile<L: SimdF32x16, T: MatrixUnit, const MIN: bool, const PER_BLOCK: usize>(
    unit: &T,
    left: &[Tile<ROWS>],
    right: &[Group],
) -> [L; ROWS] {
    let last = right.len() - 1;
    let dots_of = |from: usize, dots: &mut [Sums; AT_ONCE]| {
        // The last group is multiplied twice; the second result is not read.
        let group: [usize; AT_ONCE] = std::array::from_fn(|i| last.min(from + i));
        unit.multiply(group.map(|i| &left[i / PER_BLOCK].q), group.map(|i| &right[i].weights), dots);
    };
    let mut sums = [L::splat(0.0); ROWS];
    let mut dots = [[Sums([[0; 16]; ROWS]); AT_ONCE]; 2];
    let [now, next] = &mut dots;
    let (mut now, mut next) = (now, next);
    dots_of(0, now);
    for (run, groups) in right.chunks(AT_ONCE).enumerate() {
        let from = run * AT_ONCE;
        if from + AT_ONCE <= last {
            dots_of(from + AT_ONCE, next);
        }
        for (i, (group, dots)) in groups.iter().zip(now.iter()).enumerate() {
            let tile = &left[(from + i) / PER_BLOCK];
            let (d, m) = (L::load(&group.d), L::load(&group.m));
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = L::from_i32s(&dots.0[r]).mul_add(d.mul(L::splat(tile.scale[r])), *sum);
                if MIN {
                    let scaled_sum = match PER_BLOCK {
                        1 => tile.scaled_sum[r],
                        _ => tile.scale[r] * tile.half_sums[r][(from + i) % PER_BLOCK] as f32,
                    };
                    *sum = m.mul_add(L::splat(scaled_sum), *sum);
                }
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    sums
}

/// A panel unpacked for a matrix unit.
#[derive(Default)]
struct Unpacked {
    groups: Vec<Group>,
}

/// Columns of 16 rows that have a scale of their own.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Group {
    /// `q - zero`; 0 in columns of the block that belong to another group.
    weights: Right,
    d: [f32; PANEL],
    m: [f32; PANEL],
}

const EMPTY: Group = Group { weights: [[0; 64]; GROUPS], d: [0.0; PANEL], m: [0.0; PANEL] };

impl Unpacked {
    #[inline(always)]
    fn unpack<L: SimdF32x16>(&mut self, format: Format, packed: &[u8], cols: usize) {
        self.groups.resize(cols / format.group_len(), EMPTY);
        // The format is named in every arm, so that each is compiled for it alone.
        match format {
            Format::Q4_0 => self.unpack_blocks::<L>(Format::Q4_0, packed),
            Format::Q4_1 => self.unpack_blocks::<L>(Format::Q4_1, packed),
            Format::Q5_0 => self.unpack_blocks::<L>(Format::Q5_0, packed),
            Format::Q5_1 => self.unpack_blocks::<L>(Format::Q5_1, packed),
            Format::Q8_0 => self.unpack_blocks::<L>(Format::Q8_0, packed),
            Format::Q4K => self.unpack_blocks::<L>(Format::Q4K, packed),
            Format::Q5K => self.unpack_blocks::<L>(Format::Q5K, packed),
            Format::Q6K => self.unpack_blocks::<L>(Format::Q6K, packed),
            Format::Q2K => self.unpack_blocks::<L>(Format::Q2K, packed),
            Format::Q3K => self.unpack_blocks::<L>(Format::Q3K, packed),
            Format::Iq4Nl => self.unpack_blocks::<L>(Format::Iq4Nl, packed),
            Format::Iq4Xs => self.unpack_blocks::<L>(Format::Iq4Xs, packed),
            Format::F32 | Format::F16 | Format::Bf16 => unreachable!("dense weights are not unpacked"),
        }
    }

    #[inline(always)]
    fn unpack_blocks<L: SimdF32x16>(&mut self, format: Format, packed: &[u8]) {
        let (zero, per_block) = (format.zero() as u8, BLOCK / format.group_len());
        let mut blocks = Blocks::<L>::new(format, packed);
        for groups in self.groups.chunks_exact_mut(per_block) {
            let block = blocks.next();
            for (part, group) in groups.iter_mut().enumerate() {
                let scales = block.scales(part);
                scales.d.store(&mut group.d);
                scales.m.store(&mut group.m);
                // Fours of columns that belong to another group are zeros.
                for (four, out) in group.weights.iter_mut().enumerate() {
                    *out = match four / (GROUPS / per_block) == part {
                        true => L::to_bytes(block.group(four)).map(|q| q.wrapping_sub(zero).cast_signed()),
                        false => [0; 64],
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Activations;
    use super::super::bf16::Rounded;
    use super::super::output::{Output, RowEpilogue, to_be_written};
    use super::super::{pack, panel};
    use super::*;

    /// The loops over tiles, on every machine; those of a matrix unit are compared in `tests/matmul.rs` where there is one.
    #[test]
    fn tiles_give_the_bits_of_panels() {
        let mut unpacked = Unpacked::default();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        for format in Format::ALL.into_iter().filter(|format| !format.is_dense()) {
            // One block, an odd number of them, and a whole number of what is multiplied at once.
            for (cols, m) in [(256usize, 16usize), (32, 11), (96, 16), (1280, 40)] {
                if !cols.is_multiple_of(format.block_len()) {
                    continue;
                }
                let x: Vec<f32> = (0..m * cols).map(|_| random() as f32 / 2f32.powi(30) - 1.0).collect();
                // Any bytes are weights; scales that are no numbers are tested elsewhere.
                let mut packed: Vec<u8> = (0..pack::panel_bytes(format, cols)).map(|_| random() as u8).collect();
                packed.iter_mut().skip(1).step_by(2).for_each(|byte| *byte &= 0xbf);
                let (mut in_tiles, mut activations) = (Activations::default(), Activations::default());
                in_tiles.quantise_in_tiles(Isa::Scalar, ROWS, &x, m, cols);
                activations.quantise(Isa::Scalar, &x, m, cols);
                let rows = Rows { x: &x, quantised: &activations, rounded: &Rounded::default(), cols };
                let (mut got, mut want) = (vec![f32::NAN; m * PANEL], vec![f32::NAN; m * PANEL]);
                let out = Output::new(to_be_written(&mut got), PANEL, None);
                let on_tiles = Rows { quantised: &in_tiles, ..rows };
                // SAFETY: there is one task.
                let columns = unsafe { out.columns(0, PANEL, RowEpilogue::None) };
                multiply_tiles::<simd::Plain, matrix_unit::Plain>(
                    &mut unpacked,
                    format,
                    &packed,
                    on_tiles,
                    0..m,
                    columns,
                );
                let out = Output::new(to_be_written(&mut want), PANEL, None);
                // SAFETY: as above.
                panel::multiply(Isa::Scalar, format, &packed, rows, 0..m, unsafe {
                    out.columns(0, PANEL, RowEpilogue::None)
                });
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert!(want.iter().all(|x| x.is_finite()), "{format:?}");
                assert_eq!(bits(&got), bits(&want), "{format:?}, {m} rows of {cols} columns");
            }
        }
    }

    #[test]
    fn whole_tiles_and_what_is_worth_one_go_to_the_unit() {
        let on_tiles = |m| rows(Isa::I8mm, Format::Q4K, m);
        assert_eq!([1, 7, 8, 15, 16, 17, 24, 256].map(on_tiles), [0, 0, 8, 15, 16, 16, 24, 256]);
        assert_eq!(rows(Isa::I8mm, Format::Bf16, 64), 0);
        assert_eq!(rows(Isa::Avx512, Format::Q4K, 64), 0);
    }
}
