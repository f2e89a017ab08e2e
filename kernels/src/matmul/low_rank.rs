//! Low-rank changes of a product, for some of its rows (LoRA, arXiv 2106.09685).
//!
//! # Contract
//! `y[m][first + n] += s · Σ_j t[j] · b[n][j]` with `t[j] = Σ_k x[m][k] · a[j][k]`, for every part of a change and every row `m`
//! that it is for; `x: [M, K]`, `y: [M, W]`, `a: [r, K]`, `b: [N, r]`. Other rows of `y` keep their bits.
//!
//! # Numerics
//! `t` is the sum of four chains of fused multiply-adds, over `k` with the same remainder by four, ascending: `(c0 + c1) + (c2 +
//! c3)`, then times `s`. `y` continues as one chain over ascending `j`. All ISAs give these bits, and a row does not depend on the
//! other rows. Matrices are kept in the smallest of f16, bf16 and f32 that holds every value exactly.
//!
//! # Cost
//! `r (K + N)` multiply-adds a row. Rows of one change share each read of its matrices; with few rows reading them is the cost.

use std::ops::Range;

use half::{bf16, f16};

use super::{Format, Matrix, MatrixError, PANEL};
use crate::cpu::Isa;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for, threads};
use crate::simd::SimdF32x16;

/// Panels of outputs that a task takes at once.
const WIDE_PANELS: usize = 8;

/// Rows of a task, where there are many.
const ROWS_PER_TASK: usize = 32;

/// One changed projection in a stack of them.
#[derive(Debug, Clone, Copy)]
pub struct LowRankPart<'a> {
    /// Its first output in the stack.
    pub first: usize,
    /// r
    pub rank: usize,
    /// s
    pub scale: f32,
    /// `[r, K]`
    pub a: &'a [f32],
    /// `[N, r]`
    pub b: &'a [f32],
}

/// The low-rank change of a stack of projections that share their input.
#[derive(Debug)]
pub struct LowRank {
    cols: usize,
    width: usize,
    parts: Vec<Part>,
    /// Values of `t` over all parts, each part padded to whole panels.
    thin: usize,
}

#[derive(Debug)]
struct Part {
    a: Matrix,
    b: Matrix,
    first: usize,
    scale: f32,
    /// Where its values of `t` start.
    thin_at: usize,
}

/// Rows of a task, all of one change.
struct Tile<'a> {
    change: &'a LowRank,
    rows: &'a [u32],
}

impl LowRank {
    /// Packs the change of a stack with inputs of `cols` and outputs of `width` values.
    ///
    /// # Errors
    /// If a matrix does not have the shape that its rank says.
    ///
    /// # Panics
    /// If a part reaches beyond the outputs or has no rank.
    pub fn pack(cols: usize, width: usize, parts: &[LowRankPart<'_>]) -> Result<LowRank, MatrixError> {
        let mut thin = 0;
        let pack = |part: &LowRankPart<'_>| {
            let outputs = part.b.len() / part.rank;
            assert!(part.first + outputs <= width, "outputs {}+{outputs} of {width}", part.first);
            let (a, b) = (pack_exact(part.a, part.rank, cols)?, pack_exact(part.b, outputs, part.rank)?);
            let thin_at = thin;
            thin += part.rank.next_multiple_of(PANEL);
            Ok(Part { a, b, first: part.first, scale: part.scale, thin_at })
        };
        let parts = parts.iter().map(pack).collect::<Result<_, _>>()?;
        Ok(LowRank { cols, width, parts, thin })
    }

    /// K, the width of the input.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// W, the width of the output.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of the matrices.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.a.bytes() + part.b.bytes()).sum()
    }

    /// The panels of all A matrices: part, panel.
    fn thin_panels(&self) -> impl Iterator<Item = (&Part, usize)> {
        self.parts.iter().flat_map(|part| (0..part.a.rows().div_ceil(PANEL)).map(move |panel| (part, panel)))
    }

    /// The panels of all B matrices, some at once: part, panels.
    fn wide_panels(&self) -> impl Iterator<Item = (&Part, Range<usize>)> {
        self.parts.iter().flat_map(|part| {
            let panels = part.b.rows().div_ceil(PANEL);
            (0..panels).step_by(WIDE_PANELS).map(move |first| (part, first..panels.min(first + WIDE_PANELS)))
        })
    }
}

/// Adds changes to `y: [M, W]`, the products of `x: [M, K]`; each change is for the rows with the given numbers.
///
/// # Panics
/// If a slice has the wrong size, or a row is out of range or named twice.
pub fn add_low_rank(isa: Isa, x: &[f32], y: &mut [f32], changes: &[(&LowRank, &[u32])]) {
    let Some((LowRank { cols, width, .. }, _)) = changes.first() else { return };
    let count = y.len() / width;
    assert!(y.len() == count * width && x.len() == count * cols, "{count} rows of {cols} and {width} values");
    assert!(changes.iter().all(|(change, _)| (change.cols, change.width) == (*cols, *width)), "changes of one stack");
    let mut seen = vec![false; count];
    for row in changes.iter().flat_map(|(_, rows)| rows.iter()) {
        assert!(!std::mem::replace(&mut seen[*row as usize], true), "row {row} is changed twice");
    }
    let height = |rows: &[u32]| rows.len().div_ceil(threads()).clamp(1, ROWS_PER_TASK);
    let tiles: Vec<Tile<'_>> = changes
        .iter()
        .flat_map(|(change, rows)| rows.chunks(height(rows)).map(move |rows| Tile { change, rows }))
        .collect();
    let y = Disjoint::new(y);
    if tiles.len() >= threads() {
        return parallel_for(tiles.len(), &|task| {
            let tile = &tiles[task];
            let mut thin = vec![0f32; tile.rows.len() * tile.change.thin];
            let all = Disjoint::new(&mut thin);
            tile.change.thin_panels().for_each(|panel| shrink(isa, tile, panel, x, &all));
            tile.change.wide_panels().for_each(|panel| expand(isa, tile, panel, &thin, &y));
        });
    }
    // Fewer rows than threads: these share the panels instead.
    for tile in &tiles {
        let mut thin = vec![0f32; tile.rows.len() * tile.change.thin];
        let all = Disjoint::new(&mut thin);
        let panels: Vec<(&Part, usize)> = tile.change.thin_panels().collect();
        parallel_for(panels.len(), &|task| shrink(isa, tile, panels[task], x, &all));
        let panels: Vec<(&Part, Range<usize>)> = tile.change.wide_panels().collect();
        let run = panels.len().div_ceil(threads());
        parallel_for(panels.len().div_ceil(run), &|task| {
            panels[task * run..].iter().take(run).for_each(|panel| expand(isa, tile, panel.clone(), &thin, &y));
        });
    }
}

/// Writes the values of `t` of one panel for the rows of a tile; every panel is written by one task.
fn shrink(isa: Isa, tile: &Tile<'_>, (part, panel): (&Part, usize), x: &[f32], thin: &Disjoint<'_, f32>) {
    let Tile { change, rows } = tile;
    let (format, weights) = part.a.dense_panel(panel);
    let inputs = |row: &u32| &x[*row as usize * change.cols..][..change.cols];
    let at = part.thin_at + panel * PANEL;
    for (tile, rows) in rows.chunks(4).enumerate() {
        let rows: Vec<&[f32]> = rows.iter().map(inputs).collect();
        let mut sums = [[0f32; PANEL]; 4];
        thin_sums(isa, format, weights, &rows, part.scale, &mut sums);
        for (row, sums) in (4 * tile..).zip(&sums[..rows.len()]) {
            // SAFETY: every row and panel has values of its own, written by one task.
            unsafe { thin.part(row * change.thin + at, PANEL) }.copy_from_slice(sums);
        }
    }
}

/// Adds the outputs of some panels to the rows of a tile; every panel and row belongs to one task.
fn expand(isa: Isa, tile: &Tile<'_>, (part, panels): (&Part, Range<usize>), thin: &[f32], y: &Disjoint<'_, f32>) {
    let Tile { change, rows } = tile;
    let (format, weights) = part.b.dense_panels(panels.clone());
    let whole = panels.len().min(part.b.rows() / PANEL - panels.start);
    let (weights, last) = weights.split_at(weights.len() / panels.len() * whole);
    let at = part.first + panels.start * PANEL;
    let (count, rest) = (whole * PANEL, part.b.rows().min(panels.end * PANEL) - (panels.start + whole) * PANEL);
    for (tile, rows) in rows.chunks(4).enumerate() {
        let thin = &thin[4 * tile * change.thin + part.thin_at..];
        let shape = (change.thin, part.b.cols());
        // SAFETY: rows are different and panels do not overlap.
        let outputs = |row: &u32, at: usize, len: usize| unsafe { y.part(*row as usize * change.width + at, len) };
        let mut sums: [&mut [f32]; 4] =
            std::array::from_fn(|row| rows.get(row).map_or(&mut [][..], |row| outputs(row, at, count)));
        wide_sums(isa, format, weights, thin, shape, &mut sums[..rows.len()]);
        if rest > 0 {
            let mut padded = [[0f32; PANEL]; 4];
            let outputs = |row: &u32| outputs(row, at + count, rest);
            padded.iter_mut().zip(rows).for_each(|(padded, row)| padded[..rest].copy_from_slice(outputs(row)));
            let mut sums: Vec<&mut [f32]> = padded[..rows.len()].iter_mut().map(|row| &mut row[..]).collect();
            wide_sums(isa, format, last, thin, shape, &mut sums);
            padded.iter().zip(rows).for_each(|(padded, row)| outputs(row).copy_from_slice(&padded[..rest]));
        }
    }
}

per_isa! {
    /// `s · x aᵀ` of up to four rows with a panel.
    fn thin_sums(isa, format: Format, panel: &[u8], rows: &[&[f32]], scale: f32, sums: &mut [[f32; PANEL]; 4]) =
        thin_sums_of::<L>;
}

#[inline(always)]
fn thin_sums_of<L: SimdF32x16>(
    format: Format,
    panel: &[u8],
    rows: &[&[f32]],
    scale: f32,
    sums: &mut [[f32; PANEL]; 4],
) {
    match format {
        Format::F16 => thin_sums_dense(panel, L::from_halves, rows, scale, sums),
        Format::Bf16 => thin_sums_dense(panel, L::from_bf16s, rows, scale, sums),
        _ => thin_sums_dense(panel, L::from_f32s, rows, scale, sums),
    }
}

#[inline(always)]
fn thin_sums_dense<L: SimdF32x16, const BYTES: usize>(
    panel: &[u8],
    load: impl Fn(&[u8; BYTES]) -> L + Copy,
    rows: &[&[f32]],
    scale: f32,
    sums: &mut [[f32; PANEL]; 4],
) {
    match rows {
        [row] => thin_chains(panel, load, [row], scale, sums),
        [first, second] => thin_chains(panel, load, [first, second], scale, sums),
        // Where registers are few, two rows at a time.
        _ if L::DENSE_ROWS < 8 => {
            let (first, second) = sums.split_at_mut(2);
            thin_chains(panel, load, [rows[0], rows[1]], scale, first);
            thin_chains(panel, load, [rows[2], rows[rows.len() - 1]], scale, second);
        }
        _ => thin_chains(panel, load, [rows[0], rows[1], rows[2], rows[rows.len() - 1]], scale, sums),
    }
}

#[inline(always)]
fn thin_chains<L: SimdF32x16, const R: usize, const BYTES: usize>(
    panel: &[u8],
    load: impl Fn(&[u8; BYTES]) -> L,
    rows: [&[f32]; R],
    scale: f32,
    sums: &mut [[f32; PANEL]],
) {
    let (weights, _) = panel.as_chunks::<BYTES>();
    let weights = &weights[..rows[0].len()];
    let (fours, rest) = weights.as_chunks::<4>();
    let mut chains = [[L::splat(0.0); R]; 4];
    let mut x = [&[][..]; R];
    for (x, row) in x.iter_mut().zip(rows) {
        *x = row.as_chunks::<4>().0;
    }
    for (at, four) in fours.iter().enumerate() {
        for (chain, w) in four.iter().enumerate() {
            let w = load(w);
            for r in 0..R {
                chains[chain][r] = L::splat(x[r][at][chain]).mul_add(w, chains[chain][r]);
            }
        }
    }
    for (chain, w) in rest.iter().enumerate() {
        let w = load(w);
        for r in 0..R {
            chains[chain][r] = L::splat(rows[r][4 * fours.len() + chain]).mul_add(w, chains[chain][r]);
        }
    }
    for r in 0..R {
        let joined = chains[0][r].add(chains[1][r]).add(chains[2][r].add(chains[3][r]));
        joined.mul(L::splat(scale)).store(&mut sums[r]);
    }
}

per_isa! {
    /// Adds `t bᵀ` of up to four rows with whole panels to `sums`, the outputs of each row; `thin` has the values of the rows, with
    /// the distance between rows and the rank in `shape`.
    fn wide_sums(
        isa,
        format: Format,
        panels: &[u8],
        thin: &[f32],
        shape: (usize, usize),
        sums: &mut [&mut [f32]],
    ) = wide_sums_of::<L>;
}

#[inline(always)]
fn wide_sums_of<L: SimdF32x16>(
    format: Format,
    panels: &[u8],
    thin: &[f32],
    shape: (usize, usize),
    sums: &mut [&mut [f32]],
) {
    match format {
        Format::F16 => wide_sums_dense(panels, L::from_halves, thin, shape, sums),
        Format::Bf16 => wide_sums_dense(panels, L::from_bf16s, thin, shape, sums),
        _ => wide_sums_dense(panels, L::from_f32s, thin, shape, sums),
    }
}

#[inline(always)]
fn wide_sums_dense<L: SimdF32x16, const BYTES: usize>(
    panels: &[u8],
    load: impl Fn(&[u8; BYTES]) -> L + Copy,
    thin: &[f32],
    (stride, rank): (usize, usize),
    sums: &mut [&mut [f32]],
) {
    let (weights, _) = panels.as_chunks::<BYTES>();
    let thin = |row: usize| &thin[row * stride..][..rank];
    match sums {
        [a, b, c, d] => wide_rows(weights, load, [thin(0), thin(1), thin(2), thin(3)], [&mut **a, b, c, d]),
        [a, b, c] => {
            wide_rows(weights, load, [thin(0), thin(1)], [&mut **a, b]);
            wide_rows(weights, load, [thin(2)], [&mut **c]);
        }
        [a, b] => wide_rows(weights, load, [thin(0), thin(1)], [&mut **a, b]),
        [a] => wide_rows(weights, load, [thin(0)], [&mut **a]),
        _ => {}
    }
}

/// Some panels at a time, because the sums of one panel wait for each other.
#[inline(always)]
fn wide_rows<L: SimdF32x16, const R: usize, const BYTES: usize>(
    weights: &[[u8; BYTES]],
    load: impl Fn(&[u8; BYTES]) -> L + Copy,
    thin: [&[f32]; R],
    sums: [&mut [f32]; R],
) {
    let mut sums = sums.map(|sums| sums.as_chunks_mut::<PANEL>().0);
    let (rank, panels) = (thin[0].len(), sums[0].len());
    let columns = weights.len() / panels.max(1);
    let mut done = 0;
    if R == 1 {
        while panels - done >= 4 {
            let weights = [0, 1, 2, 3].map(|panel| &weights[(done + panel) * columns..][..rank]);
            wide_chains::<L, R, 4, BYTES>(weights, load, thin, done, &mut sums);
            done += 4;
        }
    }
    // Where registers are few, one panel of four rows.
    if L::DENSE_ROWS >= 8 || R < 4 {
        while panels - done >= 2 {
            let weights = [0, 1].map(|panel| &weights[(done + panel) * columns..][..rank]);
            wide_chains::<L, R, 2, BYTES>(weights, load, thin, done, &mut sums);
            done += 2;
        }
    }
    while done < panels {
        wide_chains::<L, R, 1, BYTES>([&weights[done * columns..][..rank]], load, thin, done, &mut sums);
        done += 1;
    }
}

#[inline(always)]
fn wide_chains<L: SimdF32x16, const R: usize, const P: usize, const BYTES: usize>(
    weights: [&[[u8; BYTES]]; P],
    load: impl Fn(&[u8; BYTES]) -> L,
    thin: [&[f32]; R],
    first: usize,
    sums: &mut [&mut [[f32; PANEL]]; R],
) {
    let mut chains = [[L::splat(0.0); P]; R];
    for r in 0..R {
        for p in 0..P {
            chains[r][p] = L::load(&sums[r][first + p]);
        }
    }
    let rank = weights[0].len();
    let thin = thin.map(|thin| &thin[..rank]);
    let weights = weights.map(|weights| &weights[..rank]);
    for k in 0..rank {
        for p in 0..P {
            let w = load(&weights[p][k]);
            for r in 0..R {
                chains[r][p] = L::splat(thin[r][k]).mul_add(w, chains[r][p]);
            }
        }
    }
    for r in 0..R {
        for p in 0..P {
            chains[r][p].store(&mut sums[r][first + p]);
        }
    }
}

/// Packs values in the smallest dense format that holds all of them exactly.
fn pack_exact(values: &[f32], rows: usize, cols: usize) -> Result<Matrix, MatrixError> {
    let same = |x: &f32, y: f32| x.to_bits() == y.to_bits();
    if values.iter().all(|x| same(x, f16::from_f32(*x).to_f32())) {
        let bytes: Vec<u8> = values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
        return Matrix::pack(Format::F16, rows, cols, &bytes);
    }
    if values.iter().all(|x| same(x, bf16::from_f32(*x).to_f32())) {
        let bytes: Vec<u8> = values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect();
        return Matrix::pack(Format::Bf16, rows, cols, &bytes);
    }
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Matrix::pack(Format::F32, rows, cols, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1000.0 - 1.0).collect()
    }

    /// The contract in plain loops.
    fn by_loops(x: &[f32], y: &mut [f32], (cols, width): (usize, usize), parts: &[LowRankPart<'_>], rows: &[u32]) {
        for row in rows {
            let x = &x[*row as usize * cols..][..cols];
            for part in parts {
                let thin = |a: &[f32]| {
                    let mut c = [0f32; 4];
                    x.iter().zip(a).enumerate().for_each(|(k, (x, a))| c[k % 4] = x.mul_add(*a, c[k % 4]));
                    ((c[0] + c[1]) + (c[2] + c[3])) * part.scale
                };
                let thin: Vec<f32> = part.a.chunks_exact(cols).map(thin).collect();
                let y = &mut y[*row as usize * width + part.first..];
                for (y, b) in y.iter_mut().zip(part.b.chunks_exact(part.rank)) {
                    *y = thin.iter().zip(b).fold(*y, |sum, (t, b)| t.mul_add(*b, sum));
                }
            }
        }
    }

    #[test]
    fn every_isa_gives_the_bits_of_plain_loops_and_other_rows_keep_theirs() {
        // A width and a rank that are no whole panels, and columns that are no whole fours.
        for (cols, ranks, outputs) in [(64, [16, 16], [48, 32]), (33, [3, 20], [5, 40])] {
            let width = outputs[0] + 7 + outputs[1];
            let round = |values: Vec<f32>, part: usize| -> Vec<f32> {
                // One part in f32, one in f16.
                values.into_iter().map(|x| if part == 0 { x } else { f16::from_f32(x).to_f32() }).collect()
            };
            let matrices = |seed: usize| -> Vec<[Vec<f32>; 2]> {
                let of = |part: usize| {
                    let a = round(numbers(ranks[part] * cols, seed + part), part);
                    [a, round(numbers(outputs[part] * ranks[part], seed + 5 + part), part)]
                };
                (0..2).map(of).collect()
            };
            let both = [matrices(1), matrices(20)];
            let parts = |matrices: &'static [[Vec<f32>; 2]]| -> Vec<LowRankPart<'static>> {
                let part = |(part, [a, b]): (usize, &'static [Vec<f32>; 2])| {
                    let first = if part == 0 { 0 } else { outputs[0] + 7 };
                    LowRankPart { first, rank: ranks[part], scale: 0.5 + part as f32, a, b }
                };
                matrices.iter().enumerate().map(part).collect()
            };
            let [first, second] = both.map(|matrices| parts(matrices.leak()));
            let packed = [&first, &second].map(|parts| LowRank::pack(cols, width, parts).unwrap());
            for count in [1, 2, 3, 7, 90] {
                let (x, before) = (numbers(count * cols, 3), numbers(count * width, 4));
                let all: Vec<u32> = (0..count as u32).collect();
                let (some, rest): (Vec<u32>, Vec<u32>) =
                    all.iter().filter(|row| **row != 1).partition(|row| **row % 3 == 0);
                let mut want = before.clone();
                by_loops(&x, &mut want, (cols, width), &first, &some);
                by_loops(&x, &mut want, (cols, width), &second, &rest);
                for isa in Isa::available() {
                    let mut got = before.clone();
                    add_low_rank(isa, &x, &mut got, &[(&packed[0], &some), (&packed[1], &rest)]);
                    assert!(got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()), "{isa}, {count} rows");
                }
            }
        }
    }

    #[test]
    fn matrices_are_kept_in_the_smallest_format_that_is_exact() {
        let format = |x: f32| pack_exact(&[x, 1.0], 1, 2).unwrap().formats().next().unwrap();
        assert_eq!(format(0.5), Format::F16);
        assert_eq!(format(1e30), Format::F32);
        assert_eq!(format(2f32.powi(100)), Format::Bf16);
        assert_eq!(format(0.1), Format::F32);
    }

    #[test]
    #[should_panic(expected = "row 1 is changed twice")]
    fn a_row_with_two_changes_is_refused() {
        let part = LowRankPart { first: 0, rank: 1, scale: 1.0, a: &[1.0], b: &[1.0] };
        let change = LowRank::pack(1, 1, &[part]).unwrap();
        add_low_rank(Isa::Scalar, &[1.0, 1.0], &mut [1.0, 1.0], &[(&change, &[0, 1]), (&change, &[1])]);
    }
}
