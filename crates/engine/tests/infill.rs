//! Texts with a place in their middle that the model fills in.

use calls::{Agent, Call, CallError, Caller, ModelInfo, Prompt};
use engine::{Config, Engine};
use models::Tokenizer;
use serde_json::Value;

use crate::tiny::{model, run, start};

fn engine(name: &str, change: impl Fn(String) -> String) -> Engine {
    start(model(name, change), Config { kv_tokens: 2048, ..Config::default() })
}

fn infill(before: &str, behind: &str) -> Call {
    Call::new(Agent::Responder, "test", Prompt::infill(before, behind), 8)
}

/// The golden tokenizer with the tokens of Qwen2.5 in free rows of the vocabulary.
fn with_tokens(tokenizer: String) -> String {
    let mut tokenizer: Value = serde_json::from_str(&tokenizer).unwrap();
    let added = tokenizer["added_tokens"].as_array_mut().unwrap();
    for name in ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"] {
        let mut token = added[0].clone();
        (token["content"], token["id"]) = (name.into(), (256 + added.len()).into());
        added.push(token);
    }
    tokenizer.to_string()
}

#[test]
fn the_place_to_fill_is_marked_with_the_tokens_of_the_model() {
    let engine = engine("infill", with_tokens);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("infill/tokenizer.json");
    let tokenizer = Tokenizer::from_file(&path).unwrap();
    let [prefix, suffix, middle] =
        ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"].map(|name| tokenizer.special(name).unwrap());
    // A marker in the text is text.
    let (before, behind) = ("def add(a, b):\n    ", "\n\nprint(<|fim_middle|>)");
    let ids = engine.prompt_ids(&infill(before, behind)).unwrap();
    assert_eq!(ids[0], prefix);
    let at = |token: u32| ids.iter().position(|id| *id == token).unwrap();
    assert_eq!((at(middle), ids.iter().filter(|id| **id == middle).count()), (ids.len() - 1, 1));
    let text = |ids: &[u32]| -> Vec<u8> { ids.iter().flat_map(|id| tokenizer.bytes(*id).to_vec()).collect() };
    assert_eq!(text(&ids[1..at(suffix)]), before.as_bytes());
    assert_eq!(text(&ids[at(suffix) + 1..at(middle)]), behind.as_bytes());
    assert!(run(engine.call(infill(before, behind))).unwrap().usage.output_tokens > 0);
    assert!(engine.details(Agent::Responder).unwrap().infills);
}

#[test]
fn a_model_without_these_tokens_refuses_and_says_which_it_lacks() {
    let engine = engine("no-infill", |tokenizer| tokenizer);
    let refused = run(engine.call(infill("a", "b"))).unwrap_err();
    assert!(matches!(refused, CallError::Infill { .. }));
    assert_eq!(
        refused.to_string(),
        "the model tiny cannot fill in the middle of a text: its tokenizer has no <|fim_prefix|>"
    );
    assert!(!engine.details(Agent::Responder).unwrap().infills);
}
