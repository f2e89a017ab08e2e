//! Prefill, decoding and embedding at the sizes of published models, with random weights made on the GPU.

use anyhow::Result;
use candle_core::{DType, Device};
use kernels::attention::Heads;
use kernels::cuda::device::device_info;
use kernels::ops;
use kernels::sample::Draw;
use models::{
    Activation, Decoder, DecoderSpec, Encoder, EncoderSpec, KvCache, KvPrecision, PAGE_TOKENS, Rope, Scaling,
};

use crate::batch::{Sequences, pages, tokens};
use crate::ceiling::{COPY, PRODUCT, seconds};
use crate::report::Report;

const PART: &str = "speed";
/// Memory that is left for what a step computes in between.
const RESERVE: usize = 4 << 30;
/// Tokens before the one that is decoded.
const CONTEXT: usize = 2048;
/// Rows of one step of a prompt.
const CHUNK: usize = 2048;

/// Measures all models that fit.
pub fn measure(report: &mut Report, device: &Device) -> Result<()> {
    embeddings(report, device)?;
    for (name, spec) in [("7B", qwen(28, 3584, 28, 4, 18944)), ("14B", qwen(48, 5120, 40, 8, 13824))] {
        if report.left().is_zero() {
            report.left_out(name, "the time was over");
            continue;
        }
        let (free, needed) = (device_info(device)?.free, 2 * parameters(&spec) + RESERVE);
        if free < needed {
            report.left_out(name, &format!("it needs {needed} bytes, and {free} are free"));
            continue;
        }
        decoder(report, device, name, &spec)?;
    }
    Ok(())
}

fn qwen(layers: usize, hidden: usize, queries: usize, keys: usize, ffn: usize) -> DecoderSpec {
    DecoderSpec {
        architecture: "qwen2".into(),
        layers,
        hidden,
        heads: Heads { queries, keys, dim: 128 },
        ffn,
        routing: None,
        activation: Activation::Silu,
        vocab: 152_064,
        embedding_scale: 1.0,
        context: 32_768,
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

/// Weights that a step multiplies with, and those of the embedding.
fn parameters(spec: &DecoderSpec) -> usize {
    multiplied(spec) + spec.vocab * spec.hidden
}

fn multiplied(spec: &DecoderSpec) -> usize {
    let heads = spec.heads;
    let attention = spec.hidden * (2 * heads.query_width() + 2 * heads.key_width());
    spec.layers * (attention + 3 * spec.hidden * spec.ffn) + spec.vocab * spec.hidden
}

fn decoder(report: &mut Report, device: &Device, name: &str, spec: &DecoderSpec) -> Result<()> {
    let network = Decoder::noise(spec, 16_384, device)?;
    device.synchronize()?;
    let page_bytes = KvCache::page_bytes(spec, KvPrecision::F16);
    let room = device_info(device)?.free.saturating_sub(RESERVE) / page_bytes;
    let cached = room.min(64 * (CONTEXT + PAGE_TOKENS) / PAGE_TOKENS + 64);
    let fits = |length: &usize| length.div_ceil(PAGE_TOKENS) <= cached;
    let (lengths, too_long): (Vec<usize>, Vec<usize>) = [512, 2048, 8192].into_iter().partition(fits);
    if !too_long.is_empty() {
        report.left_out(name, &format!("prefill of {too_long:?}, the keys and values do not fit"));
    }
    if lengths.is_empty() {
        return Ok(());
    }
    let cache = KvCache::new(spec, cached, KvPrecision::F16, device)?;
    for length in lengths {
        let text = tokens(1, length, spec.vocab);
        let chunk =
            |past: usize| Sequences::new(&[(text[..length.min(past + CHUNK)].to_vec(), past, pages(0, length))]);
        let chunks: Vec<Sequences> = (0..length).step_by(CHUNK).map(chunk).collect();
        let took = seconds(device, 3, || chunks.iter().try_for_each(|chunk| chunk.run(&network, &cache).map(drop)))?;
        report.measured(PART, format!("{name} prefill of {length}"), length as f64 / took, "tokens/s");
        let layers = multiplied(spec) - spec.vocab * spec.hidden;
        let scores = 2.0 * (length * length) as f64 * (spec.layers * spec.heads.query_width()) as f64;
        let rate = (2.0 * (layers * length) as f64 + scores) / took / 1e12;
        report.measured(PART, format!("{name} prefill of {length}, rate"), rate, "TFLOP/s");
        if let Some(most) = report.value(PRODUCT) {
            report.measured(PART, format!("{name} prefill of {length}, of the product's rate"), rate / most, "");
        }
    }
    let mut first = None;
    for batch in [1, 8, 32, 64] {
        let pages_each = (CONTEXT + 1).div_ceil(PAGE_TOKENS);
        if batch * pages_each > cached {
            report.left_out(name, &format!("decoding of {batch}, the keys and values do not fit"));
            continue;
        }
        let sequence = |i: usize| (tokens(i, CONTEXT + 1, spec.vocab), CONTEXT, pages(i * pages_each, CONTEXT + 1));
        let step = Sequences::new(&(0..batch).map(sequence).collect::<Vec<_>>());
        // As an answer needs it: with the choice of the token.
        let draws: Vec<(usize, Draw<'_>)> = (0..batch).map(|row| (row, Draw::GREEDY)).collect();
        let took = seconds(device, 20, || {
            ops::draw(&step.run(&network, &cache)?, &draws)?;
            Ok(())
        })?;
        let rate = batch as f64 / took;
        report.measured(PART, format!("{name} decoding of {batch} with {CONTEXT} before"), rate, "tokens/s");
        let kv = batch * pages_each * page_bytes;
        let bytes = (2 * multiplied(spec) + kv) as f64;
        report.measured(PART, format!("{name} decoding of {batch}, weights and keys read"), bytes / took / 1e9, "GB/s");
        if let Some(copy) = report.value(COPY) {
            let part = 2.0 * multiplied(spec) as f64 / took / 1e9 / copy;
            report.measured(PART, format!("{name} decoding of {batch}, weights read, of the copy's rate"), part, "");
        }
        let alone = *first.get_or_insert(rate);
        report.measured(PART, format!("{name} decoding of {batch}, times the rate of one"), rate / alone, "");
    }
    Ok(())
}

/// BGE-M3's size.
fn embeddings(report: &mut Report, device: &Device) -> Result<()> {
    let spec = EncoderSpec {
        architecture: "xlm-roberta".into(),
        layers: 24,
        hidden: 1024,
        heads: Heads { queries: 16, keys: 16, dim: 64 },
        ffn: 4096,
        vocab: 250_002,
        positions: 8194,
        first_position: 2,
        token_types: 1,
        norm_epsilon: 1e-5,
    };
    let network = Encoder::noise(&spec, device)?;
    for (length, count) in [(128, 1), (128, 64), (512, 16), (8192, 1)] {
        let texts: Vec<Vec<u32>> = (0..count).map(|i| tokens(i, length, spec.vocab)).collect();
        let rows = models::ranges(&texts);
        let took = seconds(device, 3, || {
            let hidden = network.forward(&texts)?;
            let dense = ops::pool_unit(&hidden, &rows, kernels::embedding::Pool::First)?;
            anyhow::ensure!(dense.to_dtype(DType::F32)?.to_vec2::<f32>()?[0][0].is_finite(), "no numbers");
            Ok(())
        })?;
        let rate = (length * count) as f64 / took;
        report.measured(PART, format!("BGE-M3 embedding of {count} x {length}"), rate, "tokens/s");
    }
    Ok(())
}
