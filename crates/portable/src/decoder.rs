//! The decoder of the portable backend: the network of `models::Decoder` on a paged KV cache, without hand-written kernels.
//!
//! Weights stay in the formats of the file where candle multiplies those; activations are `f32`. Results agree with the
//! kernels within rounding, and on every device they depend on the batch.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};
use kernels::rope::RopeTable;
use models::adapter::{Adapter, LowRank, Projection};
use models::{
    Activation, AdaptedRows, Batch, BlockNorms, DecoderNetwork, DecoderSpec, KvCache, KvPrecision, Output, Result,
    last_norm, rope_table,
};

use crate::loader::Loader;
use crate::matrix::{Linear, Matrix};
use crate::pages::Places;
use crate::plain;

/// A decoder with frozen weights.
#[derive(Debug)]
pub(crate) struct PagedDecoder {
    spec: DecoderSpec,
    device: Device,
    /// `[V, H]`, also the output matrix of tied checkpoints.
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Option<Matrix>,
    rope: RopeTable,
    /// Of the layers with a sliding window, where theirs differs.
    window_rope: Option<RopeTable>,
    adapters: Vec<Changes>,
}

#[derive(Debug)]
struct Layer {
    norms: BlockNorms,
    has_window: bool,
    /// In the order of [`Projection::ALL`].
    projections: Vec<Linear>,
}

/// An adapter, by layer and projection.
type Changes = BTreeMap<(usize, Projection), Change>;

/// The change of one projection by an adapter.
#[derive(Debug)]
struct Change {
    /// `[in, r]`, times the scale.
    a: Tensor,
    /// `[r, out]`
    b: Tensor,
}

/// What a layer needs besides its input and its pages.
struct Step<'a> {
    network: &'a PagedDecoder,
    places: Places,
    /// Cosines and sines of the rows' positions, `[N, 1, D/2]` each.
    angles: (Tensor, Tensor),
    /// The same for the layers with a sliding window, where theirs differ.
    window_angles: Option<(Tensor, Tensor)>,
    /// Adapters and the numbers of their rows, `[R]`.
    adapted: Vec<(&'a Changes, Tensor)>,
}

impl PagedDecoder {
    pub fn load(spec: &DecoderSpec, loader: &Loader<'_>) -> Result<PagedDecoder> {
        crate::refuse_experts(spec)?;
        let (vocab, hidden) = (spec.vocab, spec.hidden);
        let table = |rope| rope_table(rope, spec.heads.dim, spec.context);
        let head = (!spec.tied).then(|| loader.matrix("lm_head.weight", vocab, hidden)).transpose()?;
        Ok(PagedDecoder {
            embedding: loader.matrix("model.embed_tokens.weight", vocab, hidden)?,
            layers: (0..spec.layers).map(|layer| Layer::load(spec, loader, layer)).collect::<Result<_>>()?,
            norm: last_norm(spec, loader.weights, loader.device)?,
            head,
            rope: table(&spec.rope),
            window_rope: spec.window_rope().map(table),
            adapters: Vec::new(),
            device: loader.device.clone(),
            spec: spec.clone(),
        })
    }

    fn step<'a>(&'a self, batch: &Batch<'_>, adapted: &[AdaptedRows]) -> Result<Step<'a>> {
        batch.check(self.spec.vocab, self.rope.positions())?;
        let window = self.spec.window.as_ref().map(|window| window.tokens);
        let rows = |adapted: &AdaptedRows| -> Result<_> {
            Ok((&self.adapters[adapted.adapter], Tensor::new(&adapted.rows[..], &self.device)?))
        };
        let angles = |table| plain::angles_of(table, batch.positions, self.spec.heads.dim, &self.device);
        Ok(Step {
            network: self,
            places: Places::new(batch, self.spec.heads, window, &self.device)?,
            angles: angles(&self.rope)?,
            window_angles: self.window_rope.as_ref().map(angles).transpose()?,
            adapted: adapted.iter().map(rows).collect::<Result<_>>()?,
        })
    }
}

impl DecoderNetwork for PagedDecoder {
    fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn arithmetic(&self) -> &'static str {
        if self.device.is_cpu() { "portable, CPU" } else { "portable, GPU" }
    }

    fn takes_kv(&self, precision: KvPrecision) -> bool {
        precision != KvPrecision::Q8_0
    }

    fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        adapter.check(&self.spec)?;
        let load = |(at, low_rank): (&(usize, Projection), &LowRank)| {
            let (rows, cols) = at.1.shape(&self.spec);
            Ok((*at, Change::load(low_rank, rows, cols, &self.device)?))
        };
        let changes = adapter.modules.iter().map(load).collect::<Result<_>>()?;
        self.adapters.push(changes);
        Ok(self.adapters.len() - 1)
    }

    fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output> {
        let step = self.step(&batch, adapted)?;
        let mut hidden = self.embedding.lookup(&Tensor::new(batch.tokens, &self.device)?)?; // [N, H]
        if self.spec.embedding_scale != 1.0 {
            hidden = (hidden * f64::from(self.spec.embedding_scale))?;
        }
        for (index, (layer, pages)) in self.layers.iter().zip(cache.layers()).enumerate() {
            hidden = layer.forward(index, &hidden, pages, &step)?; // [N, H]
        }
        // A row that has lost its numbers anywhere has none at the end either: residuals are added, never replaced.
        let sums = hidden.sum(1)?;
        let logits = match batch.logit_rows {
            [] => Tensor::zeros((0, self.spec.vocab), DType::F32, &Device::Cpu)?,
            rows => {
                let last = hidden.index_select(&Tensor::new(rows, &self.device)?, 0)?; // [R, H]
                let last = plain::rms_norm(&last, &self.norm, self.spec.norm_epsilon)?;
                let logits = self.head.as_ref().unwrap_or(&self.embedding).product(&last)?; // [R, V]
                only(logits.to_device(&Device::Cpu)?, batch.wanted)?
            }
        };
        let finite = sums.to_vec1::<f32>()?.into_iter().map(f32::is_finite).collect();
        Ok(Output { logits, finite })
    }
}

/// Logits of the tokens that are wanted of each row; -inf for the others. All where no tokens are named.
fn only(logits: Tensor, wanted: &[Option<Vec<u32>>]) -> Result<Tensor> {
    if wanted.iter().all(Option::is_none) {
        return Ok(logits);
    }
    let shape = logits.shape().clone();
    let mut rows = logits.to_vec2::<f32>()?;
    for (row, wanted) in rows.iter_mut().zip(wanted) {
        let Some(wanted) = wanted else { continue };
        let mut kept = vec![f32::NEG_INFINITY; row.len()];
        wanted.iter().for_each(|token| kept[*token as usize] = row[*token as usize]);
        *row = kept;
    }
    Ok(Tensor::from_vec(rows.concat(), shape, &Device::Cpu)?)
}

impl Change {
    fn load(low_rank: &LowRank, rows: usize, cols: usize, device: &Device) -> candle_core::Result<Change> {
        let LowRank { rank, scale, a, b } = low_rank;
        let a = Tensor::from_slice(a, (*rank, cols), device)?.t()?.contiguous()?;
        let b = Tensor::from_slice(b, (rows, *rank), device)?.t()?.contiguous()?;
        Ok(Change { a: (a * f64::from(*scale))?, b })
    }
}

impl Layer {
    fn load(spec: &DecoderSpec, loader: &Loader<'_>, index: usize) -> Result<Layer> {
        let linear = |projection: Projection| {
            let interleaved = projection.is_interleaved(spec).then_some(spec.heads.dim);
            loader.linear(&projection.in_layer(index), projection.shape(spec), projection.has_bias(spec), interleaved)
        };
        Ok(Layer {
            norms: BlockNorms::load(spec, loader.weights, index, loader.device)?,
            has_window: spec.window_of(index).is_some(),
            projections: Projection::ALL.into_iter().map(linear).collect::<Result<_>>()?,
        })
    }

    /// `hidden: [N, H] -> [N, H]`; writes this layer's keys and values.
    fn forward(&self, index: usize, hidden: &Tensor, pages: &Tensor, step: &Step<'_>) -> Result<Tensor> {
        let DecoderSpec { heads, norm_epsilon: epsilon, activation, .. } = step.network.spec;
        let angles = step.window_angles.as_ref().filter(|_| self.has_window).unwrap_or(&step.angles);
        let post = |x: Tensor, norm: Option<&Tensor>| match norm {
            Some(norm) => plain::rms_norm(&x, norm, epsilon),
            None => Ok(x),
        };
        let project = |projection: Projection, x: &Tensor| step.project(index, &self.projections, projection, x);
        let rows = hidden.dim(0)?;

        let x = plain::rms_norm(hidden, &self.norms.attention, epsilon)?;
        let mut q = project(Projection::Query, &x)?.reshape((rows, heads.queries, heads.dim))?;
        let mut k = project(Projection::Key, &x)?.reshape((rows, heads.keys, heads.dim))?;
        if let Some((q_norm, k_norm)) = &self.norms.heads {
            (q, k) = (plain::rms_norm(&q, q_norm, epsilon)?, plain::rms_norm(&k, k_norm, epsilon)?);
        }
        let k = plain::turn(&k, angles)?.reshape((rows, heads.key_width()))?;
        step.places.write(pages, &k, &project(Projection::Value, &x)?)?;
        let q = plain::turn(&q, angles)?; // [N, A, D]
        let attended = step.places.attend(&q, pages, heads, self.has_window)?; // [N, A·D]
        let post_norms = self.norms.post.as_ref();
        let attended = post(project(Projection::Output, &attended)?, post_norms.map(|norms| &norms.attention))?;
        let hidden = (hidden + attended)?;

        let x = plain::rms_norm(&hidden, &self.norms.feed_forward, epsilon)?;
        let gate = project(Projection::Gate, &x)?;
        let gate = match activation {
            Activation::Silu => gate.silu()?,
            // candle's `gelu` is the tanh approximation.
            Activation::GeluTanh => gate.gelu()?,
        };
        let x = (gate * project(Projection::Up, &x)?)?; // [N, F]
        Ok((hidden + post(project(Projection::Down, &x)?, post_norms.map(|norms| &norms.feed_forward))?)?)
    }
}

impl Step<'_> {
    /// A projection of a layer with the changes of adapters: `[N, in] -> [N, out]`.
    fn project(&self, layer: usize, all: &[Linear], projection: Projection, x: &Tensor) -> candle_core::Result<Tensor> {
        let mut y = all[projection as usize].forward(x)?;
        for (adapter, rows) in &self.adapted {
            if let Some(Change { a, b }) = adapter.get(&(layer, projection)) {
                y = y.index_add(rows, &x.index_select(rows, 0)?.matmul(a)?.matmul(b)?, 0)?;
            }
        }
        Ok(y)
    }
}
