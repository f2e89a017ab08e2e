//! Tools in a chat.

use std::sync::Arc;

use calls::{Call, Finish, Scripted, ToolUse};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, says};

const PELL: (&str, &str) = ("weather", "{\"city\":\"Pell\"}");

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).tools("chat", "", &[PELL])
}

fn request(choice: Value, stream: bool) -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "description": "Says it.", "parameters": parameters } });
    json!({ "model": "scripted", "messages": [{ "role": "user", "content": "How is it in Pell?" }],
        "tools": [tool("weather"), tool("time")], "tool_choice": choice, "stream": stream })
}

/// The choice of a response, and the call that it was asked with.
fn ask(script: Scripted, body: &Value) -> (Value, Call) {
    let caller = Arc::new(script);
    let host = Host::with(caller.clone(), |_| {});
    let answer = host.post("/v1/chat/completions", body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    (answer.json()["choices"][0].take(), caller.seen().remove(0))
}

#[test]
fn a_tool_is_called() {
    let (choice, call) = ask(script(), &request(json!("auto"), false));
    let message = &choice["message"];
    assert_eq!((&choice["finish_reason"], &message["content"]), (&json!("tool_calls"), &Value::Null));
    let made = &message["tool_calls"][0];
    assert!(made["id"].as_str().is_some_and(|id| id.starts_with("call-")) && made["type"] == "function");
    assert_eq!(made["function"], json!({ "name": "weather", "arguments": "{\"city\":\"Pell\"}" }));
    let tool = &call.prompt.tools()[0];
    assert_eq!((tool.name.as_str(), tool.description.as_deref()), ("weather", Some("Says it.")));
    assert_eq!(tool.schema()["required"], json!(["city"]));
}

#[test]
fn every_form_of_tool_choice_reaches_the_call() {
    let check = |choice: Value, want: Option<(bool, &[&str], bool)>| {
        let body = request(choice.clone(), false);
        let (_, call) = ask(script(), &body);
        let want = want.map(|(required, names, parallel)| ToolUse {
            required,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            parallel,
        });
        assert_eq!(call.tools, want, "{choice}");
        assert_eq!(call.prompt.tools().len(), if want.is_some() { 2 } else { 0 }, "{choice}");
    };
    check(Value::Null, Some((false, &[], true)));
    check(json!("auto"), Some((false, &[], true)));
    check(json!("required"), Some((true, &[], true)));
    check(json!("none"), None);
    let weather = json!({ "type": "function", "function": { "name": "weather" } });
    check(weather.clone(), Some((true, &["weather"], false)));
    let allowed =
        |mode: &str| json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": [weather] } });
    check(allowed("auto"), Some((false, &["weather"], true)));
    check(allowed("required"), Some((true, &["weather"], true)));
    let mut body = request(json!("auto"), false);
    body["parallel_tool_calls"] = json!(false);
    assert_eq!(ask(script(), &body).1.tools.map(|tools| tools.parallel), Some(false));
}

#[test]
fn several_tools_are_called_in_one_turn_after_a_text() {
    let two = Scripted::new(CONTEXT_TOKENS).tools("chat", "I look.", &[PELL, ("time", "{}")]);
    let (choice, _) = ask(two, &request(json!("auto"), false));
    let (message, calls) = (&choice["message"], &choice["message"]["tool_calls"]);
    assert_eq!((&message["content"], &calls[1]["function"]["name"]), (&json!("I look."), &json!("time")));
    assert_ne!(calls[0]["id"], calls[1]["id"]);
}

#[test]
fn the_model_may_answer_without_a_tool() {
    let (choice, _) = ask(says("Hello."), &request(json!("auto"), false));
    assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("stop"), &json!("Hello.")));
    assert!(choice["message"].get("tool_calls").is_none());
    let (choice, _) =
        ask(Scripted::new(CONTEXT_TOKENS).ended("chat", "Hel", Finish::Length), &request(json!("auto"), false));
    assert_eq!(choice["finish_reason"], "length");
}

#[test]
fn calls_are_streamed() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).tools("chat", "I look.", &[PELL, ("time", "{}")]));
    let events = host.post("/v1/chat/completions", &request(json!("required"), true)).events();
    let deltas: Vec<&Value> = events.iter().map(|(_, chunk)| &chunk["choices"][0]["delta"]).collect();
    assert_eq!((&deltas[0]["role"], &deltas[0]["content"]), (&json!("assistant"), &json!("I look.")));
    let calls: Vec<&Value> = deltas[1..5].iter().map(|delta| &delta["tool_calls"][0]).collect();
    let of =
        |call: &Value| (call["index"].clone(), call["function"]["name"].clone(), call["function"]["arguments"].clone());
    assert_eq!(of(calls[0]), (json!(0), json!("weather"), json!("")));
    assert_eq!(of(calls[1]), (json!(0), Value::Null, json!("{\"city\":\"Pell\"}")));
    assert_eq!(of(calls[2]), (json!(1), json!("time"), json!("")));
    assert_eq!(of(calls[3]), (json!(1), Value::Null, json!("{}")));
    assert!(calls[0]["id"].is_string() && calls[0]["id"] != calls[2]["id"]);
    assert_eq!(events.last().expect("events").1["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn calls_and_results_come_back_as_turns_of_their_own() {
    let mut body = request(json!("auto"), false);
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "weather", "arguments": arguments } });
    body["messages"] = json!([
        { "role": "user", "content": "How is it?" },
        { "role": "assistant", "content": null, "tool_calls": [call("a", "{\"city\":\"Pell\"}"), call("b", "")], "reasoning_content": "Hm." },
        { "role": "tool", "tool_call_id": "a", "content": "Wet." },
        { "role": "tool", "tool_call_id": "b", "content": "Dry." },
    ]);
    let turns = ask(says("Well."), &body).1.prompt.messages();
    let calls: Vec<_> = turns[1].tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("a", "{\"city\":\"Pell\"}"), ("b", "{}")]);
    assert_eq!((turns[1].content.as_str(), turns[1].thought.as_deref()), ("", Some("Hm.")));
    let results: Vec<_> = turns[2..].iter().map(|turn| (turn.content.as_str(), turn.result_of.clone())).collect();
    assert_eq!((results[0].0, results[1].0), ("Wet.", "Dry."));
    let of = results[1].1.as_ref().expect("it answers a call");
    assert_eq!((of.id.as_str(), of.name.as_deref()), ("b", Some("weather")));
}

#[test]
fn invalid_tools_are_refused() {
    let host = Host::new(script());
    let refused = |body: &Value, param: &str| {
        let answer = host.post("/v1/chat/completions", body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param);
    };
    let check = |tools: Value, choice: Value, param: &str| {
        let mut body = request(choice, false);
        body["tools"] = tools;
        refused(&body, param);
    };
    let tool = json!([{ "type": "function", "function": { "name": "weather" } }]);
    check(json!([{ "type": "function", "function": { "name": "no tool" } }]), json!("auto"), "tools");
    check(json!([tool[0], tool[0]]), json!("auto"), "tools");
    check(json!([{ "type": "web" }]), json!("auto"), "tools[0].type");
    check(tool.clone(), json!({ "type": "function", "function": { "name": "time" } }), "tool_choice");
    let none_of_them = json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [] } });
    check(tool.clone(), none_of_them, "tool_choice");
    check(tool, json!("perhaps"), "tool_choice");
    check(json!([]), json!("required"), "tool_choice");
    let mut body = request(json!("auto"), false);
    let call = json!({ "id": "a", "type": "function", "function": { "name": "weather", "arguments": "Pell" } });
    body["messages"] = json!([{ "role": "assistant", "content": null, "tool_calls": [call] }]);
    refused(&body, "messages");
}
