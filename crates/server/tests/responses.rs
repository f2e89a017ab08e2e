//! POST /v1/responses.

use std::sync::Arc;

use calls::{CallError, OutputFormat, Scripted};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};

fn says(text: &str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("response", text)
}

fn asks(more: Value) -> Value {
    let mut body = json!({ "model": "scripted", "input": "Hello?" });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

#[test]
fn a_response_has_every_field_that_clients_read() {
    let host = Host::new(says("Good day."));
    let answer = host.post("/v1/responses", &asks(json!({ "metadata": { "a": "b" } }))).json();
    assert_eq!(
        (&answer["object"], &answer["status"], &answer["model"]),
        (&json!("response"), &json!("completed"), &json!("scripted"))
    );
    let content = json!([{ "type": "output_text", "text": "Good day.", "annotations": [], "logprobs": [] }]);
    let message = &answer["output"][0];
    assert_eq!(
        (&message["type"], &message["role"], &message["content"]),
        (&json!("message"), &json!("assistant"), &content)
    );
    let usage = json!({ "input_tokens": 5, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 3,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 8 });
    assert_eq!((&answer["usage"], &answer["metadata"]), (&usage, &json!({ "a": "b" })));
    for null in ["error", "incomplete_details", "previous_response_id", "instructions"] {
        assert_eq!(answer.get(null), Some(&Value::Null), "{null}");
    }
}

#[test]
fn input_becomes_turns() {
    let check = |more: Value, want: &[(&str, &str)]| {
        let caller = Arc::new(says("Yes."));
        let host = Host::with(caller.clone(), |_| {});
        let answer = host.post("/v1/responses", &asks(more));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let turns = caller.seen()[0].prompt.messages();
        let turns: Vec<(&str, &str)> = turns.iter().map(|turn| (turn.role.as_str(), turn.content.as_str())).collect();
        assert_eq!(turns, want);
    };
    check(json!({}), &[("user", "Hello?")]);
    check(json!({ "instructions": "Be brief." }), &[("system", "Be brief."), ("user", "Hello?")]);
    let earlier = json!({ "id": "msg-1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "Two.", "annotations": [], "logprobs": [] }] });
    let input = json!([
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "input_text", "text": "One" }, { "type": "input_text", "text": "more?" }] },
        earlier,
        { "type": "message", "role": "user", "content": "And?" },
    ]);
    let want = [("system", "Be brief."), ("user", "One\nmore?"), ("assistant", "Two."), ("user", "And?")];
    check(json!({ "input": input }), &want);
}

#[test]
fn every_field_reaches_the_call() {
    let caller = Arc::new(says("{}"));
    let host = Host::with(caller.clone(), |_| {});
    let format = json!({ "type": "json_schema", "name": "a", "schema": { "type": "object" }, "strict": true });
    let body = asks(json!({ "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 9, "text": { "format": format } }));
    assert_eq!(host.post("/v1/responses", &body).json()["text"]["format"]["name"], "a");
    let call = caller.seen().remove(0);
    assert_eq!((call.sampling.temperature, call.sampling.top_p, call.limits.max_output_tokens), (0.5, 0.9, 9));
    assert_eq!(call.output_format, OutputFormat::Json(json!({ "type": "object" })));
}

#[test]
fn a_stream_has_the_events_of_the_response() {
    let host = Host::new(says("Good day."));
    let events = host.post("/v1/responses", &asks(json!({ "stream": true }))).events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.trim_start_matches("response.")).collect();
    let want = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names, want);
    for (number, (name, event)) in events.iter().enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
    }
    assert_eq!((&events[4].1["delta"], &events[5].1["text"]), (&json!("Good day."), &json!("Good day.")));
    let last = &events[8].1["response"];
    assert_eq!((&last["output"][0], &last["id"]), (&events[7].1["item"], &events[0].1["response"]["id"]));
}

#[test]
fn unsupported_fields_are_refused() {
    let host = Host::new(says("Yes."));
    let check = |more: Value, param: &str| {
        let answer = host.post("/v1/responses", &asks(more.clone()));
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param, "{more}");
    };
    check(json!({ "input": "" }), "input");
    check(json!({ "input": [] }), "input");
    check(json!({ "input": [{ "role": "king", "content": "" }] }), "input");
    check(json!({ "tools": [{ "type": "web_search" }] }), "tools");
    check(json!({ "previous_response_id": "resp-1" }), "previous_response_id");
    check(json!({ "truncation": "auto" }), "truncation");
    check(json!({ "reasoning": { "effort": "high" } }), "reasoning");
    check(json!({ "guided_json": { "type": "object" } }), "guided_json");
    host.post("/v1/responses", &asks(json!({ "model": "gpt-9" }))).refused(404, "model_not_found");
}

#[test]
fn a_refusal_has_its_status_in_a_stream_too() {
    let refused = CallError::Template { step: "response", model: "m".into(), reason: "no".into() };
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).fail("response", refused));
    for stream in [false, true] {
        let message = host.post("/v1/responses", &asks(json!({ "stream": stream }))).refused(400, "invalid_messages");
        assert_eq!(message, "the chat template of m refuses the messages of step response: no");
    }
}
