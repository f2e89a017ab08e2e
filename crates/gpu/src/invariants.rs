//! The invariants of inference on a GPU: a sequence's logits hardly depend on what else is in the batch, on where its
//! pages are, on how its prompt was cut, or on whether its prefix was computed or found.
//!
//! On the CPU these are the same bits. On a GPU they are not: the order of sums depends on the number of rows.

use anyhow::Result;
use candle_core::{DType, Device, Tensor};
use kernels::attention::Heads;
use models::{Activation, Decoder, DecoderSpec, KvCache, KvPrecision, Rope, Scaling};

use crate::batch::{Sequences, pages, tokens};
use crate::report::Report;

const PART: &str = "promise";
/// Of the largest logit, for weights in bf16.
const TOLERANCE: f64 = 0.02;

/// Runs every check.
pub fn check(report: &mut Report, device: &Device) -> Result<()> {
    let spec = small();
    let network = Decoder::noise(&spec, 4096, device)?;
    let cache = || KvCache::new(&spec, 256, KvPrecision::F16, device);
    let texts: Vec<Vec<u32>> = [300, 40, 700, 33].iter().enumerate().map(|(i, n)| tokens(i, *n, spec.vocab)).collect();
    let alone: Vec<Tensor> = texts
        .iter()
        .map(|text| Sequences::new(&[(text.clone(), 0, pages(0, text.len()))]).run(&network, &cache()?))
        .collect::<Result<_>>()?;
    let alone = Tensor::cat(&alone, 0)?;
    let mut first = 0;
    let in_order: Vec<_> = texts
        .iter()
        .map(|text| {
            let list = pages(first, text.len());
            first += list.len();
            (text.clone(), 0, list)
        })
        .collect();
    let together = Sequences::new(&in_order).run(&network, &cache()?)?;
    report.check(PART, "a batch against each alone", difference(&together, &alone)?, TOLERANCE);
    let scattered: Vec<_> = in_order
        .iter()
        .map(|(text, past, list)| (text.clone(), *past, list.iter().map(|page| page * 37 % 251).collect()))
        .collect();
    let scattered = Sequences::new(&scattered).run(&network, &cache()?)?;
    report.check(PART, "scattered pages against pages in order", difference(&scattered, &together)?, 0.0);
    let again = Sequences::new(&in_order).run(&network, &cache()?)?;
    report.check(PART, "the same batch again", difference(&again, &together)?, 0.0);
    // All but the last pages of every text first, the rest on top of what is cached then.
    let warm = cache()?;
    let begun: Vec<_> =
        in_order.iter().map(|(text, _, list)| (text[..=text.len() / 64 * 32].to_vec(), 0, list.clone())).collect();
    Sequences::new(&begun).run(&network, &warm)?;
    let rest: Vec<_> =
        in_order.iter().map(|(text, _, list)| (text.clone(), text.len() / 64 * 32, list.clone())).collect();
    let rest = Sequences::new(&rest).run(&network, &warm)?;
    report.check(PART, "a cached prefix against a computed one", difference(&rest, &together)?, TOLERANCE);
    siblings(report, &network, &spec, device)?;
    no_logits(report, &network, &spec, device)
}

/// A chunk of a prompt of which no logits are wanted: there are none, and its keys and values are written.
fn no_logits(report: &mut Report, network: &Decoder, spec: &DecoderSpec, device: &Device) -> Result<()> {
    let (text, list) = (tokens(3, 100, spec.vocab), pages(0, 100));
    let [silent, loud] = [(); 2].map(|()| KvCache::new(spec, 4, KvPrecision::F16, device));
    let (silent, loud) = (silent?, loud?);
    let begun = Sequences::new(&[(text[..64].to_vec(), 0, list.clone())]);
    let none = begun.run_silently(network, &silent)?;
    report.check(PART, "logits where none are wanted", none.elem_count() as f64, 0.0);
    begun.run(network, &loud)?;
    let rest = Sequences::new(&[(text, 64, list)]);
    let (after, want) = (rest.run(network, &silent)?, rest.run(network, &loud)?);
    report.check(PART, "after a chunk without logits", difference(&after, &want)?, 0.0);
    Ok(())
}

/// Eight sequences that begin with the same pages, as a batch and one by one.
fn siblings(report: &mut Report, network: &Decoder, spec: &DecoderSpec, device: &Device) -> Result<()> {
    let cache = KvCache::new(spec, 256, KvPrecision::F16, device)?;
    let (prefix, shared) = (tokens(9, 640, spec.vocab), pages(0, 640));
    Sequences::new(&[(prefix.clone(), 0, shared.clone())]).run(network, &cache)?;
    let sibling = |i: usize| {
        let text = [prefix.clone(), tokens(20 + i, 5 + i, spec.vocab)].concat();
        let list = [shared.clone(), pages(100 + 2 * i, 40)].concat();
        (text, 640, list)
    };
    let siblings: Vec<_> = (0..8).map(sibling).collect();
    let together = Sequences::new(&siblings).run(network, &cache)?;
    let alone = siblings.iter().map(|sibling| Sequences::new(std::slice::from_ref(sibling)).run(network, &cache));
    let alone = Tensor::cat(&alone.collect::<Result<Vec<_>>>()?, 0)?;
    report.check(PART, "siblings over a shared prefix against each alone", difference(&together, &alone)?, TOLERANCE);
    Ok(())
}

fn small() -> DecoderSpec {
    DecoderSpec {
        architecture: "qwen2".into(),
        layers: 4,
        hidden: 1792,
        heads: Heads { queries: 14, keys: 2, dim: 128 },
        ffn: 4864,
        routing: None,
        activation: Activation::Silu,
        vocab: 8192,
        embedding_scale: 1.0,
        context: 4096,
        norm_epsilon: 1e-6,
        norm_offset: 0.0,
        post_norms: false,
        score_scale: 1.0,
        rope: Rope { theta: 1e6, scaling: Scaling::None, interleaved: false },
        window: None,
        qkv_bias: true,
        output_bias: false,
        gate_up_bias: false,
        down_bias: false,
        qk_norm: false,
        tied: false,
    }
}

fn difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    let largest = b.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    let worst = (a - b)?.abs()?.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    let worst = worst.into_iter().fold(0f32, |worst, x| if x <= worst { worst } else { x });
    Ok(f64::from(worst / largest))
}
