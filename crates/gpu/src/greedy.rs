//! The greedy text of a model on the GPU against that on the CPU.

use std::path::Path;

use anyhow::{Context, Result};
use candle_core::{Device, Tensor};
use models::{Decoder, KvCache, KvPrecision, Spec, Weights};

use crate::batch::{Sequences, pages};
use crate::report::Report;

const TOKENS: usize = 64;
const PROMPT: [u32; 12] = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308];
/// Two tokens whose logits are nearer than this part of the largest may change places: both devices round activations.
const NEAR: f32 = 0.02;

/// Compares up to the first token that differs; its logit must be near that of the CPU's token.
pub fn check(report: &mut Report, device: &Device, model: &str) -> Result<()> {
    let (here, _) = write(model, &Device::Cpu, None)?;
    // The GPU continues the CPU's text, so that one difference does not hide the following ones.
    let (there, logits) = write(model, device, Some(&here))?;
    let differs: Vec<usize> = (0..TOKENS).filter(|i| here[*i] != there[*i]).collect();
    report.measured("greedy text", "tokens that are those of the processor", (TOKENS - differs.len()) as f64, "of 64");
    let far = differs.iter().filter(|i| {
        let row = &logits[**i];
        let largest = row.iter().fold(0f32, |a, b| a.max(b.abs()));
        row[there[**i] as usize] - row[here[**i] as usize] > NEAR * largest
    });
    report.check("greedy text", "tokens that differ and were not near", far.count() as f64, 0.0);
    Ok(())
}

/// The greedy token after the prompt and after each token of a text: generated or given.
fn write(model: &str, device: &Device, follow: Option<&[u32]>) -> Result<(Vec<u32>, Vec<Vec<f32>>)> {
    let (weights, metadata) = Weights::open_gguf(Path::new(model)).with_context(|| format!("cannot open {model}"))?;
    let Spec::Decoder(spec) = Spec::from_gguf(&metadata, &weights)? else {
        anyhow::bail!("{model} is no decoder");
    };
    let network = Decoder::load(&spec, &weights, 256, device)?;
    let cache = KvCache::new(&spec, 8, KvPrecision::F16, device)?;
    let mut text = PROMPT.map(|token| token % spec.vocab as u32).to_vec();
    let (mut chosen, mut rows) = (Vec::new(), Vec::new());
    let mut past = 0;
    for step in 0..TOKENS {
        let logits: Tensor = Sequences::new(&[(text.clone(), past, pages(0, 256))]).run(&network, &cache)?;
        let row = logits.to_vec2::<f32>()?.swap_remove(0);
        let best = (0..row.len()).reduce(|a, b| if row[b] > row[a] { b } else { a }).unwrap_or(0) as u32;
        past = text.len();
        text.push(follow.map_or(best, |follow| follow[step]));
        chosen.push(best);
        rows.push(row);
    }
    Ok((chosen, rows))
}
