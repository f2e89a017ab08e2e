//! Angles of the rotary embedding, YaRN included.

use kernels::rope::RopeTable;

use crate::spec::{Rope, Scaling};

/// The table of cosines and sines for `positions` positions and heads of `dim`; always in `f32`.
pub fn table(rope: &Rope, dim: usize, positions: usize) -> RopeTable {
    let frequencies: Vec<f32> = (0..dim / 2).map(|i| rope.theta.powf(-2.0 * i as f32 / dim as f32)).collect();
    match rope.scaling {
        Scaling::None => RopeTable::new(&frequencies, positions, 1.0),
        Scaling::Yarn { factor, original } => {
            let scaled = yarn(&frequencies, rope.theta, dim, factor, original);
            RopeTable::new(&scaled, positions, 0.1 * factor.ln() + 1.0)
        }
    }
}

/// Divides the slow frequencies by `factor`, leaves the fast ones, and goes over linearly between the dimensions that
/// turn 1 and 32 times within `original` positions (YaRN, section 3.2, with the paper's β for Llama).
fn yarn(frequencies: &[f32], theta: f32, dim: usize, factor: f32, original: usize) -> Vec<f32> {
    const FAST_TURNS: f32 = 32.0;
    const SLOW_TURNS: f32 = 1.0;
    let dimension_of =
        |turns: f32| dim as f32 * (original as f32 / (turns * std::f32::consts::TAU)).ln() / (2.0 * theta.ln());
    let low = dimension_of(FAST_TURNS).floor().max(0.0);
    let high = dimension_of(SLOW_TURNS).ceil().min(dim as f32 - 1.0);
    let span = (high - low).max(0.001);
    let keep = |i: usize| 1.0 - ((i as f32 - low) / span).clamp(0.0, 1.0);
    frequencies.iter().enumerate().map(|(i, f)| f / factor * (1.0 - keep(i)) + f * keep(i)).collect()
}
