//! Where replies end: stop strings, limits, end tokens, what is streamed, and which tokens were drawn. Every byte is a token, and
//! biases choose the bytes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use calls::{Call, CallError, Caller, Finish, Limits, OnText, OutputFormat, Reply, Sampling};
use engine::{Config, Engine};
use models::Tokenizer;
use serde_json::json;

use crate::tiny::{ask, letters, model, run, start};

fn engine(name: &str) -> Engine {
    start(model(name, |tokenizer| tokenizer), Config { kv_tokens: 4096, ..Config::default() })
}

/// A call whose reply is these bytes, each of which occurs once.
fn writes(bytes: &[u8]) -> Call {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
    let tokenizer = Tokenizer::from_file(&golden).unwrap();
    let token = |byte: u8| (0..300).find(|token| *tokenizer.bytes(*token) == [byte]).unwrap();
    // A byte that was written is penalised below all that were not.
    let bias = (0..).zip(bytes).map(|(place, byte)| (token(*byte), 5000.0 - 100.0 * place as f32)).collect();
    let sampling = Sampling { logit_bias: bias, presence_penalty: 10_000.0, ..Sampling::GREEDY };
    Call { sampling, ..ask("Write it.", bytes.len()) }
}

/// The reply to a call, whose text is what was streamed.
fn reply(engine: &Engine, bytes: &[u8], stops: &[&str]) -> Reply {
    let streamed = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&streamed);
    let on_text = Some(OnText::new(move |piece| sink.lock().unwrap().push_str(piece)));
    let stop = stops.iter().map(ToString::to_string).collect();
    let reply = run(engine.call(Call { on_text, stop, ..writes(bytes) })).unwrap();
    assert_eq!(*streamed.lock().unwrap(), reply.text, "{stops:?}");
    reply
}

#[test]
fn a_stop_string_in_text_that_was_held_back_ends_the_reply_before_it() {
    let engine = engine("stops");
    let check = |bytes: &[u8], stops: &[&str], text: &str, stopped_by: Option<&str>| {
        let reply = reply(&engine, bytes, stops);
        let finish = if stopped_by.is_some() { Finish::Stop } else { Finish::Length };
        assert_eq!((&*reply.text, reply.stopped_by.as_deref(), reply.finish), (text, stopped_by, finish), "{stops:?}");
    };
    check(b"xab\xe2", &[], "xab\u{fffd}", None);
    check(b"xab\xe2", &["ab!", "b\u{fffd}"], "xa", Some("b\u{fffd}"));
    check(b"xab\xe2", &["ab!", "\u{fffd}"], "xab", Some("\u{fffd}"));
    check(b"xab\xe2\x82", &["xab\u{fffd}"], "", Some("xab\u{fffd}"));
    check(b"xab\xe2y", &["xab!", "ab\u{fffd}y"], "x", Some("ab\u{fffd}y"));
    check(b"xab\xe2", &["b\u{fffd}!"], "xab\u{fffd}", None);
    check(b"xab", &["ab", "b"], "x", Some("ab"));
}

#[test]
fn a_caller_that_panics_at_the_last_piece_ends_its_own_request() {
    let engine = engine("panics-at-the-end");
    // The last byte is held back, since a stop string begins with it.
    let on_text = Some(OnText::new(|piece| assert!(piece != "b", "the reader fell over")));
    let broken = run(engine.call(Call { on_text, stop: vec!["b!".into()], ..writes(b"xab") })).unwrap_err();
    assert!(matches!(&broken, CallError::Failed { reason, .. } if reason.contains("the reader fell over")), "{broken}");
    assert_eq!(run(engine.call(writes(b"xab"))).unwrap().text, "xab");
}

#[test]
fn a_reply_names_the_token_that_was_drawn_to_end_it() {
    let engine = engine("end-tokens");
    // `<|endoftext|>` and `<|im_end|>`.
    for end in [256, 258] {
        let call = writes(b"xa");
        let (mut sampling, limits) = (call.sampling.clone(), Limits { max_output_tokens: 9, ..call.limits });
        sampling.logit_bias.insert(end, 4000.0);
        let reply = run(engine.call(Call { sampling, limits, ..call })).unwrap();
        assert_eq!((&*reply.text, reply.finish, reply.end_token), ("xa", Finish::Stop, Some(end)));
    }
    assert_eq!(reply(&engine, b"xa", &[]).end_token, None, "the limit ended it");
    assert_eq!(reply(&engine, b"xab", &["b"]).end_token, None, "a stop string ended it");
    let choice = |options: &[&str]| {
        let output_format = OutputFormat::Choice(options.iter().map(ToString::to_string).collect());
        let sampling = Sampling { logit_bias: [(258, 5000.0)].into(), ..Sampling::GREEDY };
        let reply = run(engine.call(Call { output_format, sampling, ..ask("Choose.", 20) })).unwrap();
        assert_eq!((&*reply.text, reply.finish), ("yes", Finish::Stop));
        reply.end_token
    };
    assert_eq!(choice(&["yes"]), None, "its format was complete");
    assert_eq!(choice(&["yes", "yes and no"]), Some(258), "its format allowed more");
}

#[test]
fn text_that_the_format_repeats_is_no_loop() {
    let engine = engine("no-loop");
    let song = json!({ "const": "la ".repeat(30) });
    let sung = json!({ "type": "object", "properties": { "song": song, "sung": { "type": "boolean" } },
        "required": ["song", "sung"], "additionalProperties": false });
    for (schema, logprobs) in [(&song, None), (&song, Some(0)), (&sung, None), (&sung, Some(0))] {
        let call = Call { output_format: OutputFormat::Json(schema.clone()), logprobs, ..ask("Sing it.", 200) };
        let reply = run(engine.call(call)).unwrap();
        assert!(reply.text.contains(&"la ".repeat(30)), "{}", reply.text);
        assert_eq!(reply.finish, Finish::Stop, "{schema} {logprobs:?}");
    }
}

#[test]
fn a_token_that_the_format_forces_or_that_closes_the_reply_is_not_drawn() {
    let engine = engine("drawn");
    let check = |call: Call, text: &str, finish: Finish, drawn: &str| {
        let reply = run(engine.call(Call { logprobs: Some(0), ..call })).unwrap();
        let of_tokens: String = reply.logprobs.iter().map(|token| if token.drawn { 'd' } else { '-' }).collect();
        assert_eq!((&*reply.text, reply.finish, &*of_tokens), (text, finish, drawn));
    };
    check(writes(b"xab"), "xab", Finish::Length, "ddd");
    let choice = OutputFormat::Choice(["xab", "xac"].map(str::to_owned).into());
    check(Call { output_format: choice, ..writes(b"xab") }, "xab", Finish::Stop, "--d");
    let string = OutputFormat::Json(json!({ "type": "string" }));
    check(Call { output_format: string, ..letters(&engine, 6) }, "\"xxxx\"", Finish::ClosedEarly, "-dddd-");
}
