//! Pooling of an encoder's hidden states into dense, sparse and ColBERT embeddings.
//!
//! # Contract
//! `hidden: [N, H]`, texts as ranges of rows. *Pooling* takes the first row of a text or the mean of all and divides by
//! the length. *Unit rows* divides every row by its length (ColBERT). *Sparse* keeps the largest positive weight of every
//! token id of a text, at its first position; the other positions become 0 (BGE-M3, arXiv 2402.03216, section 3.1).
//!
//! # Numerics
//! `f32` sums. The functions here are the reference in plain loops; a GPU sums in another order (1e-6 of the row's
//! largest value), `sparse` is exact.
//!
//! # Cost
//! Reads every row once; bound by memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Which rows of a text its vector comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// The first.
    First,
    /// All.
    Mean,
}

/// One vector of length 1 for each of `texts`: `[B, H]`.
pub fn pool_unit(hidden: &[f32], width: usize, texts: &[Range<usize>], pool: Pool) -> Vec<f32> {
    let of = |text: &Range<usize>| {
        let last = if pool == Pool::First { text.start + 1 } else { text.end };
        let mut sum = vec![0f32; width];
        for row in text.start..last {
            sum.iter_mut().zip(&hidden[row * width..]).for_each(|(sum, x)| *sum += x);
        }
        // A sum and a mean have the same direction.
        unit_rows(&sum, width)
    };
    texts.iter().flat_map(of).collect()
}

/// Every row of `x: [N, width]` divided by its length.
pub fn unit_rows(x: &[f32], width: usize) -> Vec<f32> {
    let unit = |row: &[f32]| {
        let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter().map(|x| x / length).collect::<Vec<f32>>()
    };
    x.chunks_exact(width).flat_map(unit).collect()
}

/// `[N]`: the weight of each token if it is the largest positive one of its id in its text, else 0.
pub fn sparse_max(weights: &[f32], ids: &[u32], texts: &[Range<usize>]) -> Vec<f32> {
    let mut kept = vec![0f32; weights.len()];
    for text in texts {
        let mut largest: BTreeMap<u32, usize> = BTreeMap::new();
        for token in text.clone().filter(|token| weights[*token] > 0.0) {
            let best = largest.entry(ids[token]).or_insert(token);
            if weights[token] > weights[*best] {
                *best = token;
            }
        }
        largest.into_values().for_each(|token| kept[token] = weights[token]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weight_of_an_id_stays_where_it_is_first() {
        let check = |weights: &[f32], ids: &[u32], texts: &[Range<usize>], expect: &[f32]| {
            assert_eq!(sparse_max(weights, ids, texts), expect);
        };
        check(&[1.0, 3.0, 2.0], &[7, 7, 8], &[0..2, 2..3], &[0.0, 3.0, 2.0]);
        check(&[2.0, 2.0, -1.0], &[7, 7, 9], &[0..2, 2..3], &[2.0, 0.0, 0.0]);
        check(&[1.0, 3.0], &[7, 7], &[0..1, 1..2], &[1.0, 3.0]);
    }

    #[test]
    fn pooled_vectors_have_length_one() {
        let hidden = [3.0, 4.0, 1.0, 0.0, 0.0, 2.0];
        assert_eq!(pool_unit(&hidden, 2, &[0..2, 2..3], Pool::First), [0.6, 0.8, 0.0, 1.0]);
        let mean = pool_unit(&hidden, 2, &[0..2, 2..3], Pool::Mean);
        assert!((mean[0] - 0.5f32.sqrt()).abs() < 1e-6 && (mean[1] - 0.5f32.sqrt()).abs() < 1e-6);
    }
}
