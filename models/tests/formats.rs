//! Every format of weights that GGUF files come in: the network gives what the same numbers in `f32` give.

use std::fs;
use std::path::PathBuf;

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};
use half::f16;
use kernels::matmul::Format;
use models::{
    Batch, ComputedBy, Decoder, EmbeddingModel, Footprint, KvCache, KvPrecision, LoadOptions, Numerics, PAGE_TOKENS,
    PagedSequence, Precision, Spec, WeightBytes, Weights, active_isa,
};

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

/// A tensor as a file holds it.
struct Stored {
    name: String,
    shape: Vec<usize>,
    format: Format,
    bytes: Vec<u8>,
}

/// Random values, in blocks of `format` where it is a matrix: matrices that keep lengths, norms about 1.
fn stored(index: usize, name: String, shape: Vec<usize>, format: Format) -> Stored {
    let scale = if shape.len() == 2 { (3.0 / shape[1] as f32).sqrt() } else { 0.2 };
    let about = if name.contains("norm") { 1.0 } else { 0.0 };
    let len: usize = shape.iter().product();
    let values = (0..len).map(|i| about + scale * noise(1_000_003 * index + i)).collect();
    let format = if shape.len() == 2 { format } else { Format::F32 };
    let bytes = match format.candle_type() {
        Some(kind) => {
            let values = Tensor::from_vec(values, len, &Device::Cpu).unwrap();
            QTensor::quantize(&values, kind).unwrap().data().unwrap().into_owned()
        }
        None => random_blocks(format, &values, scale / 3f32.sqrt()),
    };
    Stored { name, shape, format, bytes }
}

/// Blocks of an IQ4 format: bits of the values, and scales for a standard deviation. The entries of the table deviate by 74.
fn random_blocks(format: Format, values: &[f32], deviation: f32) -> Vec<u8> {
    let bytes = values.len() / format.block_len() * format.block_bytes();
    let mut bytes: Vec<u8> = values[..bytes].iter().map(|x| (x.to_bits() >> 8) as u8).collect();
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        let scale = if format == Format::Iq4Nl { deviation / 74.0 } else { deviation / (8.0 * 74.0) };
        block[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
        if format == Format::Iq4Xs {
            // Eight scales of 8, which is stored as 40.
            block[2..4].fill(0xaa);
            block[4..8].fill(0x88);
        }
    }
    bytes
}

/// The same values in `f32`.
fn widened(tensor: &Stored) -> Stored {
    let mut values = vec![0f32; tensor.shape.iter().product()];
    tensor.format.dequantise(&tensor.bytes, &mut values);
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Stored { name: tensor.name.clone(), shape: tensor.shape.clone(), format: Format::F32, bytes }
}

/// ggml's number of a format.
fn number(format: Format) -> u32 {
    match format {
        Format::F32 => 0,
        Format::F16 => 1,
        Format::Q4_0 => 2,
        Format::Q4_1 => 3,
        Format::Q5_0 => 6,
        Format::Q5_1 => 7,
        Format::Q8_0 => 8,
        Format::Q2K => 10,
        Format::Q3K => 11,
        Format::Q4K => 12,
        Format::Q5K => 13,
        Format::Q6K => 14,
        Format::Iq4Nl => 20,
        Format::Iq4Xs => 23,
        Format::Bf16 => 30,
    }
}

/// A GGUF file of these tensors. candle writes none with types that it does not know.
fn gguf(tensors: &[Stored]) -> Vec<u8> {
    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }
    let numbers = [
        ("block_count", LAYERS),
        ("embedding_length", HIDDEN),
        ("feed_forward_length", FFN),
        ("context_length", 64),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
    ];
    let floats = [("attention.layer_norm_rms_epsilon", 1e-6_f32), ("rope.freq_base", 1e6)];
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((2 + numbers.len() as u64 + floats.len() as u64).to_le_bytes());
    text(&mut out, "general.architecture");
    out.extend(8_u32.to_le_bytes());
    text(&mut out, "qwen2");
    text(&mut out, "tokenizer.ggml.tokens");
    out.extend([9_u32, 8].map(u32::to_le_bytes).as_flattened());
    out.extend((VOCAB as u64).to_le_bytes());
    (0..VOCAB).for_each(|token| text(&mut out, &token.to_string()));
    for (key, number) in numbers {
        text(&mut out, &format!("qwen2.{key}"));
        out.extend([4, number as u32].map(u32::to_le_bytes).as_flattened());
    }
    for (key, float) in floats {
        text(&mut out, &format!("qwen2.{key}"));
        out.extend(6_u32.to_le_bytes());
        out.extend(float.to_le_bytes());
    }
    let mut data: Vec<u8> = Vec::new();
    for Stored { name, shape, format, bytes } in tensors {
        text(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        shape.iter().rev().for_each(|dim| out.extend((*dim as u64).to_le_bytes()));
        out.extend(number(*format).to_le_bytes());
        data.resize(data.len().next_multiple_of(32), 0);
        out.extend((data.len() as u64).to_le_bytes());
        data.extend(bytes);
    }
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend(data);
    out
}

/// The logits of a prompt by a GGUF file of these tensors.
fn logits(tensors: &[Stored]) -> Vec<Vec<f32>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, gguf(tensors)).unwrap();
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

#[test]
fn weights_are_counted_as_each_backend_holds_them() {
    for format in Format::ALL {
        let tensors = tensors().into_iter().enumerate();
        let tensors: Vec<Stored> = tensors.map(|(index, (name, shape))| stored(index, name, shape, format)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        fs::write(&path, gguf(&tensors)).unwrap();
        let footprint = Footprint::of(&path, LoadOptions::default()).unwrap();
        let check = |footprint: Footprint, matrix_bytes: &dyn Fn(&Stored, u64) -> u64| {
            let bytes = |tensor: &Stored| {
                let values = tensor.shape.iter().product::<usize>() as u64;
                if tensor.shape.len() == 1 { 4 * values } else { matrix_bytes(tensor, values) }
            };
            let WeightBytes { all, layer, table, head } = footprint.weights;
            assert_eq!(all, tensors.iter().map(bytes).sum::<u64>(), "{format:?}");
            let of = |name: &str| bytes(tensors.iter().find(|tensor| tensor.name == name).unwrap());
            assert_eq!((table, head), (of("token_embd.weight"), of("output.weight")), "{format:?}");
            // Their sum lacks the norm before the output matrix only.
            assert_eq!(LAYERS as u64 * layer + table + head, all - 4 * HIDDEN as u64, "{format:?}");
        };
        let is_dense = matches!(format, Format::F32 | Format::F16 | Format::Bf16);
        // The IQ4 formats become Q8_0 where nothing multiplies them: 34 bytes for 32 values.
        let as_blocks = |tensor: &Stored, values: u64| match format {
            Format::Iq4Nl | Format::Iq4Xs => values / 32 * 34,
            _ => tensor.bytes.len() as u64,
        };
        check(footprint, &|tensor, _| tensor.bytes.len() as u64);
        check(footprint.on_gpu(), &|tensor, values| {
            if is_dense || tensor.name == "token_embd.weight" { 2 * values } else { as_blocks(tensor, values) }
        });
        let portable = footprint.computed_by(ComputedBy::Portable);
        for portable in [portable, portable.on_gpu()] {
            check(portable, &|tensor, values| if is_dense { 4 * values } else { as_blocks(tensor, values) });
        }
        check(footprint.computed_by(ComputedBy::PortableOnMetal).on_gpu(), &as_blocks);
    }
}

#[test]
fn the_weights_of_an_embedding_model_are_counted_as_each_backend_holds_them() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder/bert");
    let tensors = candle_core::safetensors::load(folder.join("model.safetensors"), &Device::Cpu).unwrap();
    let bytes = |matrix_bytes: usize| -> u64 {
        let of = |(name, tensor): (&String, &Tensor)| {
            let is_matrix = tensor.rank() == 2 && !name.contains("position_embed") && !name.contains("token_type");
            tensor.elem_count() * if is_matrix { matrix_bytes } else { 4 }
        };
        tensors.iter().filter(|(_, tensor)| tensor.dtype() == DType::F32).map(of).sum::<usize>() as u64
    };
    let counted = |by, is_gpu| EmbeddingModel::weight_bytes(&folder, Precision::Stored, by, is_gpu).unwrap();
    assert_eq!(counted(ComputedBy::Kernels, false), bytes(4));
    assert_eq!(counted(ComputedBy::Kernels, true), bytes(2), "the kernels for GPUs multiply in bf16");
    assert_eq!((counted(ComputedBy::Portable, false), counted(ComputedBy::Portable, true)), (bytes(4), bytes(4)));
}

/// Formats whose products are of `f32` give the values of `f32` weights; in the others activations are int8, which costs each of
/// the products that a token goes through about 0.4 % of its length, or bf16 (bf16 weights under native numerics), which costs
/// 0.2 %.
#[test]
fn every_format_gives_what_its_numbers_give_in_f32() {
    for format in Format::ALL {
        let tensors = tensors().into_iter().enumerate();
        let kept: Vec<Stored> = tensors.map(|(index, (name, shape))| stored(index, name, shape, format)).collect();
        let wide: Vec<Stored> = kept.iter().map(widened).collect();
        let (got, want) = (logits(&kept), logits(&wide));
        let bound = match format {
            Format::Bf16 if active_isa().numerics() != Numerics::Portable => 0.015,
            Format::F32 | Format::F16 | Format::Bf16 => 1e-6,
            _ => 0.03,
        };
        let mut worst = 0f64;
        for (got, want) in got.iter().zip(&want) {
            let length = |row: &mut dyn Iterator<Item = f32>| row.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let apart = length(&mut got.iter().zip(want).map(|(a, b)| a - b));
            worst = worst.max(apart / length(&mut want.iter().copied()));
        }
        println!("{format:?}: {worst:e}");
        assert!(worst <= bound, "{format:?}: {worst}");
    }
}
