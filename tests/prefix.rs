//! What calls have in common is computed once.

use std::path::Path;

use candle_core::Device;
use models::{LanguageModel, Tokenizer};
use serde_json::Value;

use crate::home::{LANGUAGE_MODEL, calls};
use crate::story::memorised;
use crate::support;

#[test]
fn cached_tokens_are_the_longest_prefix_shared_with_an_earlier_call() {
    let (Some(home), Some(weights)) = (memorised(), support::weights(LANGUAGE_MODEL)) else { return };
    let tokenizer = tokenizer(&weights);
    let trace = home.trace("memorised.jsonl");
    let calls = calls(&trace, "gam.memorize");
    assert!(calls.len() >= 3, "the memo grows for a while");
    let prompts: Vec<Vec<u32>> = calls.iter().map(|call| tokens(call, &tokenizer)).collect();
    for (i, call) in calls.iter().enumerate() {
        let shared = prompts[..i].iter().map(|earlier| common_prefix(earlier, &prompts[i])).max().unwrap_or(0);
        assert_eq!(call["prompt_tokens"], prompts[i].len(), "call {i}");
        assert_eq!(call["cached_tokens"], shared, "call {i}");
    }
    let shared = |i: usize| calls[i]["cached_tokens"].as_u64().unwrap();
    assert!(
        shared(0) == 0 && shared(1) > 0 && shared(2) > shared(1),
        "the memo so far is shared, not only instructions"
    );
}

fn tokenizer(weights: &Path) -> Tokenizer {
    LanguageModel::load(weights, &Device::Cpu).unwrap().tokenizer
}

fn tokens(call: &Value, tokenizer: &Tokenizer) -> Vec<u32> {
    tokenizer.encode_prompt(call["prompt"].as_str().unwrap(), &[]).unwrap()
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
