//! The promise of bits on the processor: a token's logits do not depend on how its prompt was cut into chunks, on whether its
//! prefix was computed or copied, or on what else is in the batch; for dense and for quantised weights.

use std::path::PathBuf;

use candle_core::Device;
use models::{
    Backend, Batch, Decoder, DecoderNetwork, DecoderSpec, Kernels, KvCache, KvPrecision, LanguageModel, PAGE_TOKENS,
    PagedSequence, Part, Precision, Quantisation, Spec, SplitDecoder, Weights,
};

/// Tokens of a sequence that are computed now, those before them, and its pages.
type Rows<'a> = (&'a [u32], usize, &'a [u32]);

/// The bits of the logits of every token of every part.
fn forward(decoder: &dyn DecoderNetwork, cache: &KvCache, parts: &[Rows<'_>]) -> Vec<Vec<Vec<u32>>> {
    let (mut tokens, mut positions, mut slots, mut sequences) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (part, past, pages) in parts {
        sequences.push(PagedSequence { rows: tokens.len()..tokens.len() + part.len(), past: *past, pages });
        tokens.extend_from_slice(part);
        for position in *past..past + part.len() {
            positions.push(position as u32);
            slots.push(pages[position / PAGE_TOKENS] * PAGE_TOKENS as u32 + (position % PAGE_TOKENS) as u32);
        }
    }
    let rows: Vec<u32> = (0..tokens.len() as u32).collect();
    let (tokens, positions, slots) = (&tokens, &positions, &slots);
    let batch = Batch { tokens, positions, slots, sequences: &sequences, logit_rows: &rows, wanted: &[] };
    let logits = decoder.forward(batch, cache).unwrap().logits.to_vec2::<f32>().unwrap();
    let bits: Vec<Vec<u32>> = logits.into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect();
    sequences.iter().map(|sequence| bits[sequence.rows.clone()].to_vec()).collect()
}

fn check(name: &str, decoder: &dyn DecoderNetwork, tokens: &[u32], precision: KvPrecision) {
    let cache = || KvCache::new(decoder.spec(), 24, precision, &Device::Cpu).unwrap();
    let (pages, len) = (&[7, 2, 11, 0][..], tokens.len());
    assert!((2 * PAGE_TOKENS + 2..=4 * PAGE_TOKENS).contains(&len), "{name}: {len} tokens");
    let alone = forward(decoder, &cache(), &[(tokens, 0, pages)]).remove(0);

    for cuts in [vec![1, 2, 3, 40], vec![33], vec![5, 36], (1..len).collect()] {
        let (cache, mut past, mut chunked) = (cache(), 0, Vec::new());
        for end in cuts.into_iter().chain([len]) {
            chunked.extend(forward(decoder, &cache, &[(&tokens[past..end], past, pages)]).remove(0));
            past = end;
        }
        assert!(chunked == alone, "{name}: chunks change bits");
    }

    // A whole page of the prefix is shared, the next is copied and written on.
    let (warm, common) = (cache(), PAGE_TOKENS + 9);
    let other: Vec<u32> = tokens[..common].iter().chain(&tokens[..20]).copied().collect();
    forward(decoder, &warm, &[(&other, 0, &[3, 9, 15])]);
    warm.copy_page(9, 4).unwrap();
    let rest = forward(decoder, &warm, &[(&tokens[common..], common, &[3, 4, 16, 17])]).remove(0);
    assert!(rest == alone[common..], "{name}: a prefix that was found changes bits");

    // One that reads its prompt, one in the middle, one that writes; each between the others.
    let reversed: Vec<u32> = tokens.iter().rev().copied().collect();
    let company = cache();
    forward(decoder, &company, &[(&tokens[..40], 0, pages), (&reversed[..len - 1], 0, &[20, 21, 22, 23])]);
    let parts: [Rows<'_>; 3] =
        [(&reversed[len - 1..], len - 1, &[20, 21, 22, 23]), (&tokens[40..], 40, pages), (&reversed[..50], 0, &[5, 6])];
    let together = forward(decoder, &company, &parts);
    assert!(together[1] == alone[40..], "{name}: company changes bits");
}

fn open(name: &str, precision: Precision) -> (DecoderSpec, Weights) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder").join(name);
    let config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    (spec, Weights::open_folder(&folder).unwrap().in_precision(precision))
}

fn golden(name: &str, precision: Precision) -> Decoder {
    let (spec, weights) = open(name, precision);
    Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap()
}

/// The parts of a network on logical devices: the first has no layers, or only the token table of an untied network; the last has
/// the head.
fn parts(spec: &DecoderSpec) -> Vec<Part> {
    let middle = spec.layers / 2;
    let part = |layers, table, head| Part { layers, table, head };
    vec![
        part(0..0, !spec.tied, false),
        part(0..middle, false, false),
        part(middle..spec.layers - 1, false, false),
        part(spec.layers - 1..spec.layers, spec.tied, true),
    ]
}

#[test]
fn a_split_network_gives_the_bits_of_the_whole_one() {
    for name in ["llama", "qwen2_tied", "qwen2_window", "qwen3", "qwen3_moe", "gemma3"] {
        for precision in [Precision::Stored, Precision::Quantised(Quantisation::Q8_0)] {
            let (spec, weights) = open(name, precision);
            let whole = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
            let backend = Kernels { device: Device::Cpu };
            let parts: Vec<_> = parts(&spec).into_iter().map(|part| (&backend as &dyn Backend, part)).collect();
            let split = SplitDecoder::load(&spec, &weights, &parts).unwrap();
            assert_eq!(
                split.arithmetic(),
                DecoderNetwork::arithmetic(&whole),
                "their keys and values are interchangeable"
            );
            let tokens: Vec<u32> = (0..70).map(|i| (i * i * 31 + 7 * i) % spec.vocab as u32).collect();
            check(&format!("{name} in parts, {precision:?}"), &split, &tokens, KvPrecision::F16);
            let pages = &[7, 2, 11, 0][..];
            let bits = |network: &dyn DecoderNetwork| {
                let cache = network.kv_cache(24, KvPrecision::F16).unwrap();
                let first = forward(network, &cache, &[(&tokens[..50], 0, pages)]);
                (first, forward(network, &cache, &[(&tokens[50..], 50, pages)]))
            };
            assert!(bits(&split) == bits(&whole), "{name}, {precision:?}");
        }
    }
}

#[test]
fn parts_that_are_not_the_whole_network_are_refused() {
    let (spec, weights) = open("llama", Precision::Stored);
    let backend = Kernels { device: Device::Cpu };
    let load = |spec: &DecoderSpec, parts: &[(std::ops::Range<usize>, bool, bool)]| {
        let part = |(layers, table, head): &(std::ops::Range<usize>, bool, bool)| {
            (&backend as &dyn Backend, Part { layers: layers.clone(), table: *table, head: *head })
        };
        SplitDecoder::load(spec, &weights, &parts.iter().map(part).collect::<Vec<_>>())
    };
    assert!(load(&spec, &[(0..1, true, false), (1..2, false, true)]).is_ok());
    for (wrong, says) in [
        (&[(0..1, true, true)][..], "parts of 1 layers for a network of 2"),
        (&[(0..1, true, false), (0..2, false, true)], "layers 0..2 after layer 1"),
        (&[(1..2, true, true)], "layers 1..2 after layer 0"),
        (&[(0..2, true, false)], "with one token table and head"),
        (&[(0..1, true, true), (1..2, true, false)], "with one token table and head"),
        (&[], "parts of 0 layers"),
    ] {
        let error = load(&spec, wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{wrong:?}: {error}");
    }
    let tied = DecoderSpec { tied: true, ..spec.clone() };
    assert!(load(&tied, &[(0..1, true, false), (1..2, false, true)]).is_err(), "a tied table is the head");

    let table = Part { layers: 0..0, table: true, head: false };
    let part = Decoder::load_part(&spec, &weights, &table, spec.context, &Device::Cpu).unwrap();
    let cache = KvCache::new(&spec, 1, KvPrecision::F16, &Device::Cpu).unwrap();
    let batch = Batch { tokens: &[1], positions: &[0], slots: &[0], sequences: &[], logit_rows: &[0], wanted: &[] };
    assert_eq!(
        part.forward(batch, &cache).unwrap_err().to_string(),
        "this part of the network has no token table and head"
    );
}

#[test]
fn dense_and_quantised_weights_of_small_networks() {
    for name in ["llama", "qwen2_tied", "qwen2_window", "qwen3", "gemma3"] {
        for precision in [Precision::Stored, Precision::Quantised(Quantisation::Q8_0)] {
            let decoder = golden(name, precision);
            let tokens: Vec<u32> = (0..70).map(|i| (i * i * 31 + 7 * i) % decoder.spec().vocab as u32).collect();
            for kv in [KvPrecision::F32, KvPrecision::F16, KvPrecision::Bf16, KvPrecision::Q8_0] {
                let dim = decoder.spec().heads.dim;
                if kv == KvPrecision::Q8_0 && !dim.is_multiple_of(32) {
                    let refused = KvCache::new(decoder.spec(), 1, kv, &Device::Cpu).unwrap_err().to_string();
                    assert_eq!(refused, format!("a KV cache in q8_0 for heads of {dim} dimensions is not supported"));
                    continue;
                }
                check(&format!("{name}, {precision:?}, {kv:?}"), &decoder, &tokens, kv);
            }
        }
    }
}

#[test]
fn four_bit_weights_of_smollm2() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let model = LanguageModel::load(&path, &Device::Cpu).unwrap();
    let tokens: Vec<u32> = (0..70).map(|i| 1000 + i * 613 % 40_000).collect();
    check("SmolLM2, Q4_1", &*model.network, &tokens, KvPrecision::F16);
}
