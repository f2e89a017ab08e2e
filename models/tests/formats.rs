//! Every format of weights that GGUF files come in: the network gives what the same numbers in `f32` give.

use std::fs::File;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use models::{Batch, Decoder, KvCache, KvPrecision, Numerics, PAGE_TOKENS, PagedSequence, Spec, Weights, active_isa};

const HIDDEN: usize = 256;
const FFN: usize = 512;
const VOCAB: usize = 96;
const DIM: usize = 64;
const LAYERS: usize = 2;

/// Name and shape of every matrix, and of every vector.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        ("token_embd.weight".to_owned(), vec![VOCAB, HIDDEN]),
        ("output.weight".to_owned(), vec![VOCAB, HIDDEN]),
        ("output_norm.weight".to_owned(), vec![HIDDEN]),
    ];
    for layer in 0..LAYERS {
        let of_layer: [(&str, &[usize]); 12] = [
            ("attn_norm.weight", &[HIDDEN]),
            ("attn_q.weight", &[4 * DIM, HIDDEN]),
            ("attn_q.bias", &[4 * DIM]),
            ("attn_k.weight", &[2 * DIM, HIDDEN]),
            ("attn_k.bias", &[2 * DIM]),
            ("attn_v.weight", &[2 * DIM, HIDDEN]),
            ("attn_v.bias", &[2 * DIM]),
            ("attn_output.weight", &[HIDDEN, 4 * DIM]),
            ("ffn_norm.weight", &[HIDDEN]),
            ("ffn_gate.weight", &[FFN, HIDDEN]),
            ("ffn_up.weight", &[FFN, HIDDEN]),
            ("ffn_down.weight", &[HIDDEN, FFN]),
        ];
        all.extend(of_layer.map(|(name, shape)| (format!("blk.{layer}.{name}"), shape.to_vec())));
    }
    all
}

fn noise(seed: usize) -> f32 {
    let x = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// Random values: matrices that keep lengths, norms about 1.
fn values(index: usize, name: &str, shape: &[usize]) -> Tensor {
    let scale = if shape.len() == 2 { (3.0 / shape[1] as f32).sqrt() } else { 0.2 };
    let about = if name.contains("norm") { 1.0 } else { 0.0 };
    let len = shape.iter().product();
    let values: Vec<f32> = (0..len).map(|i| about + scale * noise(1_000_003 * index + i)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// The logits of a prompt by a GGUF file of these tensors.
fn logits(name: &str, tensors: &[(String, QTensor)]) -> Vec<Vec<f32>> {
    let number = |number: usize| Value::U32(number as u32);
    let vocabulary = (0..VOCAB).map(|token| Value::String(token.to_string())).collect();
    let metadata = [
        ("general.architecture", Value::String("qwen2".into())),
        ("qwen2.block_count", number(LAYERS)),
        ("qwen2.embedding_length", number(HIDDEN)),
        ("qwen2.feed_forward_length", number(FFN)),
        ("qwen2.context_length", number(64)),
        ("qwen2.attention.head_count", number(4)),
        ("qwen2.attention.head_count_kv", number(2)),
        ("qwen2.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("qwen2.rope.freq_base", Value::F32(1e6)),
        ("tokenizer.ggml.tokens", Value::Array(vocabulary)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{name}.gguf"));
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let named: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &named).unwrap();

    let (weights, metadata) = Weights::open_gguf(&path).unwrap();
    let Spec::Decoder(spec) = Spec::from_gguf(&metadata, &weights).unwrap() else { panic!("no decoder") };
    let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    let tokens: Vec<u32> = (0..40).map(|i| (i * i * 7 + 3) % VOCAB as u32).collect();
    let rows: Vec<u32> = (0..tokens.len() as u32).collect();
    let sequences = [PagedSequence { rows: 0..tokens.len(), past: 0, pages: &[0, 1] }];
    assert!(tokens.len() <= 2 * PAGE_TOKENS);
    let cache = KvCache::new(&spec, 2, KvPrecision::F32, &Device::Cpu).unwrap();
    let (tokens, positions) = (&tokens[..], &rows[..]);
    let batch = Batch { tokens, positions, slots: &rows, sequences: &sequences, logit_rows: &rows, wanted: &[] };
    decoder.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap()
}

/// Formats whose products are of `f32` give the values of `f32` weights; in the others activations are int8, which costs each of
/// the products that a token goes through about 0.4 % of its length, or bf16 (bf16 weights under native numerics), which costs
/// 0.2 %.
#[test]
fn every_format_gives_what_its_numbers_give_in_f32() {
    use GgmlDType::{BF16, F16, F32, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
    for format in [F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4K, Q5K, Q6K] {
        let name = format!("{format:?}");
        let (mut kept, mut widened) = (Vec::new(), Vec::new());
        for (index, (tensor, shape)) in tensors().into_iter().enumerate() {
            let values = values(index, &tensor, &shape);
            let stored = QTensor::quantize(&values, if shape.len() == 2 { format } else { F32 }).unwrap();
            let wide = QTensor::quantize(&stored.dequantize(&Device::Cpu).unwrap(), F32).unwrap();
            kept.push((tensor.clone(), stored));
            widened.push((tensor, wide));
        }
        let (got, want) = (logits(&name, &kept), logits(&format!("{name}-f32"), &widened));
        let bound = match format {
            BF16 if active_isa().numerics() == Numerics::Native => 0.015,
            F32 | F16 | BF16 => 1e-6,
            _ => 0.03,
        };
        let mut worst = 0f64;
        for (got, want) in got.iter().zip(&want) {
            let length = |row: &mut dyn Iterator<Item = f32>| row.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let apart = length(&mut got.iter().zip(want).map(|(a, b)| a - b));
            worst = worst.max(apart / length(&mut want.iter().copied()));
        }
        println!("{name}: {worst:e}");
        assert!(worst <= bound, "{name}: {worst}");
    }
}
