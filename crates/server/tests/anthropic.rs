//! Anthropic's API.

use std::sync::Arc;

use calls::{Call, CallError, Finish, OutputFormat, Scripted, ToolUse};
use serde_json::{Value, json};
use server::{Keys, KeysFile};

use crate::host::{Answer, CONTEXT_TOKENS, Host};

const PATH: &str = "/v1/messages";

fn says(text: &str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("messages", text)
}

fn hello(more: Value) -> Value {
    let mut body =
        json!({ "model": "scripted", "max_tokens": 100, "messages": [{ "role": "user", "content": "Hello?" }] });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

/// The answer to a request, and the call that it became.
fn ask(script: Scripted, more: Value) -> (Answer, Call) {
    let caller = Arc::new(script);
    let host = Host::with(caller.clone(), |_| {});
    let answer = host.post(PATH, &hello(more));
    assert_eq!(answer.status, 200, "{}", answer.text);
    (answer, caller.seen().remove(0))
}

/// Checks that it is an error of this kind in Anthropic's form.
#[track_caller]
fn check(answer: &Answer, status: u16, kind: &str, says: &str) {
    let body = answer.json();
    assert_eq!((answer.status, &body["type"]), (status, &json!("error")), "{body}");
    assert_eq!(body["error"]["type"], kind);
    let message = body["error"]["message"].as_str().expect("a message");
    assert!(message.contains(says), "{message}");
}

/// Reads a path as Anthropic's clients do.
fn get(host: &Host, path: &str) -> Answer {
    host.send("GET", path, &[("anthropic-version", "2023-06-01")], "")
}

fn weather() -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    json!({ "name": "weather", "description": "Says it.", "input_schema": schema, "cache_control": { "type": "ephemeral" } })
}

#[test]
fn a_message_has_every_field_that_clients_read() {
    let (answer, _) = ask(says("Good day."), json!({}));
    let message = answer.json();
    assert!(message["id"].as_str().is_some_and(|id| id.starts_with("msg")));
    let content = json!([{ "type": "text", "text": "Good day." }]);
    let usage = json!({ "input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 3 });
    let want = json!({ "id": message["id"], "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": "end_turn", "stop_sequence": null, "usage": usage });
    assert_eq!(message, want);
}

#[test]
fn every_field_reaches_the_call() {
    let schema = json!({ "type": "object" });
    let (_, call) = ask(
        says("Yes."),
        json!({ "system": "Be brief.", "temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop_sequences": ["a", "b", "c", "d", "e"],
            "metadata": { "user_id": "ann" }, "context_management": {}, "service_tier": "auto" }),
    );
    assert_eq!((call.sampling.temperature, call.sampling.top_p, call.sampling.top_k), (0.5, 0.9, 7));
    assert_eq!((call.stop.len(), call.limits.max_output_tokens, call.limits.thinking_tokens), (5, 100, 0));
    let turns = call.prompt.messages();
    assert_eq!((turns[0].role.as_str(), turns[0].content.as_str()), ("system", "Be brief."));
    let format = json!({ "type": "json_schema", "schema": schema });
    for fields in [json!({ "output_config": { "format": format } }), json!({ "output_format": format })] {
        assert_eq!(ask(says("{}"), fields).1.output_format, OutputFormat::Json(schema.clone()));
    }
}

#[test]
fn blocks_become_turns() {
    let call = json!({ "type": "tool_use", "id": "t1", "name": "weather", "input": { "city": "Pell" } });
    let billing = "x-anthropic-billing-header: cc_version=2; cch=17;";
    let system = json!([{ "type": "text", "text": billing }, { "type": "text", "text": "Be brief.", "cache_control": {} },
        { "type": "text", "text": "Be kind." }]);
    let result = |id: &str, more: Value| {
        let mut block = json!({ "type": "tool_result", "tool_use_id": id });
        more.as_object().expect("fields").iter().for_each(|(name, value)| block[name] = value.clone());
        block
    };
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "How is it?" }, { "type": "text", "text": "In Pell." }] },
        { "role": "assistant", "content": [{ "type": "thinking", "thinking": "Hm.", "signature": "x" },
            { "type": "text", "text": "I look." }, call, { "type": "tool_use", "id": "t2", "name": "time", "input": null }] },
        { "role": "user", "content": [result("t1", json!({ "content": [{ "type": "text", "text": "Wet." }], "is_error": null })),
            result("t2", json!({ "content": "No.", "is_error": true })), { "type": "text", "text": "Well?" }] },
    ]);
    let (_, call) = ask(says("Wet."), json!({ "system": system, "messages": messages }));
    let turns = call.prompt.messages();
    let texts: Vec<_> = turns.iter().map(|turn| (turn.role.as_str(), turn.content.as_str())).collect();
    let want = [
        ("system", "Be brief.\n\nBe kind."),
        ("user", "How is it?\n\nIn Pell."),
        ("assistant", "I look."),
        ("tool", "Wet."),
        ("tool", "error: No."),
        ("user", "Well?"),
    ];
    assert_eq!(texts, want);
    assert_eq!(
        (turns[2].tool_calls[0].arguments.as_str(), turns[2].thought.as_deref()),
        ("{\"city\":\"Pell\"}", Some("Hm."))
    );
    assert_eq!(turns[2].tool_calls[1].arguments, "{}");
    assert_eq!(turns[3].result_of.as_ref().and_then(|of| of.name.as_deref()), Some("weather"));
}

#[test]
fn tools_are_called() {
    let script = || Scripted::new(CONTEXT_TOKENS).tools("messages", "I look.", &[("weather", "{\"city\":\"Pell\"}")]);
    let (answer, call) = ask(script(), json!({ "tools": [weather()] }));
    let message = answer.json();
    let block = &message["content"][1];
    assert_eq!((&message["stop_reason"], &message["content"][0]["text"]), (&json!("tool_use"), &json!("I look.")));
    assert_eq!(
        (&block["type"], &block["name"], &block["input"]),
        (&json!("tool_use"), &json!("weather"), &json!({ "city": "Pell" }))
    );
    assert_eq!(call.prompt.tools()[0].schema()["required"], json!(["city"]));
    let long = format!("mcp__{}", "a".repeat(123));
    let (_, call) = ask(says("Yes."), json!({ "tools": [{ "name": long, "input_schema": { "type": "object" } }] }));
    assert_eq!(call.prompt.tools()[0].name, long);
    let check = |choice: Value, want: Option<(bool, &[&str], bool)>| {
        let (_, call) = ask(script(), json!({ "tools": [weather()], "tool_choice": choice }));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let want = want.map(|(required, allowed, parallel)| ToolUse { required, names: names(allowed), parallel });
        assert_eq!(call.tools, want);
    };
    check(json!({ "type": "auto" }), Some((false, &[], true)));
    check(json!({ "type": "auto", "disable_parallel_tool_use": true }), Some((false, &[], false)));
    check(json!({ "type": "auto", "disable_parallel_tool_use": null }), Some((false, &[], true)));
    check(json!({ "type": "any" }), Some((true, &[], true)));
    check(json!({ "type": "tool", "name": "weather" }), Some((true, &["weather"], false)));
    check(json!({ "type": "none" }), None);
}

#[test]
fn thoughts_are_blocks_of_their_own() {
    let script = || Scripted::new(CONTEXT_TOKENS).thought("messages", "Hm.", "Yes.");
    let (answer, call) = ask(script(), json!({ "thinking": { "type": "enabled", "budget_tokens": 40 } }));
    assert_eq!((call.limits.thinking_tokens, call.limits.max_output_tokens), (40, 60), "both are within max_tokens");
    let content =
        json!([{ "type": "thinking", "thinking": "Hm.", "signature": "" }, { "type": "text", "text": "Yes." }]);
    assert_eq!(answer.json()["content"], content);
    let adaptive = json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": "low" } });
    assert_eq!(ask(script(), adaptive).1.limits.thinking_tokens, 50, "at most half");
    assert_eq!(ask(script(), json!({ "thinking": { "type": "disabled" } })).0.json()["content"][0]["type"], "text");
}

#[test]
fn a_message_says_why_it_ended() {
    let check = |script: Scripted, more: Value, reason: &str, sequence: Value| {
        let message = ask(script, more).0.json();
        assert_eq!((&message["stop_reason"], &message["stop_sequence"]), (&json!(reason), &sequence));
    };
    let cut = || Scripted::new(CONTEXT_TOKENS).ended("messages", "Yes", Finish::Length);
    check(cut(), json!({}), "max_tokens", Value::Null);
    check(cut(), json!({ "max_tokens": CONTEXT_TOKENS * 2 }), "model_context_window_exceeded", Value::Null);
    check(says("One. END"), json!({ "stop_sequences": ["END"] }), "stop_sequence", json!("END"));
}

#[test]
fn events_come_in_the_order_that_clients_expect() {
    let script = Scripted::new(CONTEXT_TOKENS).tools(
        "messages",
        "I look.",
        &[("weather", "{\"city\":\"Pell\"}"), ("weather", "{}")],
    );
    let host = Host::new(script);
    let answer = host.post("/v1/messages?beta=true", &hello(json!({ "stream": true, "tools": [weather()] })));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let events = answer.events();
    assert!(events.iter().all(|(name, event)| event["type"] == name.as_str()), "{}", answer.text);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let want = [&["message_start", "ping"][..], &block, &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(names, want);
    let start = &events[0].1["message"];
    assert_eq!(
        (&start["content"], &start["stop_reason"], start["usage"]["input_tokens"].as_u64().is_some_and(|n| n > 0)),
        (&json!([]), &Value::Null, true)
    );
    assert_eq!(
        events[2].1,
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } })
    );
    assert_eq!(events[3].1["delta"], json!({ "type": "text_delta", "text": "I look." }));
    let (call, other) = (&events[5].1["content_block"], &events[8].1["content_block"]);
    assert_eq!((&call["name"], &call["input"]), (&json!("weather"), &json!({})));
    assert_ne!(call["id"], other["id"]);
    assert_eq!(events[6].1["delta"], json!({ "type": "input_json_delta", "partial_json": "{\"city\":\"Pell\"}" }));
    assert_eq!(
        (&events[4].1["index"], &events[7].1["index"], &events[10].1["index"]),
        (&json!(0), &json!(1), &json!(2))
    );
    assert_eq!(events[11].1["delta"], json!({ "stop_reason": "tool_use", "stop_sequence": null }));
    assert!(events[11].1["usage"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let thinks = json!({ "stream": true, "thinking": { "type": "enabled", "budget_tokens": 40 } });
    let events =
        Host::new(Scripted::new(CONTEXT_TOKENS).thought("messages", "Hm.", "Yes.")).post(PATH, &hello(thinks)).events();
    assert_eq!(events[3].1["delta"], json!({ "type": "thinking_delta", "thinking": "Hm." }));
    assert_eq!((&events[5].1["index"], &events[5].1["content_block"]["type"]), (&json!(1), &json!("text")));
}

#[test]
fn a_last_message_of_the_assistant_is_continued() {
    let continues = |content: Value, more: Value| {
        let asked = json!({ "role": "user", "content": "Which?" });
        let mut body = json!({ "messages": [asked, { "role": "assistant", "content": content }] });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        body
    };
    for content in [json!("The red"), json!([{ "type": "text", "text": "The red" }])] {
        let more = json!({ "system": "Be brief.", "tools": [weather()] });
        let (answer, call) = ask(says(" one."), continues(content, more));
        assert_eq!((call.prompt.reply_start(), call.prompt.messages().len()), ("The red", 2));
        assert_eq!(answer.json()["content"], json!([{ "type": "text", "text": " one." }]), "it is not repeated");
    }
    assert_eq!(ask(says("One."), continues(json!(""), json!({}))).1.prompt.reply_start(), "");
    let host = Host::new(says("Yes."));
    let counted = host.post("/v1/messages/count_tokens", &hello(continues(json!("The red"), json!({})))).json();
    assert_eq!(counted["input_tokens"], 7, "<user> Which? The red");

    let refused = |content: Value, more: Value, says: &str| {
        let answer = host.post(PATH, &hello(continues(content, more)));
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (400, &json!("invalid_request_error")));
        assert!(answer.text.contains(says), "{}", answer.text);
    };
    refused(json!("The "), json!({}), "must not end with white space");
    let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
    refused(json!("{"), json!({ "output_config": { "format": format } }), "is free text");
    refused(json!("So"), json!({ "thinking": { "type": "enabled", "budget_tokens": 40 } }), "has no thought");
    let thought = json!([{ "type": "thinking", "thinking": "Hm.", "signature": "" }, { "type": "text", "text": "So" }]);
    refused(thought, json!({}), "must have text only");
}

#[test]
fn tokens_are_counted_with_tools() {
    let host = Host::new(says("Yes."));
    let count = |more: Value| {
        let mut body = hello(more);
        body.as_object_mut().expect("fields").remove("max_tokens");
        let answer = host.post("/v1/messages/count_tokens", &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["input_tokens"].as_u64().expect("a count")
    };
    assert_eq!(count(json!({})), 5);
    assert!(count(json!({ "tools": [weather()] })) > 20);
}

#[test]
fn errors_have_anthropics_form() {
    let host = Host::new(says("Yes."));
    let refused = |more: Value, says: &str| check(&host.post(PATH, &hello(more)), 400, "invalid_request_error", says);
    refused(json!({ "max_tokens": null }), "`max_tokens` is required");
    refused(json!({ "messages": [] }), "needs messages");
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "" } });
    refused(
        json!({ "messages": [{ "role": "user", "content": [image] }] }),
        "images are not supported: the models of this server read text only",
    );
    refused(
        json!({ "messages": [{ "role": "user", "content": [{ "type": "hologram" }] }] }),
        "a type that is not supported",
    );
    refused(
        json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search" }] }),
        "only tools of the client are",
    );
    refused(
        json!({ "tools": [weather()], "tool_choice": { "type": "tool", "name": "time" } }),
        "there is no tool `time`",
    );
    refused(json!({ "tools": [{ "name": "a".repeat(129) }] }), "use 1 to 128 of");
    refused(json!({ "stop_sequences": [""] }), "must not be empty");
    refused(json!({ "stop_sequences": vec!["a"; 65] }), "has 65 strings; at most 64 are allowed");
    check(&host.post(PATH, &hello(json!({ "model": "claude" }))), 404, "not_found_error", "`claude` does not exist");
    for stream in [false, true] {
        let long = json!({ "stream": stream, "messages": [{ "role": "user", "content": "word ".repeat(CONTEXT_TOKENS * 3) }] });
        check(&host.post(PATH, &hello(long)), 400, "invalid_request_error", "hint: shorten the prompt");
        let busy = Host::new(Scripted::new(CONTEXT_TOKENS).fail("messages", CallError::Overloaded { queued: 9 }));
        check(&busy.post(PATH, &hello(json!({ "stream": stream }))), 429, "rate_limit_error", "");
    }
    let foreign = ("origin", "http://evil.example");
    check(&host.send("POST", PATH, &[foreign], "{}"), 403, "permission_error", "http://evil.example");
    let models = host.send("GET", "/v1/models", &[foreign, ("anthropic-version", "2023-06-01")], "");
    check(&models, 403, "permission_error", "http://evil.example");
    host.send("GET", "/api/tags", &[foreign], "").refused_plainly(403);
}

#[test]
fn models_are_listed_in_parts() {
    let host = Host::new(says("Yes."));
    let ids = |query: &str| {
        let list = get(&host, &format!("/v1/models{query}")).json();
        let ids: Vec<Value> =
            list["data"].as_array().expect("models").iter().map(|model| model["id"].clone()).collect();
        assert_eq!((ids.first(), ids.last()), (list.get("first_id"), list.get("last_id")));
        (json!(ids), list["has_more"] == true)
    };
    assert_eq!(ids(""), (json!(["scripted", "letters"]), false));
    assert_eq!(ids("?limit=1"), (json!(["scripted"]), true));
    assert_eq!(ids("?limit=1&after_id=scripted"), (json!(["letters"]), false));
    assert_eq!(ids("?limit=1&before_id=letters"), (json!(["scripted"]), false));
    let model = get(&host, "/v1/models/letters").json();
    assert_eq!((&model["type"], &model["display_name"]), (&json!("model"), &json!("letters")));
    assert!(model["created_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{model}");
}

#[test]
fn errors_of_paths_of_two_apis_have_the_form_of_the_client() {
    let host = Host::new(says("Yes."));
    for (path, status, kind, says) in [
        ("/v1/models/claude", 404, "not_found_error", "`claude` does not exist"),
        ("/v1/models?limit=0", 400, "invalid_request_error", "`limit` must be 1 to 1000"),
        ("/v1/models?after_id=claude", 400, "invalid_request_error", "the list has no entry `claude`"),
        ("/v1/files", 404, "not_found_error", "hint: /v1/files is OpenAI's API"),
        ("/v1/files/file-1/content", 404, "not_found_error", "hint: /v1/files is OpenAI's API"),
        ("/v1/skills", 404, "not_found_error", "there is no path /v1/skills"),
    ] {
        check(&get(&host, path), status, kind, says);
    }
    let without = host.get("/v1/models/claude");
    without.refused(404, "model_not_found");
    assert_eq!((without.json().get("type"), host.get("/v1/files").status), (None, 200));
    get(&host, "/api/none").refused_plainly(404);
}

#[test]
fn a_key_may_be_in_anthropics_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys");
    let key = Keys::add(&path, "ann").expect("a key");
    let keys = KeysFile::open(&path).expect("it reads back");
    let host = Host::with(Arc::new(says("Yes.")), |config| config.keys = Some(keys));
    let post = |name: &str, value: &str| {
        let headers = [("content-type", "application/json"), (name, value)];
        host.send("POST", PATH, &headers, &hello(json!({})).to_string())
    };
    assert_eq!(post("x-api-key", key.trim()).status, 200);
    assert_eq!(post("authorization", &format!("Bearer {}", key.trim())).status, 200);
    let answer = post("x-api-key", "wrong");
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (401, &json!("authentication_error")));
}
