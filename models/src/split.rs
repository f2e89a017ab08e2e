//! Layer split: consecutive layers of a decoder on one device each, for networks larger than the memory of any device.

use std::fmt::Debug;
use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use kernels::memory::retain_blocks;

use crate::adapter::Adapter;
use crate::backend::{Backend, DecoderNetwork};
use crate::decoder::{Batch, Output};
use crate::error::{ModelError, Result};
use crate::kv_cache::{KvCache, KvPrecision};
use crate::lora::AdaptedRows;
use crate::spec::DecoderSpec;
use crate::weights::Weights;

/// What one device holds of a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub layers: Range<usize>,
    /// The token table, which embeds tokens.
    pub table: bool,
    /// The last norm and the output matrix. Where that is the token table, one part has both.
    pub head: bool,
}

impl Part {
    /// All of a network.
    pub fn whole(spec: &DecoderSpec) -> Part {
        Part { layers: 0..spec.layers, table: true, head: true }
    }
}

/// A part of a decoder, ready to run. It is a [`DecoderNetwork`] if it is the whole.
pub trait DecoderPart: Debug + Send {
    /// What the whole checkpoint is.
    fn spec(&self) -> &DecoderSpec;

    /// What of it is here.
    fn part(&self) -> &Part;

    /// Where it runs and the pages of its layers are kept.
    fn device(&self) -> &Device;

    /// As [`DecoderNetwork::arithmetic`].
    fn arithmetic(&self) -> &'static str;

    /// As [`DecoderNetwork::takes_kv`].
    fn takes_kv(&self, precision: KvPrecision) -> bool;

    /// As [`DecoderNetwork::adapt`], for the layers of this part.
    ///
    /// # Errors
    /// As there.
    fn adapt(&mut self, adapter: &Adapter) -> Result<usize>;

    /// Positions that a token may have.
    fn positions(&self) -> usize;

    /// `[N, H]`: the rows of the token table, which this part has.
    ///
    /// # Errors
    /// If the computation fails.
    fn embed(&self, tokens: &[u32]) -> Result<Tensor>;

    /// `hidden: [N, H] -> [N, H]`, through the layers of this part; writes their keys and values to `pages`, one tensor a layer.
    ///
    /// # Errors
    /// If the computation fails.
    fn run(&self, hidden: Tensor, batch: &Batch<'_>, adapted: &[AdaptedRows], pages: &[Tensor]) -> Result<Tensor>;

    /// `[R, V]`: logits of the batch's `logit_rows` of `hidden: [N, H]`. This part has the head.
    ///
    /// # Errors
    /// If the computation fails.
    fn logits(&self, hidden: &Tensor, batch: &Batch<'_>) -> Result<Tensor>;
}

impl<P: DecoderPart> DecoderNetwork for P {
    fn spec(&self) -> &DecoderSpec {
        DecoderPart::spec(self)
    }

    fn on_gpu(&self) -> bool {
        !self.device().is_cpu()
    }

    fn arithmetic(&self) -> String {
        DecoderPart::arithmetic(self).to_owned()
    }

    fn takes_kv(&self, precision: KvPrecision) -> bool {
        DecoderPart::takes_kv(self, precision)
    }

    fn kv_cache(&self, pages: usize, precision: KvPrecision) -> Result<KvCache> {
        KvCache::new(DecoderPart::spec(self), pages, precision, self.device())
    }

    fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        DecoderPart::adapt(self, adapter)
    }

    fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output> {
        forward(&[self], batch, adapted, cache)
    }
}

/// A decoder whose parts run one after the other.
#[derive(Debug)]
pub struct SplitDecoder {
    spec: DecoderSpec,
    parts: Vec<Box<dyn DecoderPart>>,
}

impl SplitDecoder {
    /// Loads each part onto its backend.
    ///
    /// # Errors
    /// If the parts are not the whole network in order, or as [`Backend::decoder`].
    pub fn load(spec: &DecoderSpec, weights: &Weights, parts: &[(&dyn Backend, Part)]) -> Result<SplitDecoder> {
        check(spec, parts.iter().map(|(_, part)| part))?;
        let parts = parts.iter().map(|(backend, part)| backend.part(spec, weights, part)).collect::<Result<_>>()?;
        Ok(SplitDecoder { spec: spec.clone(), parts })
    }
}

/// Checks that parts have every layer once and in order, one token table and one head.
fn check<'a>(spec: &DecoderSpec, parts: impl Iterator<Item = &'a Part> + Clone) -> Result<()> {
    let mut layers = 0;
    for part in parts.clone() {
        if part.layers.start != layers || part.layers.end < layers {
            return Err(ModelError::config(format!("layers {:?} after layer {layers}", part.layers)));
        }
        layers = part.layers.end;
    }
    let count = |has: fn(&Part) -> bool| parts.clone().filter(|part| has(part)).count();
    let apart = spec.tied && parts.clone().any(|part| part.table != part.head);
    if layers != spec.layers || count(|part| part.table) != 1 || count(|part| part.head) != 1 || apart {
        let what = format!("parts of {layers} layers for a network of {} with one token table and head", spec.layers);
        return Err(ModelError::config(what));
    }
    Ok(())
}

impl DecoderNetwork for SplitDecoder {
    fn spec(&self) -> &DecoderSpec {
        &self.spec
    }

    fn on_gpu(&self) -> bool {
        self.parts.iter().any(|part| !part.device().is_cpu())
    }

    fn arithmetic(&self) -> String {
        let mut kinds: Vec<(&str, Range<usize>)> = Vec::new();
        for part in self.parts.iter().filter(|part| !part.part().layers.is_empty()) {
            match kinds.last_mut() {
                Some((kind, layers)) if *kind == part.arithmetic() => layers.end = part.part().layers.end,
                _ => kinds.push((part.arithmetic(), part.part().layers.clone())),
            }
        }
        match &kinds[..] {
            [(kind, _)] => (*kind).to_owned(),
            several => {
                let named = several.iter().map(|(kind, layers)| format!("layers {layers:?} by {kind}"));
                named.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn takes_kv(&self, precision: KvPrecision) -> bool {
        self.parts.iter().all(|part| part.takes_kv(precision))
    }

    fn kv_cache(&self, pages: usize, precision: KvPrecision) -> Result<KvCache> {
        let devices = self.parts.iter().flat_map(|part| part.part().layers.clone().map(|_| part.device()));
        KvCache::on(&self.spec, pages, precision, devices)
    }

    fn adapt(&mut self, adapter: &Adapter) -> Result<usize> {
        let mut number = 0;
        for part in &mut self.parts {
            number = part.adapt(adapter)?;
        }
        Ok(number)
    }

    fn forward_adapted(&self, batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output> {
        let parts: Vec<&dyn DecoderPart> = self.parts.iter().map(|part| &**part).collect();
        forward(&parts, batch, adapted, cache)
    }
}

/// Runs a batch through all parts of a network.
fn forward(parts: &[&dyn DecoderPart], batch: Batch<'_>, adapted: &[AdaptedRows], cache: &KvCache) -> Result<Output> {
    let with = |has: fn(&Part) -> bool| parts.iter().find(|part| has(part.part()));
    let (Some(table), Some(head)) = (with(|part| part.table), with(|part| part.head)) else {
        return Err(ModelError::NotInPart { what: "token table and head" });
    };
    let spec = head.spec();
    retain_blocks();
    batch.check(spec.vocab, head.positions())?;
    let mut hidden = table.embed(batch.tokens)?; // [N, H]
    if spec.embedding_scale != 1.0 {
        hidden = (hidden * f64::from(spec.embedding_scale))?;
    }
    for part in parts {
        let pages = &cache.layers()[part.part().layers.clone()];
        hidden = part.run(hidden.to_device(part.device())?, &batch, adapted, pages)?; // [N, H]
    }
    let hidden = hidden.to_device(head.device())?;
    // A row that has lost its numbers anywhere has none at the end either: residuals are added, never replaced.
    let sums = hidden.sum(1)?;
    let logits = match batch.logit_rows {
        [] => Tensor::zeros((0, spec.vocab), DType::F32, &Device::Cpu)?,
        _ => head.logits(&hidden, &batch)?,
    };
    // Waits for the sums after the rest has been submitted to a GPU as well.
    let finite = sums.to_vec1::<f32>()?.into_iter().map(f32::is_finite).collect();
    Ok(Output { logits, finite })
}
