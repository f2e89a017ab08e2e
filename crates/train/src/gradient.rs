//! Loss and gradients of a pass.

use candle_core::Tensor;
use portable::{Lora, Network, Scored, Targets};

use crate::batch::Pass;
use crate::error::Result;

/// Zeros for the gradients of an adapter, in the order of [`Lora::variables`].
pub fn zeros(lora: &Lora) -> Vec<Vec<f32>> {
    lora.variables().into_iter().map(|variable| vec![0.0; variable.elem_count()]).collect()
}

/// Adds the gradients of `weight · Σ -log p(token)` over the answers of a pass to `sums`; returns `Σ -log p(token)`. `kept`
/// blocks keep their activations, the others are computed twice.
///
/// # Errors
/// If the computation fails.
pub fn accumulate(
    network: &Network,
    lora: &Lora,
    pass: &Pass,
    weight: f32,
    kept: usize,
    sums: &mut [Vec<f32>],
) -> Result<f32> {
    let Pass { tokens, sequences, rows, targets, .. } = pass;
    let about = Targets { tokens, sequences, rows, targets };
    let log_probs = network.add_gradients(lora, &about, kept, sums, |log_probs| vec![-weight; log_probs.len()])?;
    Ok(-log_probs.iter().sum::<f32>())
}

/// Scores of the answers of a pass, without gradients.
///
/// # Errors
/// If the computation fails.
pub fn score(network: &Network, lora: Option<&Lora>, pass: &Pass) -> Result<Vec<Scored>> {
    let hidden = network.hidden(&pass.tokens, &pass.sequences, lora)?;
    let rows = hidden.index_select(&Tensor::new(&pass.rows[..], network.device())?, 0)?;
    Ok(network.score(&rows, &pass.targets)?)
}
