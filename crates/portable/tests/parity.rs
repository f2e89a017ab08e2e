//! The portable decoder against that of `models`, and its fused operations against the plain ones.

#![allow(clippy::single_range_in_vec_init, reason = "one sequence is a range")]

use std::path::PathBuf;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use models::{
    Batch, Decoder, DecoderSpec, KvCache, KvPrecision, PAGE_TOKENS, PagedSequence, Precision, Spec, Weights,
    adapter::Projection,
};
use portable::{Arithmetic, Lora, LoraSettings, Network, Sequence, Targets};
use serde_json::Value;

const NAMES: [&str; 9] = [
    "llama",
    "qwen2_tied",
    "qwen2_sharded_bf16",
    "qwen2_yarn",
    "qwen2_window",
    "qwen3",
    "llama_biases",
    "llama3",
    "qwen2_layer_types",
];

fn open(name: &str) -> (DecoderSpec, Weights, Vec<u32>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder").join(name);
    let json = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap() };
    let Spec::Decoder(spec) = Spec::from_config(&json("config.json")).unwrap() else { panic!("no decoder") };
    let ids = json("logits.json")["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    // bf16 weights as `f32`, since their products may have native numerics.
    (spec, Weights::open_folder(&folder).unwrap().in_precision(Precision::F32), ids)
}

/// Log-probability of every token but the first, by our kernels, with logits divided by `temperature`.
fn by_kernels(decoder: &Decoder, tokens: &[u32], temperature: f32) -> Vec<f32> {
    let pages: Vec<u32> = (0..tokens.len().div_ceil(PAGE_TOKENS) as u32).collect();
    let cache = KvCache::new(decoder.spec(), pages.len(), KvPrecision::F32, &Device::Cpu).unwrap();
    let positions: Vec<u32> = (0..tokens.len() as u32).collect();
    let sequences = [PagedSequence { rows: 0..tokens.len(), past: 0, pages: &pages }];
    let batch = Batch {
        tokens,
        positions: &positions,
        slots: &positions,
        sequences: &sequences,
        logit_rows: &positions[..tokens.len() - 1],
        wanted: &[],
    };
    let rows = decoder.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap();
    let log_prob = |(row, token): (&Vec<f32>, &u32)| {
        let sum: f64 = row.iter().map(|x| f64::from(*x / temperature).exp()).sum();
        row[*token as usize] / temperature - sum.ln() as f32
    };
    rows.iter().zip(&tokens[1..]).map(log_prob).collect()
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn log_probabilities_are_those_of_our_kernels_in_both_kinds_of_arithmetic() {
    for name in NAMES {
        let (spec, weights, tokens) = open(name);
        let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
        let want = by_kernels(&decoder, &tokens, 1.0);
        let mut network = Network::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
        // Two sequences in one batch: the second must not see the first.
        let both: Vec<u32> = [&tokens[..20], &tokens[..]].concat();
        let sequences: Arc<[_]> = [(0..20).into(), (20..both.len()).into()].into();
        let rows: Vec<u32> = (20..both.len() as u32 - 1).collect();
        for arithmetic in [Arithmetic::Fused, Arithmetic::Plain] {
            network = network.with_arithmetic(arithmetic).unwrap();
            let hidden = network.hidden(&both, &sequences, None).unwrap();
            let hidden = hidden.index_select(&Tensor::new(&rows[..], &Device::Cpu).unwrap(), 0).unwrap();
            let got = network.log_probs(&hidden, &tokens[1..]).unwrap().to_vec1::<f32>().unwrap();
            let worst = difference(&got, &want);
            println!("{name}, {arithmetic:?}: largest difference {worst:e}");
            assert!(worst < 1e-4, "{name}, {arithmetic:?}: {worst}");
            let scored = network.score(&hidden, &tokens[1..]).unwrap();
            assert!(difference(&scored.iter().map(|s| s.log_prob).collect::<Vec<_>>(), &got) < 1e-4);
        }
    }
}

const ROWS: [u32; 5] = [3, 9, 15, 21, 30];
const WEIGHTS: [f32; 5] = [0.5, -1.0, 0.25, 1.0, 0.75];

/// Two sequences; the second has two branches where the network allows it.
fn sequences(len: usize, branched: bool) -> Arc<[Sequence]> {
    let branches = if branched { vec![5, 12] } else { Vec::new() };
    [(0..13).into(), Sequence { rows: 13..len, branches }].into()
}

/// Gradients of a fixed weighting of log-probabilities for the variables of an adapter.
fn gradients(network: &Network, lora: &Lora, tokens: &[u32], kept: usize, branched: bool) -> Vec<Vec<f32>> {
    let sequences = sequences(tokens.len(), branched);
    let targets = ROWS.map(|row| tokens[row as usize + 1]);
    let about = Targets { tokens, sequences: &sequences, rows: &ROWS, targets: &targets };
    let mut sums: Vec<Vec<f32>> = lora.variables().iter().map(|variable| vec![0.0; variable.elem_count()]).collect();
    network.add_gradients(lora, &about, kept, &mut sums, |_| WEIGHTS.to_vec()).unwrap();
    sums
}

fn lora(spec: &DecoderSpec, targets: &[Projection]) -> Lora {
    let mut state = 12345u32;
    let mut uniform = move || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    let settings = LoraSettings { rank: 3, alpha: 6.0, targets: targets.to_vec() };
    let lora = Lora::new(spec, settings, &Device::Cpu, &mut uniform).unwrap();
    for var in lora.variables() {
        let values: Vec<f32> = (0..var.elem_count()).map(|_| uniform() * 0.1).collect();
        var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    lora
}

#[test]
fn gradients_of_fused_blocks_are_those_of_candle() {
    for name in NAMES {
        let (spec, weights, tokens) = open(name);
        let branched = (0..spec.layers).all(|layer| spec.window_of(layer).is_none());
        for targets in [&Projection::ALL[..], &[Projection::Query, Projection::Value, Projection::Up]] {
            let lora = lora(&spec, targets);
            let mut network = Network::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
            let fused = gradients(&network, &lora, &tokens, spec.layers, branched);
            assert_eq!(
                fused,
                gradients(&network, &lora, &tokens, 1, branched),
                "computing a block twice changes its gradient"
            );
            network = network.with_arithmetic(Arithmetic::Plain).unwrap();
            let plain = gradients(&network, &lora, &tokens, 1, branched);
            for (fused, plain) in fused.iter().zip(&plain) {
                let size = plain.iter().map(|x| x.abs()).fold(0.0, f32::max);
                let worst = difference(fused, plain);
                assert!(size > 0.0 && worst < 1e-4 * size.max(1.0), "{name}: {worst} of {size}");
            }
        }
    }
}

#[test]
fn a_temperature_divides_the_logits_of_scores_and_of_gradients() {
    const TEMPERATURE: f32 = 2.0;
    let (spec, weights, tokens) = open("qwen3");
    let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    let want = by_kernels(&decoder, &tokens, TEMPERATURE);
    assert!(difference(&want, &by_kernels(&decoder, &tokens, 1.0)) > 0.01, "it changes nothing");
    let network = Network::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    let mut network = network.with_temperature(TEMPERATURE).unwrap();
    let hidden = network.hidden(&tokens, &[(0..tokens.len()).into()].into(), None).unwrap();
    let hidden = hidden.narrow(0, 0, tokens.len() - 1).unwrap();
    let scored = network.score(&hidden, &tokens[1..]).unwrap();
    let worst = difference(&scored.iter().map(|scored| scored.log_prob).collect::<Vec<_>>(), &want);
    assert!(worst < 1e-4, "{worst}");
    let lora = lora(&spec, &Projection::ALL);
    let fused = gradients(&network, &lora, &tokens, 1, true);
    network = network.with_arithmetic(Arithmetic::Plain).unwrap();
    let log_probs = network.log_probs(&hidden, &tokens[1..]).unwrap().to_vec1::<f32>().unwrap();
    assert!(difference(&log_probs, &want) < 1e-4);
    for (fused, plain) in fused.iter().zip(gradients(&network, &lora, &tokens, 1, true)) {
        let size = plain.iter().map(|x| x.abs()).fold(0.0, f32::max);
        let worst = difference(fused, &plain);
        assert!(size > 0.0 && worst < 1e-4 * size.max(1.0), "{worst} of {size}");
    }
}

#[test]
fn a_window_that_no_sequence_can_reach_is_ignored() {
    let (spec, weights, tokens) = open("qwen2_window");
    let window = spec.window.as_ref().unwrap().tokens;
    let load = |spec: &DecoderSpec, positions| Network::load(spec, &weights, positions, &Device::Cpu).unwrap();
    let (tokens, lora) = (&tokens[..13 + window], lora(&spec, &Projection::ALL));
    let unlimited = DecoderSpec { window: None, ..spec.clone() };
    assert_eq!(
        gradients(&load(&spec, window), &lora, tokens, 1, true),
        gradients(&load(&unlimited, window), &lora, tokens, 1, true)
    );
    let longer = load(&spec, window + 1);
    let error = longer.hidden(tokens, &sequences(tokens.len(), true), None).unwrap_err().to_string();
    assert!(error.contains("branches") && error.contains("sliding windows"), "{error}");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    const STEP: f32 = 1e-2;
    let (spec, weights, tokens) = open("qwen3");
    let branched = true;
    let lora = lora(&spec, &Projection::ALL);
    let network = Network::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    let value = || -> f64 {
        let sequences = sequences(tokens.len(), branched);
        let hidden = network.hidden(&tokens, &sequences, Some(&lora)).unwrap();
        let hidden = hidden.index_select(&Tensor::new(&ROWS, &Device::Cpu).unwrap(), 0).unwrap();
        let targets = ROWS.map(|row| tokens[row as usize + 1]);
        let scored = network.score(&hidden, &targets).unwrap();
        scored.iter().zip(WEIGHTS).map(|(scored, w)| f64::from(scored.log_prob * w)).sum()
    };
    let grads = gradients(&network, &lora, &tokens, spec.layers, branched);
    for (var, grad) in lora.variables().into_iter().zip(grads) {
        // The largest component and an arbitrary one of every variable.
        let largest = (0..grad.len()).max_by(|a, b| grad[*a].abs().total_cmp(&grad[*b].abs())).unwrap();
        for at in [largest, grad.len() / 3] {
            let before = var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let moved = |step: f32| {
                let mut values = before.clone();
                values[at] += step;
                var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap()).unwrap();
                value()
            };
            let want = (moved(STEP) - moved(-STEP)) / f64::from(2.0 * STEP);
            moved(0.0);
            let error = (f64::from(grad[at]) - want).abs();
            assert!(error < 2e-3 + 0.02 * want.abs(), "{}, want {want}", grad[at]);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (spec, weights, tokens) = open("llama");
    assert!(Network::load(&spec, &weights, spec.context + 1, &Device::Cpu).is_err());
    let network = Network::load(&spec, &weights, 32, &Device::Cpu).unwrap();
    assert!(network.embed(&[100_000]).is_err());
    let error = network.hidden(&tokens, &[(0..tokens.len()).into()].into(), None).unwrap_err().to_string();
    assert!(error.contains("at most 32"), "{error}");
}

#[test]
fn the_default_model_is_scored_as_by_our_kernels() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let (weights, metadata) = Weights::open_gguf(&path).unwrap();
    let Spec::Decoder(spec) = Spec::from_gguf(&metadata, &weights).unwrap() else { panic!() };
    let weights = weights.in_precision(Precision::F32);
    let decoder = Decoder::load(&spec, &weights, 128, &Device::Cpu).unwrap();
    let tokens: Vec<u32> = (0..100).map(|i| (i * i * 37 + 11) % 40_000).collect();
    let want = by_kernels(&decoder, &tokens, 1.0);
    let network = Network::load(&spec, &weights, 128, &Device::Cpu).unwrap();
    let hidden = network.hidden(&tokens, &[(0..tokens.len()).into()].into(), None).unwrap();
    let hidden = hidden.narrow(0, 0, tokens.len() - 1).unwrap();
    let got = network.log_probs(&hidden, &tokens[1..]).unwrap().to_vec1::<f32>().unwrap();
    let worst = difference(&got, &want);
    println!("largest difference {worst:e}");
    assert!(worst < 1e-3, "{worst}");
}
