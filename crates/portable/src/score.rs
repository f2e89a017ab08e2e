//! From hidden states to log-probabilities of tokens, a few rows at a time: the logits of all rows never exist together.

use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use kernels::training::{View, ViewMut, log_prob_gradient, log_sum_exp, multiply};

use crate::fused::with_values;
use crate::network::{Arithmetic, Network};
use crate::plain;

/// Rows whose logits exist together.
const ROWS: usize = 64;

/// What the network gives a token after a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub log_prob: f32,
    /// No token is likelier.
    pub is_first: bool,
}

impl Network {
    /// Log-probabilities of `targets: [R]` after `rows: [R, H]` of [`Network::hidden`]; differentiable.
    ///
    /// # Errors
    /// If a target lies outside the vocabulary or the computation fails.
    pub fn log_probs(&self, rows: &Tensor, targets: &[u32]) -> models::Result<Tensor> {
        self.check_targets(targets)?;
        let rows = self.last_norm(rows)?;
        let matrix = self.output_matrix();
        Ok(match self.arithmetic {
            Arithmetic::Fused => {
                let (matrix, targets, sums) = (matrix.clone(), targets.to_vec(), OnceLock::new());
                rows.apply_op1(LogProbs { matrix, targets, sums })?
            }
            Arithmetic::Plain => {
                let logits = rows.matmul(&matrix.t()?)?;
                plain::log_probs(&logits, &Tensor::new(targets, self.device())?)?
            }
        })
    }

    /// The same without gradient, and whether greedy decoding would have chosen the target.
    ///
    /// # Errors
    /// As [`Network::log_probs`].
    pub fn score(&self, rows: &Tensor, targets: &[u32]) -> models::Result<Vec<Scored>> {
        self.check_targets(targets)?;
        let rows = self.last_norm(&rows.detach())?;
        let mut scored = Vec::with_capacity(targets.len());
        for (start, targets) in (0..targets.len()).step_by(ROWS).zip(targets.chunks(ROWS)) {
            let logits = rows.narrow(0, start, targets.len())?.matmul(&self.output_matrix().t()?)?.to_vec2::<f32>()?;
            for (logits, target) in logits.iter().zip(targets) {
                let (sum, first) = log_sum_exp(logits);
                let log_prob = logits[*target as usize] - sum;
                scored.push(Scored { log_prob, is_first: first == *target as usize });
            }
        }
        Ok(scored)
    }

    fn check_targets(&self, targets: &[u32]) -> models::Result<()> {
        match targets.iter().find(|token| **token as usize >= self.spec.vocab) {
            Some(token) => {
                let reason = format!("token {token} of a vocabulary of {}", self.spec.vocab);
                Err(models::ModelError::Config { reason })
            }
            None => Ok(()),
        }
    }
}

struct LogProbs {
    /// `[V, H]`
    matrix: Tensor,
    targets: Vec<u32>,
    /// Logarithm of the sum of exponentials of every row, for the backward pass.
    sums: OnceLock<Vec<f32>>,
}

impl LogProbs {
    /// Calls `use_them` with the number of each chunk's first row and its logits `[rows, V]`.
    fn for_chunks(&self, x: &[f32], mut use_them: impl FnMut(usize, &mut [f32], &[f32])) -> Result<()> {
        let (vocab, hidden) = self.matrix.dims2()?;
        with_values(&self.matrix, |matrix| {
            let mut logits = vec![0f32; ROWS * vocab];
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
}

impl CustomOp1 for LogProbs {
    fn name(&self) -> &'static str {
        "log-probabilities"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((from, to)) = layout.contiguous_offsets() else {
            candle_core::bail!("log-probabilities after strided rows")
        };
        let (rows, hidden) = layout.shape().dims2()?;
        if rows != self.targets.len() || hidden != self.matrix.dim(1)? {
            candle_core::bail!("log-probabilities of {} targets after {:?}", self.targets.len(), layout.dims());
        }
        let vocab = self.matrix.dim(0)?;
        let (mut log_probs, mut sums) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        self.for_chunks(&x.as_slice::<f32>()?[from..to], |start, logits, _| {
            for (logits, target) in logits.chunks_exact(vocab).zip(&self.targets[start..]) {
                let (sum, _) = log_sum_exp(logits);
                sums.push(sum);
                log_probs.push(logits[*target as usize] - sum);
            }
        })?;
        self.sums.get_or_init(|| sums);
        Ok((CpuStorage::F32(log_probs), Shape::from(rows)))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (vocab, hidden) = self.matrix.dims2()?;
        let Some(sums) = self.sums.get() else { candle_core::bail!("a backward pass before the forward pass") };
        let grad = grad.to_vec1::<f32>()?;
        let mut x_grad = vec![0f32; x.elem_count()];
        with_values(x, |x| {
            self.for_chunks(x, |start, logits, matrix| {
                for (row, logits) in (start..).zip(logits.chunks_exact_mut(vocab)) {
                    log_prob_gradient(logits, sums[row], self.targets[row] as usize, grad[row]);
                }
                let rows = logits.len() / vocab;
                let into = ViewMut::new(&mut x_grad[start * hidden..][..rows * hidden], rows, hidden);
                multiply(View::new(logits, rows, vocab), View::new(matrix, vocab, hidden), 1.0, into, false);
            })
        })?;
        Ok(Some(Tensor::from_vec(x_grad, x.shape(), x.device())?))
    }
}
