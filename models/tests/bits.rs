//! The promise of bits on the processor: a token's logits do not depend on how its prompt was cut into chunks, on whether its
//! prefix was computed or copied, or on what else is in the batch; for dense and for quantised weights.

use std::path::PathBuf;

use candle_core::Device;
use models::{
    Batch, Decoder, DecoderNetwork, KvCache, KvPrecision, LanguageModel, PAGE_TOKENS, PagedSequence, Precision,
    Quantisation, Spec, Weights,
};

/// Tokens of a sequence that are computed now, those before them, and its pages.
type Part<'a> = (&'a [u32], usize, &'a [u32]);

/// The bits of the logits of every token of every part.
fn forward(decoder: &dyn DecoderNetwork, cache: &KvCache, parts: &[Part<'_>]) -> Vec<Vec<Vec<u32>>> {
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
    let parts: [Part<'_>; 3] =
        [(&reversed[len - 1..], len - 1, &[20, 21, 22, 23]), (&tokens[40..], 40, pages), (&reversed[..50], 0, &[5, 6])];
    let together = forward(decoder, &company, &parts);
    assert!(together[1] == alone[40..], "{name}: company changes bits");
}

fn golden(name: &str, precision: Precision) -> Decoder {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder").join(name);
    let config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    let weights = Weights::open_folder(&folder).unwrap().in_precision(precision);
    Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap()
}

#[test]
fn dense_and_quantised_weights_of_small_networks() {
    for name in ["llama", "qwen2_tied", "qwen2_window", "qwen3", "gemma3"] {
        for precision in [Precision::Stored, Precision::Quantised(Quantisation::Q8_0)] {
            let decoder = golden(name, precision);
            let tokens: Vec<u32> = (0..70).map(|i| (i * i * 31 + 7 * i) % decoder.spec().vocab as u32).collect();
            for kv in [KvPrecision::F32, KvPrecision::F16, KvPrecision::Q8_0] {
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
