//! From hidden states to log-probabilities of tokens, a few rows at a time: the logits of all rows never exist together.

use candle_core::{Result, Tensor};
use kernels::training::{View, ViewMut, log_prob_gradient, log_sum_exp, multiply};

use crate::network::Network;
use crate::plain;
use crate::values::with_values;

/// Rows whose logits exist together.
const ROWS: usize = 64;

/// The network's score of a token after a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub log_prob: f32,
    /// No token has a higher probability.
    pub is_first: bool,
}

/// The score, with the values that its gradient needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    pub log_prob: f32,
    is_first: bool,
    /// Logarithm of the sum of exponentials of the logits.
    sum: f32,
}

impl Network {
    /// Log-probabilities of `targets: [R]` after `rows: [R, H]` of [`Network::hidden`], by candle's operations;
    /// differentiable.
    ///
    /// # Errors
    /// If a target is outside the vocabulary or the computation fails.
    pub fn log_probs(&self, rows: &Tensor, targets: &[u32]) -> models::Result<Tensor> {
        self.check_targets(targets)?;
        let rows = plain::rms_norm(rows, &self.norm, self.spec.norm_epsilon)?;
        let logits = rows.matmul(&self.output_matrix().t()?)?;
        Ok(plain::log_probs(&logits, &Tensor::new(targets, self.device())?)?)
    }

    /// The same without gradient, and whether greedy decoding would have chosen the target.
    ///
    /// # Errors
    /// As [`Network::log_probs`].
    pub fn score(&self, rows: &Tensor, targets: &[u32]) -> models::Result<Vec<Scored>> {
        self.check_targets(targets)?;
        let rows = plain::rms_norm(&rows.detach(), &self.norm, self.spec.norm_epsilon)?;
        let rows = rows.flatten_all()?.to_vec1::<f32>()?;
        let matrix = self.output_matrix().to_device(&candle_core::Device::Cpu)?;
        let scores = scores(&rows, &matrix, targets)?;
        Ok(scores.iter().map(|s| Scored { log_prob: s.log_prob, is_first: s.is_first }).collect())
    }

    pub(crate) fn check_targets(&self, targets: &[u32]) -> models::Result<()> {
        match targets.iter().find(|token| **token as usize >= self.spec.vocab) {
            Some(token) => {
                let reason = format!("token {token} of a vocabulary of {}", self.spec.vocab);
                Err(models::ModelError::Config { reason })
            }
            None => Ok(()),
        }
    }
}

/// Scores of `targets: [R]` after normed rows `x: [R, H]` by the output matrix `[V, H]`.
pub(crate) fn scores(x: &[f32], matrix: &Tensor, targets: &[u32]) -> Result<Vec<Score>> {
    let vocab = matrix.dim(0)?;
    let mut scores = Vec::with_capacity(targets.len());
    for_chunks(x, matrix, |start, logits, _| {
        for (logits, target) in logits.chunks_exact(vocab).zip(&targets[start..]) {
            let (sum, first) = log_sum_exp(logits);
            let log_prob = logits[*target as usize] - sum;
            scores.push(Score { log_prob, is_first: first == *target as usize, sum });
        }
    })?;
    Ok(scores)
}

/// The gradient of `Σ weights · log-probabilities` for `x`.
pub(crate) fn backward(
    x: &[f32],
    matrix: &Tensor,
    targets: &[u32],
    scores: &[Score],
    weights: &[f32],
) -> Result<Vec<f32>> {
    let (vocab, hidden) = matrix.dims2()?;
    let mut x_grad = vec![0f32; x.len()];
    for_chunks(x, matrix, |start, logits, matrix| {
        for (row, logits) in (start..).zip(logits.chunks_exact_mut(vocab)) {
            log_prob_gradient(logits, scores[row].sum, targets[row] as usize, weights[row]);
        }
        let rows = logits.len() / vocab;
        let into = ViewMut::new(&mut x_grad[start * hidden..][..rows * hidden], rows, hidden);
        multiply(View::new(logits, rows, vocab), View::new(matrix, vocab, hidden), 1.0, into, false);
    })?;
    Ok(x_grad)
}

/// Calls `use_them` with the number of each chunk's first row, its logits `[rows, V]`, and the matrix.
fn for_chunks(x: &[f32], matrix: &Tensor, mut use_them: impl FnMut(usize, &mut [f32], &[f32])) -> Result<()> {
    let (vocab, hidden) = matrix.dims2()?;
    with_values(matrix, |matrix| {
        let mut logits = vec![0f32; ROWS.min(x.len() / hidden) * vocab];
        for (start, x) in (0..).step_by(ROWS).zip(x.chunks(ROWS * hidden)) {
            let rows = x.len() / hidden;
            let logits = &mut logits[..rows * vocab];
            let weight = View::new(matrix, vocab, hidden).transposed();
            multiply(View::new(x, rows, hidden), weight, 1.0, ViewMut::new(logits, rows, vocab), false);
            use_them(start, logits, matrix);
        }
        Ok(())
    })
}
