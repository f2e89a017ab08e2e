//! Attention of one query in plain loops: the same tiles, the same order of sums, the same bits.

use super::{KEYS, in_bf16, in_tiles};
use crate::math::{exp, exp2};

/// Attention of `q: [D]` over `keys` and `values`, each `[D]`, of which those from `first` on are visible.
pub fn attend(q: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>], first: usize) -> Vec<f32> {
    attend_by(|x| x, |term| term, q, keys, values, first)
}

/// As [`attend`] with keys and values in bf16, which are rounded already: of two neighbours the second is added first.
pub fn attend_in_bf16(q: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>], first: usize) -> Vec<f32> {
    attend_by(|x| in_bf16(x).to_f32(), |term| term ^ 1, q, keys, values, first)
}

/// As [`attend_in_bf16`] on AMX: blocks of 128 keys, weights as powers of two, sums in the order of the unit.
pub fn attend_in_tiles(q: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>], first: usize) -> Vec<f32> {
    let in_bf16 = |x: f32| in_bf16(x).to_f32();
    let q: Vec<f32> = q.iter().map(|x| in_bf16(x * in_tiles::scale(q.len()))).collect();
    let (mut max, mut sum, mut out) = (f32::NEG_INFINITY, [0f32; 16], vec![0f32; q.len()]);
    let block = in_tiles::BLOCK;
    for start in (first / block * block..keys.len()).step_by(block) {
        let seen = start.max(first)..keys.len().min(start + block);
        let scores: Vec<f32> = keys[seen.clone()].iter().map(|key| sum_in_tiles(&q, key)).collect();
        let largest = scores.iter().fold(max, |a, b| a.max(*b));
        let mut weights = vec![0f32; block];
        weights[seen.start - start..]
            .iter_mut()
            .zip(&scores)
            .for_each(|(weight, score)| *weight = exp2(score - largest));
        let shrink = exp2(max - largest);
        max = largest;
        for (lane, sum) in sum.iter_mut().enumerate() {
            *sum = sum.mul_add(shrink, weights[lane..].iter().step_by(16).fold(0.0, |a, b| a + b));
        }
        let weights: Vec<f32> = weights.into_iter().map(in_bf16).collect();
        for (d, out) in out.iter_mut().enumerate() {
            // Steps of the unit are pages: keys that are not seen are zeros.
            let value = |key: usize| if seen.contains(&key) { values[key][d] } else { 0.0 };
            let column: Vec<f32> = (start..start + block).map(value).collect();
            *out = out.mul_add(shrink, sum_in_tiles(&weights, &column));
        }
    }
    let sum = halving_sum(sum.to_vec());
    out.iter().map(|out| out / sum + 0.0).collect()
}

/// A sum of products in bf16 as AMX adds it: 32 at a time, in two chains.
fn sum_in_tiles(a: &[f32], b: &[f32]) -> f32 {
    let normal = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
    a.chunks(32).zip(b.chunks(32)).fold(0.0, |sum, (a, b)| {
        let chain = |c: usize| {
            let terms = a.iter().zip(b).skip(c).step_by(2);
            terms.fold(0f32, |chain, (a, b)| normal(a.mul_add(*b, chain)))
        };
        normal(normal(chain(0) + chain(1)) + sum)
    })
}

/// Attention with queries and weights that `round` rounds; `order` gives the place of the n-th term of a sum.
fn attend_by(
    round: impl Fn(f32) -> f32,
    order: impl Fn(usize) -> usize,
    q: &[f32],
    keys: &[Vec<f32>],
    values: &[Vec<f32>],
    first: usize,
) -> Vec<f32> {
    let scale = 1.0 / (q.len() as f32).sqrt();
    let q: Vec<f32> = q.iter().map(|x| round(x * scale)).collect();
    let (mut max, mut sum, mut out) = (f32::NEG_INFINITY, 0f32, vec![0f32; q.len()]);
    let tiles = keys.chunks(KEYS).zip(values.chunks(KEYS)).enumerate().skip(first / KEYS);
    for (tile, (keys, values)) in tiles {
        let score = |(j, key): (usize, &Vec<f32>)| match tile * KEYS + j >= first {
            true => (0..q.len()).map(&order).fold(0f32, |sum, d| q[d].mul_add(key[d], sum)),
            false => f32::NEG_INFINITY,
        };
        let scores: Vec<f32> = keys.iter().enumerate().map(score).collect();
        let largest = scores.iter().fold(max, |a, b| a.max(*b));
        let mut weights = [0f32; KEYS];
        weights.iter_mut().zip(&scores).for_each(|(weight, score)| *weight = exp(score - largest));
        let shrink = exp(max - largest);
        sum = sum.mul_add(shrink, halving_sum(weights.to_vec()));
        max = largest;
        for (d, out) in out.iter_mut().enumerate() {
            let terms = (0..KEYS).map(&order).filter(|j| *j < values.len());
            *out = terms.fold(*out * shrink, |sum, j| round(weights[j]).mul_add(values[j][d], sum));
        }
    }
    out.iter().map(|out| out / sum).collect()
}

/// Adds the upper half onto the lower until one is left.
fn halving_sum(mut x: Vec<f32>) -> f32 {
    while x.len() > 1 {
        let upper = x.split_off(x.len() / 2);
        x.iter_mut().zip(upper).for_each(|(x, y)| *x += y);
    }
    x[0]
}
