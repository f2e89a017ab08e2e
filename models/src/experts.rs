//! The feed-forward part of a mixture of experts: a router sends each token to a few of them (Qwen3-MoE).

use candle_core::{Device, Tensor};
use kernels::epilogue::Epilogue;
use kernels::math::exp;
use kernels::matmul::{Format, Matrix};
use kernels::ops;
use kernels::weight::Weight;

use crate::error::{ModelError, Result};
use crate::spec::{DecoderSpec, Routing};
use crate::weights::Weights;

/// The experts of one layer and their router.
#[derive(Debug)]
pub(crate) struct Experts {
    /// `[E, H]`, in `f32` whatever the precision of the others: rounding would send tokens elsewhere.
    router: Weight,
    all: Vec<Expert>,
    routing: Routing,
}

/// A SwiGLU network of its own.
#[derive(Debug)]
struct Expert {
    /// Gate and up projections on top of each other, `[2F, H]`.
    gate_up: Weight,
    /// `[H, F]`
    down: Weight,
}

impl Experts {
    /// Loads the experts of `{name}`, such as `model.layers.0.mlp`.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape; on a GPU, which has no kernels for them yet.
    pub fn load(
        spec: &DecoderSpec,
        routing: Routing,
        weights: &Weights,
        name: &str,
        device: &Device,
    ) -> Result<Experts> {
        if !device.is_cpu() {
            return Err(ModelError::Unsupported { what: "a mixture of experts on a GPU".into() });
        }
        let (hidden, ffn) = (spec.hidden, routing.ffn);
        let expert = |expert: usize| {
            let weight = |part: &str, rows, cols| {
                weights.weight(&format!("{name}.experts.{expert}.{part}.weight"), rows, cols, device)
            };
            let gate_up = [weight("gate_proj", ffn, hidden)?, weight("up_proj", ffn, hidden)?];
            Ok(Expert { gate_up: Weight::stack(gate_up)?, down: weight("down_proj", hidden, ffn)? })
        };
        let router = format!("{name}.gate.weight");
        let values = weights.values(&router, &[routing.experts, hidden])?;
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let packed = Matrix::pack(Format::F32, routing.experts, hidden, &bytes);
        Ok(Experts {
            router: Weight::Packed(packed.map_err(|source| ModelError::Matrix { name: router, source })?),
            all: (0..routing.experts).map(expert).collect::<Result<_>>()?,
            routing,
        })
    }

    /// `x: [N, H] -> [N, H]`. A row's result does not depend on the other rows: its experts are added in their order.
    ///
    /// # Errors
    /// If the computation fails.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (count, hidden) = x.dims2()?;
        let logits = self.router.product(x, None, Epilogue::None)?.to_vec2::<f32>()?; // [N, E]
        let mut assigned: Vec<Vec<(u32, f32)>> = vec![Vec::new(); self.all.len()];
        for (row, logits) in logits.into_iter().enumerate() {
            for (expert, share) in route(&logits, self.routing) {
                assigned[expert].push((row as u32, share));
            }
        }
        let mut sums = vec![0f32; count * hidden];
        for (expert, rows) in self.all.iter().zip(&assigned).filter(|(_, rows)| !rows.is_empty()) {
            let ids: Vec<u32> = rows.iter().map(|(row, _)| *row).collect();
            let out = expert.forward(&ops::pick_rows(x, &ids)?)?.flatten_all()?.to_vec1::<f32>()?;
            for ((row, share), out) in rows.iter().zip(out.chunks_exact(hidden)) {
                let sums = &mut sums[*row as usize * hidden..][..hidden];
                sums.iter_mut().zip(out).for_each(|(sum, x)| *sum += share * x);
            }
        }
        Ok(Tensor::from_vec(sums, (count, hidden), x.device())?)
    }

    /// All matrices.
    pub fn weights(&self) -> impl Iterator<Item = &Weight> {
        self.all.iter().flat_map(|expert| [&expert.gate_up, &expert.down]).chain([&self.router])
    }
}

impl Expert {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.gate_up.product(x, None, Epilogue::SwiGlu(self.down.operand()))?; // [N, F]
        Ok(self.down.product(&x, None, Epilogue::None)?)
    }
}

/// The experts of one token with their shares, by their numbers: the most probable ones of a softmax over all.
fn route(logits: &[f32], routing: Routing) -> Vec<(usize, f32)> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits.iter().map(|logit| exp(logit - top)).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // Stable: of equals the first is taken.
    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    order.truncate(routing.used);
    order.sort_unstable();
    let total: f32 = match routing.normalised {
        true => order.iter().map(|expert| weights[*expert]).sum(),
        false => weights.iter().sum(),
    };
    order.into_iter().map(|expert| (expert, weights[expert] / total)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_probable_experts_share_a_token() {
        let routing = |normalised| Routing { experts: 4, used: 2, ffn: 1, normalised };
        let logits = [0.0, 4f32.ln(), 2f32.ln(), 0.0];
        let near = |got: Vec<(usize, f32)>, want: [(usize, f32); 2]| {
            assert!(got.iter().zip(want).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6), "{got:?}");
        };
        near(route(&logits, routing(true)), [(1, 4.0 / 6.0), (2, 2.0 / 6.0)]);
        near(route(&logits, routing(false)), [(1, 0.5), (2, 0.25)]);
        near(route(&[1.0; 4], routing(true)), [(0, 0.5), (1, 0.5)]);
    }
}
