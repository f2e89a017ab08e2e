//! The decoder network: Llama's blocks, driven by a [`DecoderSpec`]. SmolLM2, Qwen2.5, Qwen3 and Gemma 3 are specs of it.
//!
//! The network knows neither sequences nor time: it maps a ragged [`Batch`] of tokens to logits and reads and writes
//! keys and values in the pages that the caller names. The cache is an argument.

use candle_core::{DType, Device, Tensor};
use kernels::attention::{PagedSequence, Placed};
use kernels::cpu::{Numerics, active_isa};
use kernels::epilogue::Epilogue;
use kernels::low_rank;
use kernels::ops;
use kernels::rope::RopeTable;
use kernels::sample::{Draw, Drawn};
use kernels::weight::Weight;

use crate::adapter::{Adapter, Projection};
use crate::backend::DecoderNetwork;
use crate::block_norms::{BlockNorms, PostNorms, last_norm};
use crate::error::{ModelError, Result};
use crate::experts::Experts;
use crate::interleaved::interleaved_row;
use crate::kv_cache::{KvCache, KvPrecision};
use crate::linear::{Bias, Linear};
use crate::lora::{AdaptedRows, LoadedAdapter, Stack, changes};
use crate::rotary;
use crate::spec::{Activation, DecoderSpec};
use crate::split::{DecoderPart, Part};
use crate::weights::Weights;

#[cfg(feature = "cuda")]
pub(crate) mod noise;

/// The weights of a decoder, ready to run.
#[derive(Debug)]
pub struct Decoder {
    spec: DecoderSpec,
    part: Part,
    /// The token table `[V, H]`, also the output matrix of tied checkpoints.
    table: Option<Weight>,
    /// Those of `part`.
    layers: Vec<Layer>,
    head: Option<Head>,
    rope: RopeTable,
    /// Of the layers with a sliding window, where theirs differs.
    window_rope: Option<RopeTable>,
    adapters: Vec<LoadedAdapter>,
    device: Device,
}

/// What comes after the last layer.
#[derive(Debug)]
struct Head {
    norm: Tensor,
    /// `[V, H]`, if it is not the token table.
    matrix: Option<Weight>,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Tensor,
    /// Query, key and value projections on top of each other.
    qkv: Linear,
    /// Norms of the query and key heads, `[D]` each.
    qk_norm: Option<(Tensor, Tensor)>,
    /// Latest tokens that a query sees, if not all.
    window: Option<usize>,
    output: Linear,
    ffn_norm: Tensor,
    feed_forward: FeedForward,
    /// Norms of the outputs of attention and feed-forward network.
    post_norms: Option<PostNorms>,
}

#[derive(Debug)]
enum FeedForward {
    Dense {
        /// Gate and up projections on top of each other.
        gate_up: Linear,
        down: Linear,
    },
    Experts(Experts),
}

/// What a layer needs besides its input and its pages.
#[derive(Clone, Copy)]
struct Block<'a> {
    network: &'a Decoder,
    /// Of the layer.
    index: usize,
    rows: &'a Placed<'a>,
    adapted: &'a [AdaptedRows],
}

impl<'a> Block<'a> {
    fn changes(self, stack: Stack) -> Vec<(&'a low_rank::Change, &'a [u32])> {
        changes(&self.network.adapters, self.adapted, self.index, stack)
    }

    /// The rotary embedding of the layer.
    fn rope(self) -> &'a RopeTable {
        let Decoder { spec, rope, window_rope, .. } = self.network;
        window_rope.as_ref().filter(|_| spec.has_window_rope(self.index)).unwrap_or(rope)
    }
}

/// A ragged batch: tokens of any number of sequences end to end, without padding.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// `[N]`
    pub tokens: &'a [u32],
    /// `[N]`: position of each token in its sequence.
    pub positions: &'a [u32],
    /// `[N]`: page · 32 + offset at which each token's key and value are stored.
    pub slots: &'a [u32],
    pub sequences: &'a [PagedSequence<'a>],
    /// Rows of which logits are wanted.
    pub logit_rows: &'a [u32],
    /// For each of them the tokens whose logits are wanted, ascending, or `None` for all; the others come out as `-inf`.
    /// Empty if all are wanted of all.
    pub wanted: &'a [Option<Vec<u32>>],
}

impl Batch<'_> {
    /// Checks that every token is below the size of the vocabulary, and every position below the number of positions.
    ///
    /// # Errors
    /// [`ModelError::Config`] with the first that is not.
    pub fn check(&self, vocab: usize, positions: usize) -> Result<()> {
        if let Some(token) = self.tokens.iter().find(|token| **token as usize >= vocab) {
            return Err(ModelError::config(format!("token {token} of a vocabulary of {vocab}")));
        }
        match self.positions.iter().find(|position| **position as usize >= positions) {
            Some(position) => Err(ModelError::config(format!("position {position} of a context of {positions}"))),
            None => Ok(()),
        }
    }
}

/// The result of a batch.
#[derive(Debug)]
pub struct Output {
    /// `[R, V]`: logits of the batch's `logit_rows`.
    pub logits: Tensor,
    /// `[N]`: false for rows with NaN or infinity; their keys and values are invalid.
    pub finite: Vec<bool>,
}

impl Output {
    /// Draws tokens, each request from the row of logits that it names; rows ascend. Changes those rows.
    ///
    /// # Errors
    /// If there is no such row or the computation fails.
    pub fn draw(&mut self, requests: &[(usize, Draw<'_>)]) -> Result<Vec<Drawn>> {
        Ok(ops::draw(&self.logits, requests)?)
    }

    /// `[V]`: one row of logits; `None` if it is no numbers.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Result<Option<Vec<f32>>> {
        // A copy from a GPU is of the whole storage that a view is a part of.
        let logits = self.logits.narrow(0, row, 1)?.force_contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        Ok(logits.iter().all(|logit| !logit.is_nan()).then_some(logits))
    }
}

impl Decoder {
    /// Loads the weights for `context` positions.
    ///
    /// # Errors
    /// If a tensor is missing or has another shape than the spec says.
    pub fn load(spec: &DecoderSpec, weights: &Weights, context: usize, device: &Device) -> Result<Decoder> {
        Decoder::load_part(spec, weights, &Part::whole(spec), context, device)
    }

    /// Loads a part of the network.
    ///
    /// # Errors
    /// As [`Decoder::load`].
    pub fn load_part(
        spec: &DecoderSpec,
        weights: &Weights,
        part: &Part,
        context: usize,
        device: &Device,
    ) -> Result<Decoder> {
        let rope = |rope| rotary::table(rope, spec.heads.dim, context);
        let layers = part.layers.clone().map(|index| Layer::load(spec, weights, index, device));
        let layers = layers.collect::<Result<_>>()?;
        let table = || weights.table("model.embed_tokens.weight", spec.vocab, spec.hidden, device);
        Ok(Decoder {
            head: part.head.then(|| Head::load(spec, weights, device)).transpose()?,
            table: part.table.then(table).transpose()?,
            layers,
            rope: rope(&spec.rope),
            window_rope: spec.window_rope().map(rope),
            adapters: Vec::new(),
            device: device.clone(),
            spec: spec.clone(),
            part: part.clone(),
        })
    }

    /// What this checkpoint is.
    pub fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn table(&self) -> Result<&Weight> {
        self.table.as_ref().ok_or_else(|| ModelError::NotInPart { what: "token table" })
    }

    /// Loads an adapter for this network; returns its number, counted from 0.
    ///
    /// # Errors
    /// As [`Adapter::check`]; if the device is out of memory.
    pub fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        self.adapters.push(LoadedAdapter::load(adapter, &self.spec, self.part.layers.clone(), &self.device)?);
        Ok(self.adapters.len() - 1)
    }

    /// Bytes of the matrices of an adapter.
    ///
    /// # Panics
    /// If it was not loaded.
    pub fn adapter_bytes(&self, adapter: usize) -> usize {
        self.adapters[adapter].bytes()
    }

    /// Bytes that the packed weights take.
    pub fn weight_bytes(&self) -> usize {
        let layers = self.layers.iter().map(Layer::weight_bytes).sum::<usize>();
        let head = self.head.as_ref().and_then(|head| head.matrix.as_ref());
        layers + [self.table.as_ref(), head].into_iter().flatten().map(Weight::bytes).sum::<usize>()
    }

    /// Runs a batch.
    ///
    /// # Errors
    /// If a token or a position is out of range, or the computation fails.
    pub fn forward(&self, batch: Batch<'_>, cache: &KvCache) -> Result<Output> {
        self.forward_adapted(batch, &[], cache)
    }

    /// Runs a batch, some of its rows with adapters. On the CPU the other rows give the bits that they give without.
    ///
    /// # Errors
    /// As [`Decoder::forward`].
    ///
    /// # Panics
    /// If a row is out of range or has two adapters, or an adapter was not loaded.
    pub fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output> {
        DecoderNetwork::forward_adapted(self, batch, adapted, cache)
    }
}

impl DecoderPart for Decoder {
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
        match (self.device.is_cpu(), active_isa().numerics()) {
            (true, Numerics::Portable) => "kernels, CPU",
            (true, Numerics::Bf16Pairs) => "kernels, CPU, bf16 pairs",
            (true, Numerics::Bf16Tiles) => "kernels, CPU, bf16 tiles",
            (false, _) => "kernels, GPU",
        }
    }

    fn takes_kv(&self, precision: KvPrecision) -> bool {
        match precision {
            KvPrecision::F16 | KvPrecision::Bf16 => true,
            KvPrecision::F32 | KvPrecision::Q8_0 => self.device.is_cpu(),
        }
    }

    fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        Decoder::adapt(self, adapter)
    }

    fn positions(&self) -> usize {
        self.rope.positions()
    }

    fn embed(&self, tokens: &[u32]) -> Result<Tensor> {
        Ok(self.table()?.lookup(tokens, &self.device)?)
    }

    fn run(&self, hidden: Tensor, batch: &Batch<'_>, adapted: &[AdaptedRows], pages: &[Tensor]) -> Result<Tensor> {
        let rows = Placed::new(batch.positions, batch.slots, batch.sequences);
        let layers = self.part.layers.clone().zip(&self.layers).zip(pages);
        layers.into_iter().try_fold(hidden, |hidden, ((index, layer), pages)| {
            layer.forward(&hidden, pages, Block { network: self, index, rows: &rows, adapted })
        })
    }

    fn logits(&self, hidden: &Tensor, batch: &Batch<'_>) -> Result<Tensor> {
        let head = self.head.as_ref().ok_or_else(|| ModelError::NotInPart { what: "head" })?;
        let matrix = head.matrix.as_ref().map_or_else(|| self.table(), Ok)?;
        let last = ops::pick_rows(hidden, batch.logit_rows)?; // [R, H]
        let last = ops::rms_norm(&last, &head.norm, self.spec.norm_epsilon, matrix.operand())?;
        Ok(match batch.wanted {
            [] => matrix.product(&last, None, Epilogue::None)?,
            wanted => matrix.product_some(&last, wanted)?,
        })
    }
}

impl Head {
    fn load(spec: &DecoderSpec, weights: &Weights, device: &Device) -> Result<Head> {
        let matrix = || weights.weight("lm_head.weight", spec.vocab, spec.hidden, device);
        Ok(Head { norm: last_norm(spec, weights, device)?, matrix: (!spec.tied).then(matrix).transpose()? })
    }
}

impl Layer {
    fn load(spec: &DecoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<Layer> {
        let name = |part: &str| format!("model.layers.{index}.{part}");
        let (hidden, heads) = (spec.hidden, spec.heads);
        let bias = if spec.output_bias { Bias::Yes } else { Bias::No };
        let norms = BlockNorms::load(spec, weights, index, device)?;
        Ok(Layer {
            attention_norm: norms.attention,
            qkv: load_qkv(spec, weights, index, device)?,
            qk_norm: norms.heads,
            window: spec.window_of(index),
            output: Linear::load(weights, &name("self_attn.o_proj"), hidden, heads.query_width(), bias, device)?,
            ffn_norm: norms.feed_forward,
            post_norms: norms.post,
            feed_forward: match spec.routing {
                None => FeedForward::dense(spec, weights, &name("mlp"), device)?,
                Some(routing) => FeedForward::Experts(Experts::load(spec, routing, weights, &name("mlp"), device)?),
            },
        })
    }

    fn weight_bytes(&self) -> usize {
        let attention = [&self.qkv, &self.output].map(|linear| linear.weight().bytes()).iter().sum::<usize>();
        attention
            + match &self.feed_forward {
                FeedForward::Dense { gate_up, down } => gate_up.weight().bytes() + down.weight().bytes(),
                FeedForward::Experts(experts) => experts.weights().map(Weight::bytes).sum(),
            }
    }

    /// `hidden: [N, H] -> [N, H]`; writes this layer's keys and values.
    fn forward(&self, hidden: &Tensor, pages: &Tensor, block: Block<'_>) -> Result<Tensor> {
        let epsilon = block.network.spec.norm_epsilon;
        let mut attended = self.attend(hidden, pages, block)?; // [N, H]
        if let Some(norms) = &self.post_norms {
            attended = ops::rms_norm(&attended, &norms.attention, epsilon, DType::F32)?;
        }
        let operand = self.feed_forward.operand();
        let (hidden, x) = ops::add_rms_norm(hidden, &attended, &self.ffn_norm, epsilon, operand)?;
        self.feed_forward.forward(&hidden, &x, self.post_norms.as_ref().map(|norms| &norms.feed_forward), block)
    }

    /// `hidden: [N, H] -> [N, H]`, without the residual.
    fn attend(&self, hidden: &Tensor, pages: &Tensor, block: Block<'_>) -> Result<Tensor> {
        let (spec, rows) = (&block.network.spec, block.rows);
        let (heads, epsilon) = (spec.heads, spec.norm_epsilon);
        let x = ops::rms_norm(hidden, &self.attention_norm, epsilon, self.qkv.operand())?;
        let mut qkv = low_rank::add(self.qkv.forward(&x)?, &x, &block.changes(Stack::Qkv))?; // [N, (A + 2K)·D]
        if let Some((q_norm, k_norm)) = &self.qk_norm {
            qkv = ops::norm_heads(&qkv, q_norm, k_norm, heads, epsilon)?;
        }
        let q = ops::rotate_and_store(&qkv, pages, heads, block.rope(), rows)?; // [N, A·D]
        let attended = ops::paged_attention(&q, pages, heads, self.window, rows, self.output.operand())?; // [N, A·D]
        Ok(low_rank::add(self.output.forward(&attended)?, &attended, &block.changes(Stack::Output))?)
    }
}

impl FeedForward {
    fn dense(spec: &DecoderSpec, weights: &Weights, name: &str, device: &Device) -> Result<FeedForward> {
        let (hidden, ffn) = (spec.hidden, spec.ffn);
        let part = |part: &str| format!("{name}.{part}");
        let weight = |proj: &str| weights.weight(&part(&format!("{proj}.weight")), ffn, hidden, device);
        let bias = |proj: &str| weights.values(&part(&format!("{proj}.bias")), &[ffn]);
        let gate_up = Weight::stack([weight("gate_proj")?, weight("up_proj")?])?;
        let gate_up_bias = match spec.gate_up_bias {
            true => Some([bias("gate_proj")?, bias("up_proj")?].concat()),
            false => None,
        };
        let down_bias = if spec.down_bias { Bias::Yes } else { Bias::No };
        Ok(FeedForward::Dense {
            gate_up: Linear::new(gate_up, gate_up_bias, device)?,
            down: Linear::load(weights, &part("down_proj"), hidden, ffn, down_bias, device)?,
        })
    }

    /// The type in which it takes its input.
    fn operand(&self) -> DType {
        match self {
            FeedForward::Dense { gate_up, .. } => gate_up.operand(),
            FeedForward::Experts(_) => DType::F32,
        }
    }

    /// The residual `hidden: [N, H]` plus the feed-forward output for the normalised rows `x: [N, H]`, itself normalised by
    /// `post` where there is one.
    fn forward(&self, hidden: &Tensor, x: &Tensor, post: Option<&Tensor>, block: Block<'_>) -> Result<Tensor> {
        let (gate_up, down) = match self {
            FeedForward::Dense { gate_up, down } => (gate_up, down),
            FeedForward::Experts(experts) => return Ok(ops::add(hidden, &experts.forward(x)?)?),
        };
        let (changes, spec) = (block.changes(Stack::GateUp), &block.network.spec);
        let plain = || low_rank::add(gate_up.forward(x)?, x, &changes).map_err(ModelError::from);
        let x = match spec.activation {
            Activation::Silu if changes.is_empty() => gate_up.forward_with(x, Epilogue::SwiGlu(down.operand()))?,
            Activation::Silu => ops::swiglu(&plain()?, down.operand())?,
            Activation::GeluTanh => ops::geglu(&plain()?, down.operand())?,
        }; // [N, F]
        let epilogue = if post.is_some() { Epilogue::None } else { Epilogue::Sum(hidden) };
        let out = low_rank::add(down.forward_with(&x, epilogue)?, &x, &block.changes(Stack::Down))?;
        match post {
            None => Ok(out),
            Some(norm) => Ok(ops::add(hidden, &ops::rms_norm(&out, norm, spec.norm_epsilon, DType::F32)?)?),
        }
    }
}

fn load_qkv(spec: &DecoderSpec, weights: &Weights, index: usize, device: &Device) -> Result<Linear> {
    let mut matrices = Vec::new();
    let mut bias = Vec::new();
    for projection in [Projection::Query, Projection::Key, Projection::Value] {
        let ((rows, cols), name) = (projection.shape(spec), projection.in_layer(index));
        let interleaved = projection.is_interleaved(spec);
        let source = |row: usize| if interleaved { interleaved_row(row, spec.heads.dim) } else { row };
        matrices.push(weights.weight_reordered(&format!("{name}.weight"), rows, cols, source, device)?);
        if spec.qkv_bias {
            let values = weights.values(&format!("{name}.bias"), &[rows])?;
            bias.extend((0..rows).map(|row| values[source(row)]));
        }
    }
    Linear::new(Weight::stack(matrices)?, spec.qkv_bias.then_some(bias), device)
}
