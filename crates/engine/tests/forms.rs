//! Constrained output through the engine: a tiny model with random weights, whose tokens are nearly random, satisfies
//! every output format within every limit.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use calls::{Agent, Call, CallError, Caller, Finish, OnText, OutputFormat, Prompt, Reply, Sampling, Stability};
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::LanguageModel;
use serde_json::{Value, json};

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}<|im_start|>assistant\n";

fn engine() -> Engine {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("chat_template.jinja"), TEMPLATE).unwrap();
    let model = LanguageModel::load(folder.path(), &Device::Cpu).unwrap();
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start(models, Config { kv_tokens: 1024, ..Config::default() }).unwrap()
}

fn call(schema: &Value, most: usize, seed: u64) -> Call {
    let prompt = Prompt::new().user(Stability::Volatile, "When?");
    let sampling = Sampling::at(1.0, seed);
    Call {
        output_format: OutputFormat::Json(schema.clone()),
        sampling,
        ..Call::new(Agent::Responder, "test", prompt, most)
    }
}

fn run(engine: &Engine, call: Call) -> Result<Reply, CallError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(engine.call(call))
}

fn check(schema: &Value, text: &str) {
    let value: Value = match serde_json::from_str(text) {
        // JSON allows numbers outside the range of 64-bit floats.
        Err(error) if error.to_string().starts_with("number out of range") => return,
        parsed => parsed.unwrap_or_else(|error| panic!("{schema}: {text}: {error}")),
    };
    let valid = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    assert!(valid.is_valid(&value), "{schema}: {text}");
}

#[test]
fn replies_are_valid_and_end_within_their_limit_whatever_is_drawn() {
    let engine = engine();
    let line = json!({ "type": "object", "required": ["name", "price"], "properties": {
        "name": { "type": "string" }, "price": { "type": "number", "exclusiveMinimum": 0 } } });
    let schemas = [
        json!({ "type": "object", "required": ["when"], "properties": { "when": { "type": "string", "format": "date-time" } } }),
        json!({ "type": "string", "format": "time" }),
        json!({ "type": "object", "required": ["lines"], "properties": { "lines": { "type": "array", "items": line } } }),
        json!({ "type": "object", "required": ["a"], "properties": { "a": {} } }),
        json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "array" } } }),
    ];
    for schema in &schemas {
        for seed in 0..12 {
            let reply = run(&engine, call(schema, 120, seed)).unwrap_or_else(|error| panic!("{schema}: {error}"));
            assert!(reply.usage.output_tokens <= 120, "{schema}");
            check(schema, &reply.text);
        }
    }
}

#[test]
fn a_limit_below_the_shortest_answer_is_refused_with_both_numbers_and_one_above_is_served() {
    let engine = engine();
    let schema = json!({ "type": "string", "format": "date" });
    let Err(CallError::OutputFormat { reason, .. }) = run(&engine, call(&schema, 11, 0)) else {
        panic!("it must be refused")
    };
    assert_eq!(reason, "its shortest answer has 12 tokens, but 11 are allowed");
    check(&schema, &run(&engine, call(&schema, 12, 0)).unwrap().text);
}

#[test]
fn what_no_grammar_enforces_holds_too_and_is_streamed() {
    let engine = engine();
    let schemas = [
        json!({ "type": "array", "items": { "enum": [1, 2, 3, 4, 5, 6, 7, 8, 9] }, "minItems": 2, "maxItems": 4, "uniqueItems": true }),
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "uniqueItems": true }),
        json!({ "type": "string", "not": { "const": "" } }),
        json!({ "type": "object", "patternProperties": { "^[ab]$": {} }, "additionalProperties": false }),
    ];
    for schema in &schemas {
        let shortest = match run(&engine, call(schema, 1, 0)) {
            Err(CallError::OutputFormat { reason, .. }) => {
                reason.split(' ').find_map(|word| word.parse().ok()).unwrap()
            }
            _ => 1,
        };
        for (most, seed) in [(shortest, 0), (shortest + 1, 1), (shortest + 7, 2), (60, 3), (60, 4)] {
            let sent = Arc::new(Mutex::new(String::new()));
            let sink = Arc::clone(&sent);
            let on_text = Some(OnText::new(move |text| sink.lock().unwrap().push_str(text)));
            let reply = run(&engine, Call { on_text, ..call(schema, most, seed) });
            let reply = reply.unwrap_or_else(|error| panic!("{schema} within {most}: {error}"));
            assert!(reply.usage.output_tokens <= most, "{schema}");
            check(schema, &reply.text);
            assert_eq!(*sent.lock().unwrap(), reply.text);
        }
    }
}

#[test]
fn a_reply_whose_form_becomes_too_complex_says_that_it_was_closed() {
    let divisors = [6.75, 19.0, 9.5, 2.125].map(|divisor| json!({ "multipleOf": divisor }));
    let others = [2, 5, 7, 11].map(|divisor| json!({ "multipleOf": divisor }));
    let schema = json!({ "allOf": divisors, "exclusiveMinimum": -100_000, "exclusiveMaximum": -10_000,
        "not": { "anyOf": others } });
    let reply = run(&engine(), call(&schema, 60, 0)).unwrap();
    check(&schema, &reply.text);
    assert_eq!(reply.finish, Finish::ClosedEarly);
}

#[test]
fn a_form_that_is_impossible_is_refused_with_its_place_and_cause() {
    let engine = engine();
    let refused = |schema: Value| match run(&engine, call(&schema, 50, 0)) {
        Err(CallError::OutputFormat { reason, .. }) => reason,
        other => panic!("{schema}: {other:?}"),
    };
    let within = |property: Value| json!({ "type": "object", "properties": { "a": { "items": property } } });
    let reason = refused(within(json!({ "type": "no such type" })));
    assert!(reason.starts_with("/properties/a/items: ") && reason.contains("no such type"), "{reason}");
    let reason = refused(within(json!({ "$ref": "#/$defs/none" })));
    assert_eq!(reason, "/properties/a/items/$ref: nothing in the schema is \"#/$defs/none\"");
    let reason = refused(json!({ "type": "array", "items": { "const": 1 }, "minItems": 2, "uniqueItems": true }));
    assert_eq!(reason, "no valid reply was found (searched because no grammar enforces /uniqueItems)");
    let reason = refused(within(json!({ "pattern": "[" })));
    assert!(reason.starts_with("/properties/a/items: ") && reason.contains("unclosed character class"), "{reason}");
}
