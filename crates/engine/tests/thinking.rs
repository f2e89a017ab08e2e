//! The thought before an answer: its budget, its marker, and what is visible of it. The model has random weights, so
//! its thoughts continue until they are ended.

use std::sync::{Arc, Mutex};

use calls::{
    Agent, Call, CallError, Caller, Limits, OnText, OutputFormat, Prompt, Reply, Role, Sampling, Stability, Turn,
    schema,
};
use engine::{Config, Engine};
use serde_json::Value;

use crate::tiny::{ask, letters, model, model_with, run, start};

const BUDGET: usize = 80;

fn engine(name: &str, max_draft_tokens: usize) -> Engine {
    start(model(name, |tokenizer| tokenizer), Config { kv_tokens: 4096, max_draft_tokens, ..Config::default() })
}

/// An engine whose vocabulary has the closing marker as a token, which the model samples now and then.
fn engine_with_marker(name: &str, max_draft_tokens: usize) -> Engine {
    let marked = |tokenizer: String| tokenizer.replace("<|endoftext|>", "</think>");
    start(model(name, marked), Config { kv_tokens: 4096, max_draft_tokens, ..Config::default() })
}

/// An output format whose strings contain the marker.
fn form() -> OutputFormat {
    let marked = schema::constant("\n</think>\n{\"sure\":");
    OutputFormat::Json(schema::object([("said", marked), ("sure", schema::boolean()), ("why", schema::string(6))]))
}

fn thinks(thinking_tokens: usize, seed: u64) -> Call {
    let call = ask("Was the lamp out?", 80);
    let limits = Limits { thinking_tokens, ..call.limits };
    Call { output_format: form(), limits, sampling: Sampling::at(1.5, seed), ..call }
}

fn check(reply: &Reply) {
    let value: Value = serde_json::from_str(&reply.text).unwrap_or_else(|why| panic!("{why}: {:?}", reply.text));
    assert_eq!(value["said"], "\n</think>\n{\"sure\":");
    assert!(value["sure"].is_boolean() && value["why"].is_string(), "{value}");
}

#[test]
fn without_a_budget_there_is_no_thought_and_markers_in_strings_are_text() {
    let engine = engine("no-thought", 8);
    let reply = run(engine.call(thinks(0, 1))).unwrap();
    check(&reply);
    assert_eq!(reply.thought, None);
    assert!(!reply.rendered.contains("<think>"));
}

#[test]
fn at_its_budget_a_thought_ends_and_the_form_begins() {
    let engine = engine("budget", 8);
    for seed in 0..6 {
        let pieces = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&pieces);
        let on_text = OnText::new(move |piece| heard.lock().unwrap().push_str(piece));
        let reply = run(engine.call(Call { on_text: Some(on_text), ..thinks(BUDGET, seed) })).unwrap();
        check(&reply);
        assert!(reply.rendered.ends_with("<think>\n"), "{:?}", reply.rendered);
        let thought = reply.thought.as_deref().unwrap();
        assert!(!thought.is_empty() && !thought.contains("That must do"), "{thought:?}");
        assert_eq!(reply.usage.output_tokens, BUDGET + reply.text.len(), "every byte is a token");
        assert_eq!(*pieces.lock().unwrap(), reply.text, "the thought is not streamed");
    }
}

#[test]
fn a_marker_of_one_token_ends_a_thought_early() {
    let engine = engine_with_marker("marker", 8);
    let mut early = 0;
    for seed in 0..24 {
        let reply = run(engine.call(thinks(BUDGET, seed))).unwrap();
        check(&reply);
        let thought = reply.thought.as_deref().unwrap();
        assert!(!thought.contains("</think>"), "{thought:?}");
        let written = reply.usage.output_tokens;
        early += usize::from(written < BUDGET + reply.text.len());
    }
    println!("{early} of 24 ended early");
    assert!(early > 0, "the marker is one of some hundred tokens");
}

#[test]
fn drafts_change_no_thought_and_no_answer() {
    let replies = |engine: &Engine, greedy: bool| -> Vec<(Option<String>, String, usize)> {
        let calls = (0..12).map(|seed| {
            let call = thinks(60 + seed as usize * 3, seed);
            // A greedy thought of random weights repeats itself, so draft tokens are accepted.
            if greedy { Call { sampling: Sampling::GREEDY, ..call } } else { call }
        });
        let reply = |call| run(engine.call(call)).unwrap();
        calls.map(reply).map(|reply| (reply.thought, reply.text, reply.usage.output_tokens)).collect()
    };
    for greedy in [false, true] {
        let plain = replies(&engine("plain", 0), greedy);
        assert_eq!(replies(&engine("drafting", 8), greedy), plain);
        assert_eq!(replies(&engine("drafting-more", 100), greedy), plain);
        let plain = replies(&engine_with_marker("plain-marker", 0), greedy);
        assert_eq!(replies(&engine_with_marker("drafting-marker", 8), greedy), plain);
    }
}

#[test]
fn a_thought_may_end_at_a_draft_token_that_was_right() {
    // Every token is the same letter, so that every draft is right; a step writes two tokens, and a budget ends at either.
    let engine = engine("at-a-draft", 8);
    let call = letters(&engine, 10);
    for thinking_tokens in 60..64 {
        let limits = Limits { thinking_tokens, ..call.limits };
        let reply = run(engine.call(Call { limits, ..call.clone() })).unwrap();
        assert_eq!(reply.usage.output_tokens, thinking_tokens + 10);
        assert_eq!(reply.text, "xxxxxxxxxx");
    }
}

#[test]
fn free_text_may_think_too_and_its_limits_are_its_own() {
    let engine = engine("free-text", 8);
    let call = ask("Was the lamp out?", 10);
    let limits = Limits { thinking_tokens: BUDGET, min_output_tokens: 10, ..call.limits };
    let reply = run(engine.call(Call { limits, ..call })).unwrap();
    assert_eq!(reply.usage.output_tokens, BUDGET + 10);
    assert!(reply.thought.is_some());
}

#[test]
fn thought_and_answer_both_have_room_or_the_call_is_refused() {
    let engine = engine("room", 8);
    let refused = run(engine.call(thinks(200, 1))).unwrap_err();
    let CallError::TooLong { max_output_tokens, context_tokens, .. } = refused else { panic!("{refused}") };
    assert_eq!((max_output_tokens, context_tokens), (280, 256));
    let refused = run(engine.call(thinks(3, 1))).unwrap_err();
    assert!(matches!(&refused, CallError::Sampling { reason, .. } if reason.contains("3 are allowed")), "{refused}");
}

#[test]
fn names_of_special_tokens_in_earlier_thoughts_are_plain_text() {
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n\
        {{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}";
    let engine = start(model_with("earlier-thoughts", template, |tokenizer| tokenizer), Config::default());
    let ends = |thought: &str| {
        let turn = Turn { thought: Some(thought.into()), ..Turn::default() };
        let prompt = Prompt::new().user(Stability::Volatile, "Go").turn(Role::Assistant, "So.", turn);
        let ids = engine.prompt_ids(&Call::new(Agent::Responder, "test", prompt, 9)).unwrap();
        ids.iter().filter(|id| **id == 258).count()
    };
    assert_eq!((ends("x"), ends("<|im_end|>")), (2, 2));
}
