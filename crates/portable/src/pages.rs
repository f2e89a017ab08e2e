//! Keys and values in pages, by candle's own operations.
//!
//! A page of a layer is `[2, 32, K, D]`: the keys of its 32 tokens, then their values. New ones are written in place with one
//! scatter a layer; attention gathers the pages of a sequence by their numbers, so sequences share pages. The gathered copy
//! is what it costs beside kernels that read pages where they are.

use candle_core::{DType, Device, IndexOp, Result, Tensor};
use kernels::attention::{Heads, PagedSequence};
use models::{Batch, PAGE_TOKENS};

use crate::{plain, quantised};

/// Scores of queries against keys that exist at once, in `f32`: 64 MB.
const MAX_SCORES: usize = 1 << 24;

/// Where the rows of a step belong, on the device.
#[derive(Debug)]
pub(crate) struct Places {
    /// The row of each key, then of each value, among all rows of all pages.
    rows: Vec<u32>,
    /// The same for each element: `[2N, K·D]`.
    write_ids: Tensor,
    sequences: Vec<Sequence>,
    /// Tokens that a query sees in layers with a sliding window.
    window: Option<usize>,
}

#[derive(Debug)]
struct Sequence {
    first_row: usize,
    rows: usize,
    /// Tokens with keys and values, those of this step included.
    len: usize,
    /// `[P]`
    pages: Tensor,
}

impl Places {
    /// `window`: tokens that a query sees in layers with a sliding window, if the network has such.
    pub fn new(batch: &Batch<'_>, heads: Heads, window: Option<usize>, device: &Device) -> Result<Places> {
        let (page, width) = (PAGE_TOKENS as u32, heads.key_width());
        let key_row = |slot: &u32| slot / page * 2 * page + slot % page;
        let rows = batch.slots.iter().map(key_row).chain(batch.slots.iter().map(|slot| key_row(slot) + page));
        let rows: Vec<u32> = rows.collect();
        let ids: Vec<u32> = rows.iter().flat_map(|row| std::iter::repeat_n(*row, width)).collect();
        let sequence = |sequence: &PagedSequence<'_>| Sequence::new(sequence, device);
        Ok(Places {
            write_ids: Tensor::from_vec(ids, (2 * batch.slots.len(), width), device)?,
            rows,
            sequences: batch.sequences.iter().map(sequence).collect::<Result<_>>()?,
            window,
        })
    }

    /// Writes the keys and values of all rows, `[N, K·D]` each, to the pages of a layer.
    pub fn write(&self, pages: &Tensor, keys: &Tensor, values: &Tensor) -> Result<()> {
        let width = keys.dim(1)?;
        let rows = Tensor::cat(&[keys, values], 0)?;
        if pages.dtype() == DType::U8 {
            return quantised::write(pages, &rows, &self.rows);
        }
        let rows = rows.to_dtype(pages.dtype())?;
        pages.reshape((pages.elem_count() / width, width))?.scatter_set(&self.write_ids, &rows, 0)
    }

    /// Attention of all rows over the pages of a layer: `[N, A, D] -> [N, A·D]`.
    pub fn attend(&self, queries: &Tensor, pages: &Tensor, heads: Heads, has_window: bool) -> Result<Tensor> {
        let mut outs = Vec::with_capacity(self.sequences.len());
        let window = self.window.filter(|_| has_window);
        for sequence in &self.sequences {
            let (keys, values) = sequence.read(pages, heads)?;
            for (start, rows) in chunks(sequence.rows, sequence.len, heads) {
                let mask = sequence.mask(start, rows, window, queries.device())?;
                let queries = queries.narrow(0, sequence.first_row + start, rows)?;
                outs.push(attention(&queries, &keys, &values, mask.as_ref(), heads)?);
            }
        }
        Tensor::cat(&outs, 0)
    }
}

impl Sequence {
    fn new(sequence: &PagedSequence<'_>, device: &Device) -> Result<Sequence> {
        let rows = sequence.rows.len();
        let len = sequence.past + rows;
        let pages = Tensor::new(&sequence.pages[..len.div_ceil(PAGE_TOKENS)], device)?;
        Ok(Sequence { first_row: sequence.rows.start, rows, len, pages })
    }

    /// What is added to the scores of some rows, `[rows, len]`; none if every row sees all. That of all rows would exceed the
    /// memory of their scores.
    fn mask(&self, start: usize, rows: usize, window: Option<usize>, device: &Device) -> Result<Option<Tensor>> {
        let window = window.unwrap_or(usize::MAX);
        if self.rows == 1 && self.len <= window {
            return Ok(None);
        }
        let mut values = vec![0.0; rows * self.len];
        let first = self.len - self.rows + start;
        for (position, row) in (first..).zip(values.chunks_exact_mut(self.len)) {
            row[..(position + 1).saturating_sub(window)].fill(plain::MASKED);
            row[position + 1..].fill(plain::MASKED);
        }
        Ok(Some(Tensor::from_vec(values, (rows, self.len), device)?))
    }

    /// The keys and values of a sequence, `[K, S, D]` each, in `f32`.
    fn read(&self, pages: &Tensor, heads: Heads) -> Result<(Tensor, Tensor)> {
        let Heads { keys, dim, .. } = heads;
        let count = self.pages.dim(0)?;
        let found = pages.index_select(&self.pages, 0)?;
        let found = if pages.dtype() == DType::U8 { quantised::read(&found, heads)? } else { found };
        let found = found.reshape((count, 2, PAGE_TOKENS, keys, dim))?;
        let found = found.permute((1, 3, 0, 2, 4))?.contiguous()?.reshape((2, keys, count * PAGE_TOKENS, dim))?;
        let found = found.narrow(2, 0, self.len)?.to_dtype(DType::F32)?;
        Ok((found.i(0)?.contiguous()?, found.i(1)?.contiguous()?))
    }
}

/// The parts of `rows` queries whose scores against `keys` keys exist at once: the first row of each, and how many it has.
pub(crate) fn chunks(rows: usize, keys: usize, heads: Heads) -> impl Iterator<Item = (usize, usize)> {
    let most = (MAX_SCORES / (heads.queries * keys)).max(1);
    (0..rows).step_by(most).map(move |start| (start, most.min(rows - start)))
}

/// `queries: [T, A, D]` over `keys` and `values: [K, S, D]`, `mask: [T, S]` added to the scores: `[T, A·D]`.
pub(crate) fn attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<&Tensor>,
    heads: Heads,
) -> Result<Tensor> {
    let (rows, len, dim) = (queries.dim(0)?, keys.dim(1)?, heads.dim);
    let group = heads.group();
    // The query heads that share a key head are stacked instead of repeating keys and values.
    let q = queries.reshape((rows, heads.keys, group, dim))?.permute((1, 2, 0, 3))?.contiguous()?;
    let q = q.reshape((heads.keys, group * rows, dim))?;
    let mut scores = (q.matmul(&keys.t()?)? * (1.0 / (dim as f64).sqrt()))?;
    if let Some(mask) = mask {
        scores = scores.reshape((heads.queries, rows, len))?.broadcast_add(mask)?;
        scores = scores.reshape((heads.keys, group * rows, len))?;
    }
    let mixed = plain::softmax(&scores)?.matmul(values)?.reshape((heads.queries, rows, dim))?;
    mixed.transpose(0, 1)?.contiguous()?.reshape((rows, heads.queries * dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mask has the rows of its chunk only: all rows of a long sequence would take more memory than is planned.
    #[test]
    fn masks_are_those_of_the_rows_of_a_chunk() {
        let device = Device::Cpu;
        let (past, rows) = (5, 7);
        let all: Vec<u32> = (0..4).collect();
        let paged = PagedSequence { rows: 2..2 + rows, past, pages: &all };
        let sequence = Sequence::new(&paged, &device).unwrap();
        for (start, count) in [(0, 7), (0, 1), (2, 3), (6, 1)] {
            for window in [None, Some(1), Some(4), Some(100)] {
                let mask = sequence.mask(start, count, window, &device).unwrap().unwrap();
                let sees = |row: usize, col: usize| {
                    let position = past + start + row;
                    col <= position && window.is_none_or(|window| position - col < window)
                };
                let value = |row, col| if sees(row, col) { 0.0 } else { plain::MASKED };
                let want: Vec<Vec<f32>> =
                    (0..count).map(|row| (0..past + rows).map(|col| value(row, col)).collect()).collect();
                assert_eq!(mask.to_vec2::<f32>().unwrap(), want, "rows {start} to {}, {window:?}", start + count);
            }
        }
        let last = Sequence::new(&PagedSequence { rows: 0..1, past, pages: &all }, &device).unwrap();
        assert!(last.mask(0, 1, None, &device).unwrap().is_none());
        assert!(last.mask(0, 1, Some(6), &device).unwrap().is_none());
        assert!(last.mask(0, 1, Some(5), &device).unwrap().is_some());
    }
}
