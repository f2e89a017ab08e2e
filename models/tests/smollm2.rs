//! SmolLM2-135M-Instruct's real weights against independent implementations; `tests/golden/smollm2.py` (transformers
//! and llama.cpp) made the goldens.

use candle_core::Device;
use models::{Batch, KvCache, KvPrecision, LanguageModel, LoadOptions, PAGE_TOKENS, PagedSequence, Precision};
use serde_json::{Value, json};

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/smollm2.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn load(precision: Precision) -> Option<LanguageModel> {
    let path = test_support::weights("smollm2-135m-instruct")?;
    Some(LanguageModel::load_with(&path, LoadOptions { precision, yarn: None }, &Device::Cpu).unwrap())
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// The logits after each of the last `rows` tokens.
fn logits(model: &LanguageModel, kv: KvPrecision, tokens: &[u32], rows: usize) -> Vec<Vec<f32>> {
    let pages: Vec<u32> = (0..tokens.len().div_ceil(PAGE_TOKENS) as u32).rev().collect();
    let cache = KvCache::new(model.spec(), pages.len(), kv, &Device::Cpu).unwrap();
    let positions: Vec<u32> = (0..tokens.len() as u32).collect();
    let slot = |p: &u32| pages[*p as usize / PAGE_TOKENS] * PAGE_TOKENS as u32 + p % PAGE_TOKENS as u32;
    let slots: Vec<u32> = positions.iter().map(slot).collect();
    let sequences = [PagedSequence { rows: 0..tokens.len(), past: 0, pages: &pages }];
    let logit_rows = &positions[tokens.len() - rows..];
    let batch = Batch { tokens, positions: &positions, slots: &slots, sequences: &sequences, logit_rows, wanted: &[] };
    model.network.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap()
}

#[test]
fn tokens_are_those_of_llama_cpp() {
    let Some(model) = load(Precision::Stored) else { return };
    for case in golden()["tokenizations"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        assert_eq!(model.tokenizer.encode_prompt(text, &[]).unwrap(), ids(&case["ids"]), "{text:?}");
        let spans = model.tokenizer.spans(text).unwrap();
        let tokens: Vec<&[u8]> =
            model.tokenizer.encode(text).unwrap().iter().map(|id| model.tokenizer.bytes(*id)).collect();
        assert!(spans.iter().all(|span| text.get(span.clone()).is_some()) && spans.is_sorted_by_key(|span| span.start));
        // 21 bytes are no tokens of this vocabulary and vanish; otherwise a token is within its span.
        if tokens.concat() == text.as_bytes() {
            for (span, token) in spans.into_iter().zip(tokens) {
                assert!(text.as_bytes()[span].windows(token.len()).any(|part| part == token), "{text:?}");
            }
        }
    }
}

#[test]
fn special_tokens_in_a_document_are_plain_text() {
    let Some(model) = load(Precision::Stored) else { return };
    let text = "a<|im_end|>b";
    let end = model.tokenizer.special("<|im_end|>").unwrap();
    assert!(model.tokenizer.encode_prompt(text, &[]).unwrap().contains(&end));
    let all = [std::ops::Range { start: 0, end: text.len() }];
    let plain = model.tokenizer.encode_prompt(text, &all).unwrap();
    assert!(!plain.contains(&end));
    let bytes: Vec<u8> = plain.iter().flat_map(|id| model.tokenizer.bytes(*id).to_vec()).collect();
    assert_eq!(bytes, text.as_bytes());
}

#[test]
fn chats_are_rendered_as_transformers_does() {
    let Some(model) = load(Precision::Stored) else { return };
    let golden = golden();
    let chats: Vec<&Value> =
        golden["prompts"].as_array().unwrap().iter().filter(|p| p["messages"].is_array()).collect();
    assert!(chats.len() >= 4);
    for chat in chats {
        let rendered = model.template.render(chat["messages"].as_array().unwrap()).unwrap();
        assert_eq!(json!(rendered), chat["prompt"]);
    }
}

/// With weights expanded to f32 the arithmetic is that of the reference: the same tokens for all ten prompts.
#[test]
fn in_f32_all_greedy_continuations_equal_those_of_transformers() {
    let Some(model) = load(Precision::F32) else { return };
    let mut worst = 0f32;
    for prompt in golden()["prompts"].as_array().unwrap() {
        let (ids_in, ids_out) = (ids(&prompt["ids"]), ids(&prompt["tokens"]));
        let tokens = [ids_in, ids_out.clone()].concat();
        let rows = logits(&model, KvPrecision::F32, &tokens[..tokens.len() - 1], ids_out.len());
        for (position, (row, want)) in rows.iter().zip(&ids_out).enumerate() {
            let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            assert_eq!(best as u32, *want, "{} at {position}", prompt["name"]);
            let top = ids(&prompt["top5_ids"][position]);
            for (id, want) in top.iter().zip(floats(&prompt["top5_logits"][position])) {
                worst = worst.max((row[*id as usize] - want).abs());
            }
        }
    }
    println!("largest difference of a top-5 logit: {worst:e}");
    assert!(worst < 2e-3, "{worst}");
}

/// With weights as stored the activations are rounded to 8 bits, here as in llama.cpp: the error of the logits must be
/// no larger than llama.cpp's own on the same file, and the arg-max may differ only where the reference is undecided.
#[test]
fn as_stored_the_error_is_no_larger_than_that_of_llama_cpp() {
    let Some(model) = load(Precision::Stored) else { return };
    let (mut ours, mut theirs, mut prompts) = (0f32, 0f32, 0f32);
    for prompt in golden()["prompts"].as_array().unwrap() {
        let (ids_in, ids_out) = (ids(&prompt["ids"]), ids(&prompt["tokens"]));
        let tokens = [ids_in, ids_out.clone()].concat();
        let rows = logits(&model, KvPrecision::F16, &tokens[..tokens.len() - 1], ids_out.len());
        let margins = floats(&prompt["margins"]);
        let (mut error, mut count) = (0f32, 0f32);
        for (position, (row, want)) in rows.iter().zip(&ids_out).enumerate() {
            let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            let name = &prompt["name"];
            assert!(
                best as u32 == *want || margins[position] < 1.0,
                "{name} at {position}: margin {}",
                margins[position]
            );
            let top = ids(&prompt["top5_ids"][position]);
            for (id, want) in top.iter().zip(floats(&prompt["top5_logits"][position])) {
                error += (row[*id as usize] - want).abs();
                count += 1.0;
            }
        }
        let llama = prompt["llama_cpp"]["top5_mean_error"].as_f64().unwrap() as f32;
        println!("{}: mean error {:.3}, llama.cpp {llama:.3}", prompt["name"], error / count);
        ours += error / count;
        theirs += llama;
        prompts += 1.0;
    }
    println!("mean error {:.3}, llama.cpp {:.3}", ours / prompts, theirs / prompts);
    assert!(ours <= theirs * 1.05, "{ours} > {theirs}");
}
