//! One or two tiles of rows and one block of keys.

use std::ops::Range;

use super::{BLOCK, LANES, PAGES, Scratch, Source, TiledRows, fetch};
use crate::attention::KEYS;
use crate::bf16_unit::{Bf16Unit, Line, ROWS, STEP, Strided, Sums};
use crate::simd::{InBf16, SimdF32x16, exp2};

/// Rows that are multiplied at once: two tiles.
const AT_ONCE: usize = 2 * ROWS;

/// Keys or dimensions that they are multiplied with at once: two panels.
const COLUMNS: usize = 2 * LANES;

/// The rows of one or two tiles and the keys of one block that they see.
struct View {
    rows: Range<usize>,
    first_page: usize,
    /// The keys of the block that each row sees.
    sees: [Range<usize>; AT_ONCE],
    /// All of these.
    any: Range<usize>,
    /// The pages of the block that hold these.
    pages: Range<usize>,
    /// Whether all rows see all keys of a page.
    is_whole: [bool; PAGES],
}

impl View {
    #[inline(always)]
    fn of(rows: &TiledRows, first_row: usize, block: usize) -> View {
        let within = |key: usize| key.saturating_sub(block * BLOCK).min(BLOCK);
        let of_rows = first_row..rows.visible.len().min(first_row + 2 * rows.height);
        let mut sees = [const { 0..0 }; AT_ONCE];
        let mut all = 0..BLOCK;
        for (sees, visible) in sees.iter_mut().zip(&rows.visible[of_rows.clone()]) {
            *sees = within(visible.start)..within(visible.end);
            all = all.start.max(sees.start)..all.end.min(sees.end);
        }
        let seen = rows.seen(of_rows.clone());
        let any = within(seen.start)..within(seen.end);
        View {
            rows: of_rows,
            first_page: block * PAGES,
            sees,
            pages: any.start / KEYS..any.end.div_ceil(KEYS),
            any,
            is_whole: std::array::from_fn(|page| all.start <= page * KEYS && (page + 1) * KEYS <= all.end),
        }
    }

    /// The tile of row `row`, and its place in it.
    #[inline(always)]
    fn place(row: usize, height: usize) -> (usize, usize) {
        if row < height { (0, row) } else { (1, row - height) }
    }
}

/// Lets the rows of one or two tiles attend to the keys of one block.
#[inline(always)]
pub(super) fn attend<L: InBf16, U: Bf16Unit>(
    unit: &mut U,
    rows: &mut TiledRows,
    first_row: usize,
    block: usize,
    source: Source<'_>,
) {
    let view = View::of(rows, first_row, block);
    if view.any.is_empty() {
        return;
    }
    score(unit, rows, &view, source);
    let shrink = if view.pages == (0..PAGES) {
        weigh::<L>(rows, &view, 0..PAGES)
    } else {
        weigh::<L>(rows, &view, view.pages.clone())
    };
    if view.pages.clone().all(|page| view.is_whole[page]) || copy_values(rows, &view, source, &view.any) {
        return add::<L, U>(unit, rows, &view, source, &shrink, 0..view.rows.len());
    }
    // Products of infinite values with weights of 0 are NaN: each row needs values without what it does not see.
    for row in 0..view.rows.len() {
        copy_values(rows, &view, source, &view.sees[row]);
        add::<L, U>(unit, rows, &view, source, &shrink, row..row + 1);
    }
}

/// Scores of both tiles.
#[inline(always)]
fn score<U: Bf16Unit>(unit: &mut U, rows: &mut TiledRows, view: &View, source: Source<'_>) {
    let (steps, height) = (rows.dim / STEP, rows.height);
    let (first, second) = rows.q[view.rows.start * steps..].split_at(steps * height);
    let two = view.rows.len() > height;
    for page in view.pages.clone() {
        let tile = source.page(view.first_page + page);
        if view.rows.start == 0 {
            fetch(tile.values);
        }
        unit.clear();
        for (step, keys) in tile.keys.chunks_exact(STEP * KEYS).enumerate() {
            let q = step * height..(step + 1) * height;
            let left = [Some(&first[q.clone()]), two.then(|| &second[q])];
            unit.add(left, [Some(Strided::new(keys, 2 * KEYS)), Some(Strided::new(&keys[KEYS..], 2 * KEYS))]);
        }
        store(unit, two, &mut rows.scratch.sums[page]);
    }
}

#[inline(always)]
fn store<U: Bf16Unit>(unit: &mut U, two: bool, sums: &mut [[Sums; 2]; 2]) {
    for (i, sums) in sums.iter_mut().enumerate().take(1 + usize::from(two)) {
        unit.store(i, 0, &mut sums[0]);
        unit.store(i, 1, &mut sums[1]);
    }
}

/// Turns scores into weights, 0 for keys that a row does not see, and returns the factors by which earlier sums are rescaled. A row
/// that sees no key keeps its state.
#[inline(always)]
fn weigh<L: InBf16>(rows: &mut TiledRows, view: &View, pages: Range<usize>) -> [f32; AT_ONCE] {
    let (height, scores) = (rows.height, &mut rows.scratch.sums[..PAGES]);
    let (max, sum) = (&mut rows.max[view.rows.clone()], &mut rows.sum[view.rows.clone()]);
    let mut shrink = [0f32; AT_ONCE];
    for (row, sees) in view.sees[..view.rows.len()].iter().enumerate() {
        if sees.is_empty() {
            continue;
        }
        let (tile, line) = View::place(row, height);
        let mut largest = L::splat(f32::NEG_INFINITY);
        for page in pages.clone() {
            let [low, high] = &mut scores[page][tile];
            if !view.is_whole[page] {
                hide(&mut low.0[line], page * KEYS, sees);
                hide(&mut high.0[line], page * KEYS + LANES, sees);
            }
            largest = L::load(&high.0[line]).max(L::load(&low.0[line]).max(largest));
        }
        let largest = largest.largest().max(max[row]);
        shrink[row] = max[row] - largest;
        max[row] = largest;
    }
    for shrink in shrink.as_chunks_mut::<LANES>().0 {
        exp2(L::load(shrink)).store(shrink);
    }
    for (row, sees) in view.sees[..view.rows.len()].iter().enumerate() {
        let (tile, line) = View::place(row, height);
        let (largest, mut added) = (L::splat(max[row]), L::splat(0.0));
        for page in pages.clone() {
            let weights = &mut rows.scratch.weights[(2 * page + tile) * height + line];
            if sees.is_empty() {
                *weights = Line::ZERO;
                continue;
            }
            let [low, high] = &scores[page][tile];
            let low = exp2(L::load(&low.0[line]).sub(largest));
            let high = exp2(L::load(&high.0[line]).sub(largest));
            added = added.add(low).add(high);
            L::store_bf16s(low, high, &mut weights.0);
        }
        L::load(&sum[row]).mul_add(L::splat(shrink[row]), added).store(&mut sum[row]);
    }
    shrink
}

/// Replaces the scores of 16 keys from `first` on that a row does not see.
#[inline(always)]
fn hide(scores: &mut [f32; LANES], first: usize, sees: &Range<usize>) {
    let within = |key: usize| key.saturating_sub(first).min(LANES);
    scores[..within(sees.start)].fill(f32::NEG_INFINITY);
    scores[within(sees.end)..].fill(f32::NEG_INFINITY);
}

/// Copies the values of pages that some rows do not see whole, with zeros in place of the keys that are not in `seen`. Returns
/// whether all are finite.
#[inline(always)]
fn copy_values(rows: &mut TiledRows, view: &View, source: Source<'_>, seen: &Range<usize>) -> bool {
    const INFINITE: u16 = 0x7f80;
    let mut largest = 0;
    for page in view.pages.clone().filter(|page| !view.is_whole[*page]) {
        let values = source.page(view.first_page + page).values;
        let copy = &mut rows.scratch.values[page * values.len()..][..values.len()];
        let pairs = values.chunks_exact(2 * rows.dim).zip(copy.chunks_exact_mut(2 * rows.dim));
        for (at, (values, copy)) in pairs.enumerate() {
            let mask = |key: usize| if seen.contains(&(page * KEYS + key)) { u16::MAX } else { 0 };
            let masks = [mask(2 * at), mask(2 * at + 1)];
            for (copy, values) in copy.as_chunks_mut::<2>().0.iter_mut().zip(values.as_chunks::<2>().0) {
                *copy = [values[0] & masks[0], values[1] & masks[1]];
                largest = largest.max(copy[0] & INFINITE).max(copy[1] & INFINITE);
            }
        }
    }
    largest < INFINITE
}

/// Adds weighted values to the sums of some rows, 32 dimensions at a time.
#[inline(always)]
fn add<L: SimdF32x16, U: Bf16Unit>(
    unit: &mut U,
    rows: &mut TiledRows,
    view: &View,
    source: Source<'_>,
    shrink: &[f32; AT_ONCE],
    only: Range<usize>,
) {
    let (dim, height) = (rows.dim, rows.height);
    let two = view.rows.len() > height;
    let Scratch { sums, weights, values: copies } = &mut rows.scratch;
    for start in (0..dim).step_by(COLUMNS) {
        unit.clear();
        for page in view.pages.clone() {
            if view.rows.start == 0 && start == 0 {
                source.fetch_keys(view.first_page + PAGES + page);
            }
            let in_place = source.page(view.first_page + page).values;
            let values = if view.is_whole[page] { in_place } else { &copies[page * KEYS * dim..][..KEYS * dim] };
            let (first, second) = weights[2 * page * height..][..2 * height].split_at(height);
            let right = [start, start + LANES].map(|d| Some(Strided::new(&values[2 * d..], 2 * dim)));
            unit.add([Some(first), two.then_some(second)], right);
        }
        store(unit, two, &mut sums[0]);
        for row in only.clone() {
            let (tile, line) = View::place(row, height);
            let out = &mut rows.out[(view.rows.start + row) * dim + start..][..COLUMNS];
            for (out, sums) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(&sums[0][tile]) {
                L::load(out).mul_add(L::splat(shrink[row]), L::load(&sums.0[line])).store(out);
            }
        }
    }
}
