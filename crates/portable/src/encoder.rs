//! The encoder of the portable backend: BERT's blocks on plain candle operations.

use candle_core::{D, Device, Tensor};
use kernels::attention::{Heads, Texts};
use models::{EncoderNetwork, EncoderSpec, Pass, Result, ranges};

use crate::loader::Loader;
use crate::matrix::{Linear, Matrix};
use crate::pages::{attention, chunks};

/// An encoder with frozen weights. Its hidden states come out on the CPU, where they are pooled.
#[derive(Debug)]
pub(crate) struct PortableEncoder {
    spec: EncoderSpec,
    device: Device,
    words: Matrix,
    /// `[positions, H]`, the embedding of token type 0 added.
    positions: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Norm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f64,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    ffn_norm: Norm,
}

impl PortableEncoder {
    pub fn load(spec: &EncoderSpec, loader: &Loader<'_>) -> Result<PortableEncoder> {
        let hidden = spec.hidden;
        let values = |name: &str, rows: usize| loader.weights.values(&format!("embeddings.{name}"), &[rows, hidden]);
        let mut positions = values("position_embeddings.weight", spec.positions)?;
        let types = values("token_type_embeddings.weight", spec.token_types)?;
        positions.chunks_exact_mut(hidden).flat_map(|row| row.iter_mut().zip(&types)).for_each(|(x, t)| *x += t);
        Ok(PortableEncoder {
            words: loader.matrix("embeddings.word_embeddings.weight", spec.vocab, hidden)?,
            positions: Tensor::from_vec(positions, (spec.positions, hidden), loader.device)?,
            norm: Norm::load(spec, loader, "embeddings.LayerNorm")?,
            layers: (0..spec.layers).map(|layer| Layer::load(spec, loader, layer)).collect::<Result<_>>()?,
            device: loader.device.clone(),
            spec: spec.clone(),
        })
    }
}

impl EncoderNetwork for PortableEncoder {
    fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    fn on_gpu(&self) -> bool {
        !self.device.is_cpu()
    }

    fn output_device(&self) -> &Device {
        &Device::Cpu
    }

    fn begin(&self, sequences: &[Vec<u32>]) -> Result<Pass> {
        let positions = self.spec.positions_of(sequences)?;
        let words = self.words.lookup(&Tensor::new(sequences.concat(), &self.device)?)?; // [N, H]
        let positions = self.positions.index_select(&Tensor::new(positions, &self.device)?, 0)?;
        let hidden = self.norm.forward(&(words + positions)?)?;
        Ok(Pass { hidden, texts: Texts::new(ranges(sequences)), halves: 0 })
    }

    fn advance(&self, pass: &mut Pass) -> Result<Option<Tensor>> {
        if let Some(layer) = self.layers.get(pass.halves / 2) {
            pass.hidden = match pass.halves % 2 {
                0 => layer.attend(&pass.hidden, &pass.texts, self.spec.heads)?, // [N, H]
                _ => layer.feed_forward(&pass.hidden)?,                         // [N, H]
            };
            pass.halves += 1;
        }
        if pass.halves < 2 * self.layers.len() {
            return Ok(None);
        }
        Ok(Some(pass.hidden.to_device(&Device::Cpu)?))
    }
}

impl Norm {
    fn load(spec: &EncoderSpec, loader: &Loader<'_>, name: &str) -> Result<Norm> {
        let vector = |part: &str| loader.vector(&format!("{name}.{part}"), spec.hidden);
        Ok(Norm { weight: vector("weight")?, bias: vector("bias")?, epsilon: spec.norm_epsilon.into() })
    }

    fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        centred
            .broadcast_div(&(variance + self.epsilon)?.sqrt()?)?
            .broadcast_mul(&self.weight)?
            .broadcast_add(&self.bias)
    }
}

impl Layer {
    fn load(spec: &EncoderSpec, loader: &Loader<'_>, index: usize) -> Result<Layer> {
        let (hidden, ffn) = (spec.hidden, spec.ffn);
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, rows, cols| loader.linear(&name(part), (rows, cols), true, None);
        let norm = |part: &str| Norm::load(spec, loader, &name(part));
        Ok(Layer {
            query: linear("attention.self.query", hidden, hidden)?,
            key: linear("attention.self.key", hidden, hidden)?,
            value: linear("attention.self.value", hidden, hidden)?,
            output: linear("attention.output.dense", hidden, hidden)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            up: linear("intermediate.dense", ffn, hidden)?,
            down: linear("output.dense", hidden, ffn)?,
            ffn_norm: norm("output.LayerNorm")?,
        })
    }

    /// `hidden: [N, H] -> [N, H]`.
    fn attend(&self, hidden: &Tensor, texts: &Texts, heads: Heads) -> candle_core::Result<Tensor> {
        let part = |linear: &Linear| linear.forward(hidden)?.reshape((hidden.dim(0)?, heads.queries, heads.dim));
        let (q, k, v) = (part(&self.query)?, part(&self.key)?, part(&self.value)?);
        let mut outs = Vec::with_capacity(texts.ranges().len());
        for rows in texts.ranges() {
            let of = |x: &Tensor| x.narrow(0, rows.start, rows.len());
            outs.extend(attend_text(&of(&q)?, &of(&k)?, &of(&v)?, heads)?);
        }
        let attended = Tensor::cat(&outs, 0)?; // [N, A·D]
        self.attention_norm.forward(&(hidden + self.output.forward(&attended)?)?)
    }

    /// `hidden: [N, H] -> [N, H]`.
    fn feed_forward(&self, hidden: &Tensor) -> candle_core::Result<Tensor> {
        let x = self.up.forward(hidden)?.gelu_erf()?; // [N, F]
        self.ffn_norm.forward(&(hidden + self.down.forward(&x)?)?)
    }
}

/// Attention within a text, whose queries, keys and values are `[T, A, D]` each: `[T, A·D]`, in as many parts as the memory of
/// scores needs.
fn attend_text(q: &Tensor, k: &Tensor, v: &Tensor, heads: Heads) -> candle_core::Result<Vec<Tensor>> {
    let by_head = |x: &Tensor| x.transpose(0, 1)?.contiguous();
    let (keys, values, len) = (by_head(k)?, by_head(v)?, q.dim(0)?);
    let part = |(start, rows)| attention(&q.narrow(0, start, rows)?, &keys, &values, None, heads);
    chunks(len, len, heads).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scores of a text of BGE-M3's length would take gigabytes at once.
    #[test]
    fn a_long_text_is_attended_to_in_parts_that_give_the_whole() {
        let (heads, len) = (Heads { queries: 16, keys: 16, dim: 2 }, 1100);
        let tensor = |seed: usize| {
            let values: Vec<f32> = (0..len * 32).map(|i| ((i * 7919 + seed) % 1000) as f32 / 500.0 - 1.0).collect();
            Tensor::from_vec(values, (len, 16, 2), &Device::Cpu).unwrap()
        };
        let (q, k, v) = (tensor(1), tensor(2), tensor(3));
        let parts = attend_text(&q, &k, &v, heads).unwrap();
        assert!(parts.len() > 1, "{} scores exist at once", 16 * len * len);
        let by_head = |x: &Tensor| x.transpose(0, 1).unwrap().contiguous().unwrap();
        let whole = attention(&q, &by_head(&k), &by_head(&v), None, heads).unwrap();
        let parts = Tensor::cat(&parts, 0).unwrap();
        let worst = (parts - whole).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-5, "{worst}");
    }
}
