//! Gradients of a loss over log-probabilities, one block at a time.
//!
//! The forward pass stores the input of every block and, for as many blocks as the caller allows, the activations for
//! the backward pass; the other blocks are computed again (activation checkpointing, arXiv 1604.06174). Only rows that
//! predict a target are multiplied with the output matrix.

use std::sync::Arc;

use candle_core::{Tensor, Var};
use kernels::training::attention::Sequence;
use models::Result;

use crate::fused::{self, Kept};
use crate::lora::Lora;
use crate::network::{Arithmetic, Network};
use crate::score;
use crate::values::with_values;

/// Sequences end to end, and the tokens that the loss is about.
#[derive(Debug, Clone)]
pub struct Targets<'a> {
    /// `[N]`
    pub tokens: &'a [u32],
    pub sequences: &'a Arc<[Sequence]>,
    /// `[R]`: rows that predict, each before its target.
    pub rows: &'a [u32],
    /// `[R]`
    pub targets: &'a [u32],
}

impl Network {
    /// Log-probabilities of the targets; adds to `sums`, in the order of [`Lora::variables`], the gradients of a loss whose
    /// derivatives by those log-probabilities `weigh` returns. `kept` blocks keep their activations, the others are
    /// computed twice.
    ///
    /// # Errors
    /// If a token or a row is outside its table or the computation fails.
    pub fn add_gradients(
        &self,
        lora: &Lora,
        about: &Targets<'_>,
        kept: usize,
        sums: &mut [Vec<f32>],
        weigh: impl FnOnce(&[f32]) -> Vec<f32>,
    ) -> Result<Vec<f32>> {
        let first_kept = self.layers() - kept.min(self.layers());
        match self.arithmetic {
            Arithmetic::Fused | Arithmetic::Half => self.fused_gradients(lora, about, first_kept, sums, weigh),
            Arithmetic::Plain => self.plain_gradients(lora, about, first_kept, sums, weigh),
        }
    }

    fn fused_gradients(
        &self,
        lora: &Lora,
        about: &Targets<'_>,
        first_kept: usize,
        sums: &mut [Vec<f32>],
        weigh: impl FnOnce(&[f32]) -> Vec<f32>,
    ) -> Result<Vec<f32>> {
        enum Block {
            Input(Vec<f32>),
            Kept(Kept),
        }
        let around = self.surroundings(about.tokens.len(), about.sequences)?;
        let mut hidden = self.embed(about.tokens)?.flatten_all()?.to_vec1::<f32>()?;
        let mut blocks = Vec::with_capacity(self.layers());
        for (index, layer) in self.layers.iter().enumerate() {
            let input = (index < first_kept).then(|| hidden.clone());
            let (out, kept) = fused::forward(layer, hidden, &around, Some(&lora.layers[index]))?;
            blocks.push(input.map_or(Block::Kept(kept), Block::Input));
            hidden = out;
        }
        let width = self.spec.hidden;
        let mut rows = Vec::with_capacity(about.rows.len() * width);
        for row in about.rows {
            rows.extend_from_slice(&hidden[*row as usize * width..][..width]);
        }
        let (log_probs, row_grads) = self.head_gradients(&rows, about.targets, weigh)?;
        let mut grad = hidden;
        grad.fill(0.0);
        for (row, row_grad) in about.rows.iter().zip(row_grads.chunks_exact(width)) {
            grad[*row as usize * width..][..width].iter_mut().zip(row_grad).for_each(|(sum, g)| *sum += g);
        }
        let mut end = sums.len();
        while let Some(block) = blocks.pop() {
            let (layer, adapter) = (&self.layers[blocks.len()], &lora.layers[blocks.len()]);
            let kept = match block {
                Block::Kept(kept) => kept,
                Block::Input(input) => fused::forward(layer, input, &around, Some(adapter))?.1,
            };
            let start = end - adapter.variables().count();
            grad = fused::backward(layer, &kept, grad, &around, adapter, &mut sums[start..end])?;
            end = start;
        }
        Ok(log_probs)
    }

    /// Log-probabilities of targets after rows `[R, H]`, and the gradient for the rows.
    fn head_gradients(
        &self,
        rows: &[f32],
        targets: &[u32],
        weigh: impl FnOnce(&[f32]) -> Vec<f32>,
    ) -> Result<(Vec<f32>, Vec<f32>)> {
        self.check_targets(targets)?;
        let epsilon = self.spec.norm_epsilon;
        Ok(with_values(&self.norm, |norm| {
            let normed = kernels::training::rms_norm(rows, norm, epsilon);
            let scores = score::scores(&normed, self.output_matrix(), targets)?;
            let log_probs: Vec<f32> = scores.iter().map(|score| score.log_prob).collect();
            let weights = weigh(&log_probs);
            let back = score::backward(&normed, self.output_matrix(), targets, &scores, &weights)?;
            Ok((log_probs, kernels::training::rms_norm_backward(rows, norm, epsilon, &back)))
        })?)
    }

    fn plain_gradients(
        &self,
        lora: &Lora,
        about: &Targets<'_>,
        first_kept: usize,
        sums: &mut [Vec<f32>],
        weigh: impl FnOnce(&[f32]) -> Vec<f32>,
    ) -> Result<Vec<f32>> {
        let mut hidden = self.embed(about.tokens)?;
        let mut blocks = Vec::with_capacity(self.layers());
        for index in 0..self.layers() {
            let input = Var::from_tensor(&hidden)?;
            let output = self.block(index, &input, about.sequences, Some(&lora.layers[index]))?;
            hidden = output.detach();
            blocks.push((input, (index >= first_kept).then_some(output)));
        }
        let last = Var::from_tensor(&hidden)?;
        let rows = last.index_select(&Tensor::new(about.rows, self.device())?, 0)?;
        let log_probs = self.log_probs(&rows, about.targets)?;
        let values = log_probs.to_vec1::<f32>()?;
        let weights = Tensor::new(weigh(&values), self.device())?;
        let store = (log_probs * weights)?.sum_all()?.backward()?;
        let mut grad = present(store.get(&last))?.clone();
        let mut end = sums.len();
        while let Some((input, output)) = blocks.pop() {
            let layer = &lora.layers[blocks.len()];
            let output = match output {
                Some(output) => output,
                None => self.block(blocks.len(), &input, about.sequences, Some(layer))?,
            };
            let store = (output * &grad)?.sum_all()?.backward()?;
            let variables: Vec<&Var> = layer.variables().collect();
            let start = end - variables.len();
            for (sum, variable) in sums[start..end].iter_mut().zip(variables) {
                let values = present(store.get(variable))?.flatten_all()?.to_vec1::<f32>()?;
                kernels::training::add(sum, &values);
            }
            grad = present(store.get(&input))?.clone();
            end = start;
        }
        Ok(values)
    }
}

fn present(gradient: Option<&Tensor>) -> candle_core::Result<&Tensor> {
    gradient.ok_or_else(|| candle_core::Error::Msg("a variable without gradient".into()))
}
