//! POST /v1/responses.

use std::sync::Arc;

use calls::{CallError, OutputFormat, Scripted, ToolUse};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};
use test_support::double::Double;

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
fn an_error_names_the_field_that_was_sent() {
    let host = Host::new(says("Good day."));
    let refused = host.post("/v1/responses", &asks(json!({ "max_output_tokens": 0 })));
    assert_eq!(refused.refused(400, "invalid_value"), "`max_output_tokens` must be at least 1");
    assert_eq!(refused.json()["error"]["param"], "max_output_tokens");
    for field in ["max_tokens", "max_completion_tokens"] {
        let mut chat = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Hello?" }] });
        chat[field] = 0.into();
        let refused = host.post("/v1/chat/completions", &chat);
        assert_eq!(refused.json()["error"]["param"], field, "{}", refused.text);
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
    let answer = host.post("/v1/responses", &body).json();
    assert_eq!((&answer["text"]["format"]["name"], &answer["top_p"]), (&json!("a"), &json!(0.9)));
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
fn tokens_of_the_input_are_counted() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let count = |more: Value| {
        let answer = host.post("/v1/responses/input_tokens", &asks(more));
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    };
    assert_eq!(count(json!({})), json!({ "object": "response.input_tokens", "input_tokens": 5 }));
    assert!(count(json!({ "tools": [look()] }))["input_tokens"].as_u64() > Some(20));
    let kept = host.post("/v1/responses", &asks(json!({}))).json();
    let continued = count(json!({ "previous_response_id": kept["id"], "text": { "format": { "type": "text" } } }));
    assert_eq!((&continued["input_tokens"], caller.seen().len()), (&json!(15), 1), "a count makes no response");
    let refused = |more: Value| host.post("/v1/responses/input_tokens", &asks(more));
    refused(json!({ "model": "gpt-9" })).refused(404, "model_not_found");
    refused(json!({ "input": [{ "type": "item_reference", "id": "a" }] })).refused(404, "not_found");
    refused(json!({ "truncation": "auto" })).refused(400, "invalid_value");
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
    check(json!({ "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": "a" }] }] }), "input");
    check(json!({ "input": [{ "type": "item_reference" }] }), "input");
    check(json!({ "input": [{ "type": "function_call", "call_id": "a", "name": "b", "arguments": "{" }] }), "input");
    check(json!({ "tools": [{ "type": "function", "name": "no name" }] }), "tools");
    check(json!({ "tool_choice": "required" }), "tool_choice");
    check(json!({ "tool_choice": { "type": "function", "name": "look" } }), "tool_choice");
    check(json!({ "previous_response_id": "resp-1" }), "previous_response_id");
    check(json!({ "conversation": "conv-1", "previous_response_id": "resp-1" }), "conversation");
    check(json!({ "tools": [{ "type": "file_search", "vector_store_ids": [] }] }), "tools");
    check(json!({ "truncation": "auto" }), "truncation");
    check(json!({ "prompt": { "id": "a" } }), "prompt");
    check(json!({ "guided_json": { "type": "object" } }), "guided_json");
    host.post("/v1/responses", &asks(json!({ "model": "gpt-9" }))).refused(404, "model_not_found");
    host.post("/v1/responses", &asks(json!({ "conversation": "conv-1" }))).refused(404, "not_found");
}

#[test]
fn a_refusal_has_its_status_in_a_stream_too() {
    let refused = CallError::Template { step: "response", model: "m".into(), reason: "no".into() };
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).fail("response", refused));
    for stream in [false, true] {
        let message = host.post("/v1/responses", &asks(json!({ "stream": stream }))).refused(400, "invalid_messages");
        assert_eq!(message, "the chat template of m refuses the messages: no");
    }
}

fn look() -> Value {
    let schema = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
    json!({ "type": "function", "name": "look", "description": "Looks.", "parameters": schema, "strict": true })
}

#[test]
fn functions_are_called() {
    let caller =
        Arc::new(Scripted::new(CONTEXT_TOKENS).tools("response", "", &[("look", r#"{"at":"a"}"#), ("look", "{}")]));
    let host = Host::with(caller.clone(), |_| {});
    let answer = host.post("/v1/responses", &asks(json!({ "tools": [look(), { "type": "web_search" }] })));
    assert_eq!(answer.warning(), "ignored tool: web_search");
    let answer = answer.json();
    let [one, other] = &answer["output"].as_array().expect("items")[..] else { panic!("{answer}") };
    assert_eq!(
        (&one["type"], &one["name"], &one["arguments"], &one["status"]),
        (&json!("function_call"), &json!("look"), &json!(r#"{"at":"a"}"#), &json!("completed"))
    );
    assert_ne!(one["call_id"], other["call_id"]);
    assert_eq!((&answer["tools"][0], &answer["tool_choice"]), (&look(), &json!("auto")));
    let use_of = |more: Value| {
        let mut body = asks(json!({ "tools": [look()] }));
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        assert_eq!(host.post("/v1/responses", &body).status, 200, "{body}");
        caller.seen().pop().expect("a call").tools
    };
    let auto = ToolUse { required: false, names: Vec::new(), parallel: true };
    let only = vec!["look".to_owned()];
    assert_eq!(use_of(json!({})), Some(auto.clone()));
    assert_eq!(use_of(json!({ "tool_choice": "none" })), None);
    assert_eq!(use_of(json!({ "parallel_tool_calls": false })), Some(ToolUse { parallel: false, ..auto.clone() }));
    assert_eq!(use_of(json!({ "tool_choice": "required" })), Some(ToolUse { required: true, ..auto.clone() }));
    let named = json!({ "type": "function", "name": "look" });
    assert_eq!(
        use_of(json!({ "tool_choice": named })),
        Some(ToolUse { required: true, names: only.clone(), parallel: false })
    );
    let allowed = json!({ "type": "allowed_tools", "mode": "auto", "tools": [named] });
    assert_eq!(use_of(json!({ "tool_choice": allowed })), Some(ToolUse { names: only, ..auto }));
}

#[test]
fn calls_and_their_outputs_come_back_as_turns() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let input = json!([
        { "role": "user", "content": "Look." },
        { "type": "reasoning", "id": "rs-1", "summary": [{ "type": "summary_text", "text": "Hm." }] },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
        { "type": "function_call", "id": "fc-1", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}" },
        { "type": "function_call", "call_id": "c2", "name": "look", "arguments": "" },
        { "type": "function_call_output", "call_id": "c1", "output": "a wall" },
        { "type": "function_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "a door" }] },
        { "type": "web_search_call", "id": "ws-1" },
    ]);
    let answer = host.post("/v1/responses", &asks(json!({ "input": input, "tools": [look()] })));
    assert_eq!((answer.status, answer.warning()), (200, "ignored item: web_search_call"));
    let turns = caller.seen()[0].prompt.messages();
    let texts: Vec<(&str, &str)> = turns.iter().map(|turn| (turn.role.as_str(), turn.content.as_str())).collect();
    assert_eq!(texts, [("user", "Look."), ("assistant", "I look."), ("tool", "a wall"), ("tool", "a door")]);
    let calls: Vec<(&str, &str)> =
        turns[1].tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!((calls, turns[1].thought.as_deref()), (vec![("c1", "{\"at\":1}"), ("c2", "{}")], Some("Hm.")));
    let results: Vec<Option<String>> =
        turns[2..].iter().map(|turn| turn.result_of.as_ref().and_then(|call| call.name.clone())).collect();
    assert_eq!(results, [Some("look".to_owned()), Some("look".to_owned())]);
}

#[test]
fn a_streamed_call_has_its_events() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).tools("response", "I look.", &[("look", "{}")]));
    let events = host.post("/v1/responses", &asks(json!({ "tools": [look()], "stream": true }))).events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.trim_start_matches("response.")).collect();
    let want = [
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names[names.len() - 6..], want);
    let [.., added, delta, done, item, last] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (&delta.1["delta"], &done.1["arguments"], &added.1["item"]["arguments"]),
        (&json!("{}"), &json!("{}"), &json!(""))
    );
    assert_eq!((&added.1["item"]["id"], &added.1["output_index"]), (&item.1["item"]["id"], &json!(1)));
    assert_eq!(last.1["response"]["output"][1], item.1["item"]);
    assert_eq!((&delta.1["item_id"], &item.1["item"]["name"]), (&item.1["item"]["id"], &json!("look")));
}

#[test]
fn functions_in_a_namespace_are_called_by_both_names() {
    let calls: [(&str, &str); 2] = [("mcp__pell__look", "{}"), ("look", "{}")];
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).tools("response", "", &calls));
    let host = Host::with(caller.clone(), |_| {});
    let inner = json!({ "type": "function", "name": "look", "description": "Looks far.", "parameters": {} });
    let other = json!({ "type": "custom", "name": "patch" });
    let namespace =
        json!({ "type": "namespace", "name": "mcp__pell__", "description": "At Pell.", "tools": [inner, other] });
    // As Codex sends a call of an earlier turn back.
    let input = json!([
        { "role": "user", "content": "Look." },
        { "type": "function_call", "call_id": "c1", "name": "look", "namespace": "mcp__pell__", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "a wall" },
    ]);
    let body = asks(json!({ "input": input, "tools": [look(), namespace] }));
    let answer = host.post("/v1/responses", &body);
    assert_eq!(answer.warning(), "ignored tool: custom");
    let output = answer.json()["output"].take();
    assert_eq!((&output[0]["namespace"], &output[0]["name"]), (&json!("mcp__pell__"), &json!("look")));
    assert_eq!((output[1].get("namespace"), &output[1]["name"]), (None, &json!("look")));
    let prompt = caller.seen().remove(0).prompt;
    let offered: Vec<(&str, Option<&str>)> =
        prompt.tools().iter().map(|tool| (tool.name.as_str(), tool.description.as_deref())).collect();
    assert_eq!(offered, [("look", Some("Looks.")), ("mcp__pell__look", Some("At Pell.\nLooks far."))]);
    assert_eq!(prompt.messages()[1].tool_calls[0].name, "mcp__pell__look");

    let streamed =
        json!({ "stream": true, "tool_choice": { "type": "function", "namespace": "mcp__pell__", "name": "look" } });
    let mut body = body;
    streamed.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    let events = host.post("/v1/responses", &body).events();
    let added = events.iter().find(|(name, _)| name == "response.output_item.added").expect("an item");
    assert_eq!((&added.1["item"]["namespace"], &added.1["item"]["name"]), (&json!("mcp__pell__"), &json!("look")));
    assert_eq!(caller.seen()[1].tools.as_ref().expect("tools").names, ["mcp__pell__look"]);
    let twice = json!({ "tools": [namespace_of("a", "b__c"), namespace_of("a__b", "c")] });
    host.post("/v1/responses", &asks(twice)).refused(400, "invalid_value");
}

fn namespace_of(name: &str, function: &str) -> Value {
    json!({ "type": "namespace", "name": name, "tools": [{ "type": "function", "name": function }] })
}

#[test]
fn a_thought_is_a_reasoning_item() {
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).thought("response", "Hm, well.", "Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let body = asks(
        json!({ "reasoning": { "effort": "low", "summary": "auto" }, "include": ["reasoning.encrypted_content"] }),
    );
    let answer = host.post("/v1/responses", &body);
    assert_eq!(answer.header("warning"), None);
    let answer = answer.json();
    assert_eq!(answer["output"][0]["summary"], json!([{ "type": "summary_text", "text": "Hm, well." }]));
    assert_eq!(answer["output"][1]["content"][0]["text"], "Yes.");
    assert_eq!(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 4);
    assert_eq!(caller.seen()[0].limits.thinking_tokens, 1024);
}

#[test]
fn a_field_of_the_text_that_has_no_effect_is_named() {
    let host = Host::new(says("Yes."));
    let text = json!({ "format": { "type": "text" }, "verbosity": "low" });
    let answer = host.post("/v1/responses", &asks(json!({ "text": text })));
    assert_eq!((answer.status, answer.warning()), (200, "ignored fields: text.verbosity"));
}

#[test]
fn a_failure_after_the_first_event_is_the_last_event() {
    // It fails after its first word.
    let halting = Double::new(says("")).answering(|_, call| {
        Box::pin(async move {
            call.on_text.as_ref().expect("it is streamed").send("Well");
            Err(CallError::Failed { step: call.step, reason: "no more".into() })
        })
    });
    let host = Host::new(halting);
    let events = host.post("/v1/responses", &asks(json!({ "stream": true }))).events();
    let (name, last) = events.last().expect("events");
    assert_eq!((name.as_str(), &last["response"]["status"]), ("response.failed", &json!("failed")));
    assert!(last["response"]["error"]["message"].as_str().is_some_and(|text| text.contains("no more")), "{last}");
}
