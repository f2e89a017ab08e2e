//! Attention of one query in plain loops: the same tiles, the same order of sums, the same bits.

use super::{KEYS, in_bf16};
use crate::math::exp;

/// Attention of `q: [D]` over `keys` and `values`, each `[D]`, of which those from `first` on are visible.
pub fn attend(q: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>], first: usize) -> Vec<f32> {
    let scale = 1.0 / (q.len() as f32).sqrt();
    let q: Vec<f32> = q.iter().map(|x| x * scale).collect();
    let (mut max, mut sum, mut out) = (f32::NEG_INFINITY, 0f32, vec![0f32; q.len()]);
    let tiles = keys.chunks(KEYS).zip(values.chunks(KEYS)).enumerate().skip(first / KEYS);
    for (tile, (keys, values)) in tiles {
        let score = |(j, key): (usize, &Vec<f32>)| match tile * KEYS + j >= first {
            true => q.iter().zip(key).fold(0f32, |sum, (q, k)| q.mul_add(*k, sum)),
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
            let terms = weights.iter().zip(values);
            *out = terms.fold(*out * shrink, |sum, (weight, value)| weight.mul_add(value[d], sum));
        }
    }
    out.iter().map(|out| out / sum).collect()
}

/// As [`attend`] with keys and values in bf16, which are rounded already.
pub fn attend_in_bf16(q: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>], first: usize) -> Vec<f32> {
    let scale = 1.0 / (q.len() as f32).sqrt();
    let q: Vec<f32> = q.iter().map(|x| in_bf16(x * scale).to_f32()).collect();
    let (mut max, mut sum, mut out) = (f32::NEG_INFINITY, 0f32, vec![0f32; q.len()]);
    let tiles = keys.chunks(KEYS).zip(values.chunks(KEYS)).enumerate().skip(first / KEYS);
    for (tile, (keys, values)) in tiles {
        let score = |(j, key): (usize, &Vec<f32>)| match tile * KEYS + j >= first {
            true => {
                q.chunks(2).zip(key.chunks(2)).fold(0f32, |sum, (q, k)| q[0].mul_add(k[0], q[1].mul_add(k[1], sum)))
            }
            false => f32::NEG_INFINITY,
        };
        let scores: Vec<f32> = keys.iter().enumerate().map(score).collect();
        let largest = scores.iter().fold(max, |a, b| a.max(*b));
        let mut weights = [0f32; KEYS];
        weights.iter_mut().zip(&scores).for_each(|(weight, score)| *weight = exp(score - largest));
        let shrink = exp(max - largest);
        sum = sum.mul_add(shrink, halving_sum(weights.to_vec()));
        max = largest;
        let weights = weights.map(|weight| in_bf16(weight).to_f32());
        for (d, out) in out.iter_mut().enumerate() {
            let terms = weights.chunks(2).zip(values.chunks(2));
            *out = terms.fold(*out * shrink, |sum, (weights, values)| {
                let second = values.get(1).map_or(0.0, |value| value[d]);
                weights[0].mul_add(values[0][d], weights[1].mul_add(second, sum))
            });
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
