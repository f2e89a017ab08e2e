//! Loss and gradients of a pass, one block at a time.
//!
//! The forward pass keeps the input of every block and, for as many blocks as memory allows, what the backward pass needs;
//! the other blocks are computed again (activation checkpointing, arXiv 1604.06174). Only hidden states that predict a
//! token of an answer reach the output matrix.

use candle_core::{Tensor, Var};
use portable::{Lora, Network, Scored};

use crate::batch::Pass;
use crate::error::Result;

/// Sums of gradients, in the order of [`Lora::variables`].
#[derive(Debug)]
pub struct Gradients {
    pub sums: Vec<Vec<f32>>,
}

impl Gradients {
    /// Zeros.
    pub fn new(lora: &Lora) -> Gradients {
        Gradients { sums: lora.variables().into_iter().map(|variable| vec![0.0; variable.elem_count()]).collect() }
    }

    fn add(&mut self, index: usize, gradient: &Tensor) -> Result<()> {
        let values = gradient.flatten_all()?.to_vec1::<f32>()?;
        self.sums[index].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        Ok(())
    }
}

/// Adds the gradients of `weight · Σ -log p(token)` over the answers of a pass; returns `Σ -log p(token)`. `kept` blocks keep
/// their activations, the others are computed twice.
///
/// # Errors
/// If the computation fails or a variable has no gradient.
pub fn accumulate(
    network: &Network,
    lora: &Lora,
    pass: &Pass,
    weight: f32,
    kept: usize,
    gradients: &mut Gradients,
) -> Result<f32> {
    let first_kept = network.layers() - kept.min(network.layers());
    let mut hidden = network.embed(&pass.tokens)?;
    let mut blocks = Vec::with_capacity(network.layers());
    for index in 0..network.layers() {
        let input = Var::from_tensor(&hidden)?;
        let output = network.block(index, &input, &pass.sequences, Some(&lora.layers[index]))?;
        hidden = output.detach();
        blocks.push((input, (index >= first_kept).then_some(output)));
    }
    let last = Var::from_tensor(&hidden)?;
    let rows = last.index_select(&Tensor::new(&pass.rows[..], network.device())?, 0)?;
    let log_probs = network.log_probs(&rows, &pass.targets)?;
    let total = -log_probs.sum_all()?.to_scalar::<f32>()?;
    let store = (log_probs.sum_all()? * f64::from(-weight))?.backward()?;
    let mut grad = missing(store.get(&last))?.clone();
    drop((store, log_probs, rows, last));
    let mut index_after: usize = gradients.sums.len();
    while let Some((input, output)) = blocks.pop() {
        let index = blocks.len();
        let layer = &lora.layers[index];
        let output = match output {
            Some(output) => output,
            None => network.block(index, &input, &pass.sequences, Some(layer))?,
        };
        let store = (output * &grad)?.sum_all()?.backward()?;
        let variables: Vec<&Var> = layer.variables().collect();
        index_after -= variables.len();
        for (at, variable) in variables.into_iter().enumerate() {
            gradients.add(index_after + at, missing(store.get(variable))?)?;
        }
        grad = missing(store.get(&input))?.clone();
    }
    Ok(total)
}

/// Scores of the answers of a pass, without gradients.
///
/// # Errors
/// If the computation fails.
pub fn score(network: &Network, lora: Option<&Lora>, pass: &Pass) -> Result<Vec<Scored>> {
    let mut hidden = network.embed(&pass.tokens)?;
    for index in 0..network.layers() {
        let layer = lora.map(|lora| &lora.layers[index]);
        hidden = network.block(index, &hidden, &pass.sequences, layer)?.detach();
    }
    let rows = hidden.index_select(&Tensor::new(&pass.rows[..], network.device())?, 0)?;
    Ok(network.score(&rows, &pass.targets)?)
}

fn missing(gradient: Option<&Tensor>) -> candle_core::Result<&Tensor> {
    gradient.ok_or_else(|| candle_core::Error::Msg("a variable without gradient".into()))
}
