//! The decoder of the portable backend: the network of `models::Decoder` on a paged KV cache, without hand-written kernels.
//!
//! Weights stay in the formats of the file where candle multiplies those; activations are `f32`. Results agree with the
//! kernels within rounding, and on every device they depend on the batch.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use kernels::rope::RopeTable;
use models::adapter::{Adapter, LowRank, Projection};
use models::{
    Activation, AdaptedRows, Batch, BlockNorms, DecoderPart, DecoderSpec, KvPrecision, ModelError, Part, Result,
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
    part: Part,
    device: Device,
    /// The token table `[V, H]`, also the output matrix of tied checkpoints.
    table: Option<Matrix>,
    /// Those of `part`.
    layers: Vec<Layer>,
    head: Option<Head>,
    rope: RopeTable,
    /// Of the layers with a sliding window, where theirs differs.
    window_rope: Option<RopeTable>,
    adapters: Vec<Changes>,
}

/// What comes after the last layer.
#[derive(Debug)]
struct Head {
    norm: Tensor,
    /// `[V, H]`, if it is not the token table.
    matrix: Option<Matrix>,
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
    /// Loads a part of a network.
    pub fn load(spec: &DecoderSpec, part: &Part, loader: &Loader<'_>) -> Result<PagedDecoder> {
        crate::refuse_experts(spec)?;
        let rope = |rope| rope_table(rope, spec.heads.dim, spec.context);
        let table = || loader.matrix("model.embed_tokens.weight", spec.vocab, spec.hidden);
        let layers = part.layers.clone().map(|layer| Layer::load(spec, loader, layer));
        Ok(PagedDecoder {
            table: part.table.then(table).transpose()?,
            layers: layers.collect::<Result<_>>()?,
            head: part.head.then(|| Head::load(spec, loader)).transpose()?,
            rope: rope(&spec.rope),
            window_rope: spec.window_rope().map(rope),
            adapters: Vec::new(),
            device: loader.device.clone(),
            spec: spec.clone(),
            part: part.clone(),
        })
    }

    fn table(&self) -> Result<&Matrix> {
        self.table.as_ref().ok_or_else(|| ModelError::NotInPart { what: "token table" })
    }

    fn step<'a>(&'a self, batch: &Batch<'_>, adapted: &[AdaptedRows]) -> Result<Step<'a>> {
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

impl DecoderPart for PagedDecoder {
    fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    fn part(&self) -> &Part {
        &self.part
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn arithmetic(&self) -> &'static str {
        if self.device.is_cpu() { "portable, CPU" } else { "portable, GPU" }
    }

    fn takes_kv(&self, _: KvPrecision) -> bool {
        true
    }

    fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        adapter.check(&self.spec)?;
        let load = |(at, low_rank): (&(usize, Projection), &LowRank)| {
            let (rows, cols) = at.1.shape(&self.spec);
            Ok((*at, Change::load(low_rank, rows, cols, &self.device)?))
        };
        let own = |((layer, _), _): &(&(usize, Projection), &LowRank)| self.part.layers.contains(layer);
        let changes = adapter.modules.iter().filter(own).map(load).collect::<Result<_>>()?;
        self.adapters.push(changes);
        Ok(self.adapters.len() - 1)
    }

    fn positions(&self) -> usize {
        self.rope.positions()
    }

    fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        Ok(self.table()?.lookup(&Tensor::new(tokens, &self.device)?)?)
    }

    fn run(&self, hidden: Tensor, batch: &Batch<'_>, adapted: &[AdaptedRows], pages: &[Tensor]) -> Result<Tensor> {
        let step = self.step(batch, adapted)?;
        let mut layers = self.part.layers.clone().zip(&self.layers).zip(pages);
        layers.try_fold(hidden, |hidden, ((index, layer), pages)| layer.forward(index, &hidden, pages, &step))
    }

    fn logits(&self, hidden: &Tensor, batch: &Batch<'_>) -> Result<Tensor> {
        let head = self.head.as_ref().ok_or_else(|| ModelError::NotInPart { what: "head" })?;
        let matrix = head.matrix.as_ref().map_or_else(|| self.table(), Ok)?;
        let last = hidden.index_select(&Tensor::new(batch.logit_rows, &self.device)?, 0)?; // [R, H]
        let last = plain::rms_norm(&last, &head.norm, self.spec.norm_epsilon)?;
        only(matrix.product(&last)?.to_device(&Device::Cpu)?, batch.wanted)
    }
}

impl Head {
    fn load(spec: &DecoderSpec, loader: &Loader<'_>) -> Result<Head> {
        let matrix = (!spec.tied).then(|| loader.matrix("lm_head.weight", spec.vocab, spec.hidden)).transpose()?;
        Ok(Head { norm: last_norm(spec, loader.weights, loader.device)?, matrix })
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
