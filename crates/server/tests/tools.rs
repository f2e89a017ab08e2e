//! Tools in a chat.

use std::sync::Arc;

use calls::{Scripted, Shape};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS)
        .answer("chat.tool", "weather")
        .answer("chat.arguments", "{\"city\":\"Pell\"}")
        .answer("chat", "Hello.")
}

fn request(choice: Value, stream: bool) -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "description": "Says it.", "parameters": parameters } });
    json!({ "model": "scripted", "messages": [{ "role": "user", "content": "How is it in Pell?" }],
        "tools": [tool("weather"), tool("time")], "tool_choice": choice, "stream": stream })
}

fn check(script: Scripted, choice: Value, steps: &[&str], calls: bool) -> Vec<calls::Call> {
    let caller = Arc::new(script);
    let host = Host::with(caller.clone(), |_| {});
    let choice = host.post("/v1/chat/completions", &request(choice, false)).json()["choices"][0].take();
    assert_eq!(caller.steps(), steps);
    let message = &choice["message"];
    if calls {
        assert_eq!((&choice["finish_reason"], &message["content"]), (&json!("tool_calls"), &Value::Null));
        let call = &message["tool_calls"][0];
        assert!(call["id"].as_str().is_some_and(|id| id.starts_with("call-")) && call["type"] == "function");
        assert_eq!(call["function"], json!({ "name": "weather", "arguments": "{\"city\":\"Pell\"}" }));
    } else {
        assert_eq!((&choice["finish_reason"], &message["content"]), (&json!("stop"), &json!("Hello.")));
        assert!(message.get("tool_calls").is_none());
    }
    caller.seen()
}

#[test]
fn a_tool_is_chosen_and_called() {
    let seen = check(script(), json!("auto"), &["chat.tool", "chat.arguments"], true);
    assert_eq!(seen[0].shape, Shape::Choice(vec!["weather".into(), "time".into(), "no tool".into()]));
    let Shape::Json(schema) = &seen[1].shape else { panic!("{:?}", seen[1].shape) };
    assert_eq!(schema["required"], json!(["city"]));
    assert!(
        seen[0].prompt.messages()[0].content.contains("\"name\":\"weather\""),
        "the system turn describes the tools"
    );
    let seen = check(script(), json!("required"), &["chat.tool", "chat.arguments"], true);
    assert_eq!(seen[0].shape, Shape::Choice(vec!["weather".into(), "time".into()]));
    check(script(), json!({ "type": "function", "function": { "name": "weather" } }), &["chat.arguments"], true);
}

#[test]
fn the_model_may_answer_without_a_tool() {
    let without = Scripted::new(CONTEXT_TOKENS).answer("chat.tool", "no tool").answer("chat", "Hello.");
    check(without, json!("auto"), &["chat.tool", "chat"], false);
    check(script(), json!("none"), &["chat"], false);
}

#[test]
fn a_call_is_streamed() {
    let host = Host::new(script());
    let events = host.post("/v1/chat/completions", &request(json!("required"), true)).events();
    let deltas: Vec<&Value> = events.iter().map(|(_, chunk)| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(
        (&deltas[0]["role"], &deltas[0]["tool_calls"][0]["function"]["name"]),
        (&json!("assistant"), &json!("weather"))
    );
    assert_eq!(deltas[1]["tool_calls"][0]["function"]["arguments"], "{\"city\":\"Pell\"}");
    assert_eq!(events.last().expect("events").1["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn invalid_tools_are_refused() {
    let host = Host::new(script());
    let check = |tools: Value, choice: Value, param: &str| {
        let mut body = request(choice, false);
        body["tools"] = tools;
        let answer = host.post("/v1/chat/completions", &body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param);
    };
    let tool = json!([{ "type": "function", "function": { "name": "weather" } }]);
    check(json!([{ "type": "function", "function": { "name": "no tool" } }]), json!("auto"), "tools");
    check(json!([{ "type": "web" }]), json!("auto"), "tools[0].type");
    check(tool.clone(), json!({ "type": "function", "function": { "name": "time" } }), "tool_choice");
    check(tool, json!("perhaps"), "tool_choice");
    check(json!([]), json!("required"), "tool_choice");
}
