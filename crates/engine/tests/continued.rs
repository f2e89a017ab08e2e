//! Replies that continue a given text. Every byte is a token.

use std::path::Path;

use calls::{Call, CallError, Caller, Finish, Limits, OutputFormat, Sampling};
use engine::{Config, Engine};
use models::Tokenizer;
use serde_json::json;

use crate::tiny::{ask, model, run, start};

fn engine(name: &str) -> Engine {
    start(model(name, |tokenizer| tokenizer), Config { kv_tokens: 2048, ..Config::default() })
}

/// A call whose reply has lower-case letters only and continues this text.
fn continues(text: &str, max_output_tokens: usize) -> Call {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
    let tokenizer = Tokenizer::from_file(&golden).unwrap();
    let token = |letter: u8| (0..256).find(|token| *tokenizer.bytes(*token) == [letter]).unwrap();
    let sampling =
        Sampling { logit_bias: (b'a'..=b'z').map(|letter| (token(letter), 1000.0)).collect(), ..Sampling::GREEDY };
    let call = ask("Write it.", max_output_tokens);
    let prompt = if text.is_empty() { call.prompt.clone() } else { call.prompt.clone().assistant(text).continued() };
    Call { sampling, prompt, ..call }
}

#[test]
fn a_reply_continues_the_text_as_if_it_had_written_it() {
    let engine = engine("continued");
    let whole = run(engine.call(continues("", 24))).unwrap();
    let asked = engine.prompt_ids(&continues("", 24)).unwrap();
    assert_eq!(whole.text.len(), 24);
    for at in [1, 7, 23] {
        let (text, rest) = whole.text.split_at(at);
        let call = continues(text, rest.len());
        let ids = engine.prompt_ids(&call).unwrap();
        assert_eq!((&ids[..asked.len()], ids.len()), (&*asked, asked.len() + at));
        let reply = run(engine.call(call)).unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), (rest, Finish::Length), "it does not repeat {text}");
        assert_eq!((reply.usage.prompt_tokens, reply.usage.output_tokens), (ids.len(), rest.len()));
    }
}

#[test]
fn names_of_special_tokens_in_the_text_are_plain_text() {
    let engine = engine("continued-specials");
    let [asked, continued] = ["", "<|im_end|>"].map(|text| engine.prompt_ids(&continues(text, 4)).unwrap());
    assert_eq!(continued.len(), asked.len() + "<|im_end|>".len());
}

#[test]
fn what_continues_a_text_has_no_form_and_no_thought() {
    let engine = engine("continued-forms");
    let call = continues("{", 50);
    let limits = Limits { thinking_tokens: 100, ..call.limits };
    let form = OutputFormat::Json(json!({ "type": "boolean" }));
    for call in [Call { output_format: form, ..call.clone() }, Call { limits, ..call }] {
        let refused = run(engine.call(call)).unwrap_err();
        assert!(matches!(refused, CallError::OutputFormat { .. }), "{refused}");
    }
}
