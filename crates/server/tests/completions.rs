//! POST /v1/completions.

use std::sync::Arc;

use calls::{CallError, Caller, Scripted};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("completion", "there was a fox.")
}

#[test]
fn a_text_is_continued_without_a_template() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let answer =
        host.post("/v1/completions", &json!({ "model": "scripted", "prompt": "Once <b>", "logprobs": 1 })).json();
    assert_eq!(
        (&answer["object"], &answer["choices"][0]["text"]),
        (&json!("text_completion"), &json!("there was a fox."))
    );
    assert_eq!(answer["usage"]["prompt_tokens"], 4);
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["there", "was", "a", "fox", "."]));
    assert_eq!(logprobs["text_offset"], json!([0, 5, 8, 9, 12]));
    let call = caller.seen().remove(0);
    assert_eq!((call.prompt.as_bare(), call.limits.max_output_tokens), (Some("Once <b>"), 16));
}

#[test]
fn prompts_and_choices_are_numbered_consecutively() {
    let host = Host::new(script());
    let body = json!({ "model": "scripted", "prompt": ["One", "Two too"], "n": 2, "stream": true, "stream_options": { "include_usage": true } });
    let events = host.post("/v1/completions", &body).events();
    let indices: Vec<&Value> =
        events.iter().map(|(_, chunk)| &chunk["choices"][0]["index"]).filter(|index| index.is_u64()).collect();
    assert_eq!(indices.len(), 8, "four choices of one piece and an end");
    let usage = &events.last().expect("events").1["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(3), &json!(20)));
}

#[test]
fn best_of_may_equal_the_number_of_choices() {
    let host = Host::new(script());
    for n in [1, 2] {
        let body = json!({ "model": "scripted", "prompt": "One", "n": n, "best_of": n });
        let answer = host.post("/v1/completions", &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json()["choices"].as_array().map(Vec::len), Some(n));
    }
}

#[test]
fn a_suffix_is_what_is_behind_the_place_to_fill() {
    let caller = Arc::new(script());
    let host = Host::with(Arc::clone(&caller) as Arc<dyn Caller>, |_| {});
    let body = json!({ "model": "scripted", "prompt": "fn add(", "suffix": ") {}" });
    assert_eq!(host.post("/v1/completions", &body).status, 200);
    let call = caller.seen().pop().expect("a call");
    assert_eq!((call.prompt.as_bare(), call.prompt.suffix()), (Some("fn add("), Some(") {}")));
    let refused = CallError::Infill { step: "completion", model: "m".into(), token: "<|fim_prefix|>" };
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).fail("completion", refused));
    assert_eq!(
        host.post("/v1/completions", &body).refused(400, "invalid_value"),
        "the model m cannot fill in the middle of a text: its tokenizer has no <|fim_prefix|>"
    );
}

#[test]
fn unsupported_fields_are_refused() {
    let host = Host::new(script());
    let check = |more: Value, param: &str| {
        let mut body = json!({ "model": "scripted", "prompt": "Once" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = host.post("/v1/completions", &body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param, "{more}");
    };
    check(json!({ "prompt": "" }), "prompt");
    check(json!({ "prompt": [] }), "prompt");
    check(json!({ "prompt": [1, 2] }), "prompt");
    check(json!({ "echo": true, "logprobs": 1 }), "echo");
    check(json!({ "best_of": 3 }), "best_of");
    check(json!({ "best_of": 3, "n": 2 }), "best_of");
    check(json!({ "best_of": 0, "n": 0 }), "n");
    check(json!({ "logprobs": 9 }), "logprobs");
    check(json!({ "stream_options": { "include_usage": true } }), "stream_options");
    check(json!({ "structured_outputs": { "regex": "a" } }), "structured_outputs");
}

#[test]
fn unknown_fields_are_ignored_with_a_warning() {
    let host = Host::new(script());
    let body = json!({ "model": "scripted", "prompt": "Once", "suffix": "", "echo": null, "best": 1, "mirostat": 0,
        "kv_transfer": { "a": 1 }, "service": "x" });
    let answer = host.post("/v1/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.warning(), "ignored fields: best, kv_transfer, service");
    let plain = host.post("/v1/completions", &json!({ "model": "scripted", "prompt": "Once", "stop": null }));
    assert_eq!((plain.status, plain.header("warning")), (200, None));
}

#[test]
fn an_echo_begins_with_the_prompt() {
    let host = Host::new(script());
    let mut body = json!({ "model": "scripted", "prompt": ["Once ", "Twice "], "echo": true });
    let whole = host.post("/v1/completions", &body).json();
    let texts = [&whole["choices"][0]["text"], &whole["choices"][1]["text"]];
    assert_eq!(texts, ["Once there was a fox.", "Twice there was a fox."]);
    body["stream"] = true.into();
    let events = host.post("/v1/completions", &body).events();
    let of = |index: u64| -> String {
        let choices = events.iter().map(|(_, chunk)| &chunk["choices"][0]);
        choices.filter(|choice| choice["index"] == index).filter_map(|choice| choice["text"].as_str()).collect()
    };
    assert_eq!([of(0), of(1)], ["Once there was a fox.", "Twice there was a fox."]);
}
