//! Published token ids and chat renderings of Qwen2.5 and XLM-R, with their own tokenizers where those are at hand.

use std::path::PathBuf;

use models::{ChatTemplate, EncoderTokenizer, Tokenizer};
use serde_json::Value;

/// A file of the evaluation data, or `None` (with the reason printed).
fn data(name: &str) -> Option<PathBuf> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let path = std::env::var_os("MEMLOCAL_DATA").map_or_else(default, PathBuf::from).join(name);
    if !path.exists() {
        println!("skipped, no {}", path.display());
        return None;
    }
    Some(path)
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn qwen_chats_are_rendered_and_tokenised_to_the_byte() {
    let Some(tokenizer) = data("tokenizers/qwen2_5_tokenizer.json") else { return };
    let Some(config) = data("tokenizers/qwen2_5_tokenizer_config.json") else { return };
    let Some(references) = data("parity/qwen2_5_chat_template_refs.json") else { return };
    let tokenizer = Tokenizer::from_file(&tokenizer).unwrap();
    let template = ChatTemplate::new(read(config)["chat_template"].as_str().unwrap()).unwrap();
    let mut checked = 0;
    for case in read(references).as_array().unwrap() {
        let opens_turn = case["add_generation_prompt"].as_bool().unwrap();
        let tools = Some(&case["tools"]).filter(|tools| !tools.is_null());
        let rendered = template.render_with(case["messages"].as_array().unwrap(), tools, opens_turn).unwrap();
        assert_eq!(rendered, case["rendered"].as_str().unwrap());
        assert_eq!(tokenizer.encode_prompt(&rendered, &[]).unwrap(), ids(&case["ids"]));
        checked += 1;
    }
    println!("{checked} chats");
    assert!(checked > 5);
}

#[test]
fn qwen_tokens() {
    let Some(tokenizer) = data("tokenizers/qwen2_5_tokenizer.json") else { return };
    let Some(references) = data("parity/qwen2_5_token_refs.json") else { return };
    let tokenizer = Tokenizer::from_file(&tokenizer).unwrap();
    let cases = pairs(&read(references));
    assert!(!cases.is_empty());
    for (text, want) in cases {
        assert_eq!(tokenizer.encode_prompt(&text, &[]).unwrap(), want, "{text:?}");
    }
}

#[test]
fn xlm_roberta_tokens() {
    let Some(tokenizer) = data("tokenizers/xlmr_bge_m3_tokenizer.json") else { return };
    let Some(references) = data("parity/xlmr_token_refs.json") else { return };
    let tokenizer = EncoderTokenizer::from_file(&tokenizer).unwrap();
    let cases = pairs(&read(references));
    assert!(!cases.is_empty());
    for (text, want) in cases {
        assert_eq!(tokenizer.encode(&text).unwrap(), want, "{text:?}");
    }
}

/// Every `{"text": .., "ids": [..]}` anywhere in a document.
fn pairs(value: &Value) -> Vec<(String, Vec<u32>)> {
    match value {
        Value::Object(object) => match (object.get("text").and_then(Value::as_str), object.get("ids")) {
            (Some(text), Some(list)) if list.is_array() => vec![(text.to_owned(), ids(list))],
            _ => object.values().flat_map(pairs).collect(),
        },
        Value::Array(list) => list.iter().flat_map(pairs).collect(),
        _ => Vec::new(),
    }
}
