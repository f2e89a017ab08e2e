//! Frequencies of the rotary embedding and their scaling.

use std::f32::consts::TAU;

use kernels::rope::RopeTable;

use crate::spec::{Rope, Scaling, Yarn};

/// The table of cosines and sines for `positions` positions and heads of `dim`; always in `f32`.
pub fn table(rope: &Rope, dim: usize, positions: usize) -> RopeTable {
    let frequencies: Vec<f32> = (0..dim / 2).map(|i| rope.theta.powf(-2.0 * i as f32 / dim as f32)).collect();
    let (frequencies, magnitude) = match &rope.scaling {
        Scaling::None => (frequencies, 1.0),
        Scaling::Linear { factor } => (frequencies.iter().map(|f| f / factor).collect(), 1.0),
        Scaling::Yarn(yarn) => (by_yarn(&frequencies, rope.theta, dim, yarn), yarn.attention_factor),
        Scaling::Llama3 { factor, low_turns, high_turns, original } => {
            // Turns within the positions of training decide; between the bounds both frequencies are mixed.
            let kept = |f: f32| (((*original as f32 * f / TAU) - low_turns) / (high_turns - low_turns)).clamp(0.0, 1.0);
            (frequencies.iter().map(|f| (1.0 - kept(*f)) * f / factor + kept(*f) * f).collect(), 1.0)
        }
        Scaling::Divided(divisors) => (frequencies.iter().zip(divisors).map(|(f, d)| f / d).collect(), 1.0),
    };
    RopeTable::new(&frequencies, positions, magnitude)
}

/// Divides the slow frequencies by the factor, keeps the fast ones, and mixes them linearly between the dimensions that make
/// `slow_turns` and `fast_turns` turns within the positions of training (YaRN, section 3.2).
fn by_yarn(frequencies: &[f32], theta: f32, dim: usize, yarn: &Yarn) -> Vec<f32> {
    let original = yarn.original as f32;
    let dimension_of = |turns: f32| dim as f32 * (original / (turns * TAU)).ln() / (2.0 * theta.ln());
    let (low, high) = (dimension_of(yarn.fast_turns), dimension_of(yarn.slow_turns));
    let (low, high) = if yarn.truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, high) = (low.max(0.0), high.min(dim as f32 - 1.0));
    let span = if low == high { 0.001 } else { high - low };
    let kept = |i: usize| 1.0 - ((i as f32 - low) / span).clamp(0.0, 1.0);
    frequencies.iter().enumerate().map(|(i, f)| f / yarn.factor * (1.0 - kept(i)) + f * kept(i)).collect()
}
