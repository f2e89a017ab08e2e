//! MCP over HTTP.

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, Thinker, eventually};

/// Sends a JSON-RPC request and returns its result.
fn rpc(host: &Host, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let answer = host.send("POST", "/mcp", &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut answer: Value =
        serde_json::from_str(&answer.text).unwrap_or_else(|_| answer.events().pop().expect("an event").1);
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].take()
}

/// Calls a tool; returns its text, and whether it failed.
fn call(host: &Host, name: &str, arguments: Value) -> (String, bool) {
    let result = rpc(host, "tools/call", json!({ "name": name, "arguments": arguments }));
    let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
    (text, result["isError"].as_bool().unwrap_or(false))
}

fn good(host: &Host, name: &str, arguments: Value) -> Value {
    let (text, failed) = call(host, name, arguments);
    assert!(!failed, "{name}: {text}");
    serde_json::from_str(&text).expect("tools answer in JSON")
}

#[test]
fn tools_remember_search_ask_and_read() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("answer", "A storm broke the wall."));
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let info = rpc(&host, "initialize", hello);
    assert_eq!(info["serverInfo"]["name"], "memlocal");
    let tools = rpc(&host, "tools/list", json!({}))["tools"].take();
    let names: Vec<&Value> = tools.as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["list_corpora", "remember", "search", "ask", "read_source"]);
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["corpus", "name", "text"]));

    let text = "In November a storm broke the harbour wall.";
    let kept = good(&host, "remember", json!({ "corpus": "pell", "name": "wall", "text": text, "method": "rag" }));
    assert_eq!(kept["status"], "done");
    assert_eq!(good(&host, "list_corpora", json!({}))[0]["name"], "pell");
    let hits = good(&host, "search", json!({ "corpus": "pell", "query": "storm" }));
    assert_eq!(hits[0]["text"], text);
    let answer = good(&host, "ask", json!({ "corpus": "pell", "question": "What broke?", "method": "rag" }));
    assert_eq!(
        (&answer["answer"], &answer["citations"][0]["quote"]),
        (&json!("A storm broke the wall."), &json!(text))
    );
    let read =
        good(&host, "read_source", json!({ "corpus": "pell", "document": hits[0]["document"], "start": 3, "end": 11 }));
    assert_eq!((&read["text"], &read["characters"]), (&json!("November"), &json!(43)));

    let resources = rpc(&host, "resources/list", json!({}))["resources"].take();
    assert_eq!((&resources[0]["name"], resources.as_array().map(Vec::len)), (&json!("wall"), Some(1)));
    let content = rpc(&host, "resources/read", json!({ "uri": resources[0]["uri"] }));
    assert_eq!(content["contents"][0]["text"], text);
}

#[test]
fn errors_are_returned_to_the_model() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let check = |name: &str, arguments: Value, says: &str| {
        let (text, failed) = call(&host, name, arguments);
        assert!(failed && text.contains(says), "{name}: {text}");
    };
    check("ask", json!({ "corpus": "none", "question": "What?" }), "there is no corpus `none`");
    check("search", json!({ "corpus": "none" }), "missing field `query`");
    check("remember", json!({ "corpus": "../a", "name": "a", "text": "a" }), "cannot name a corpus");
    check("search", json!({ "corpus": "a", "query": "a", "tool": "magic" }), "`magic` is not one of");
}

#[test]
fn a_disconnect_cancels_the_call() {
    let thinker = Thinker::default();
    let host = Host::new(thinker.clone());
    host.corpus("a", &[("a.txt", "One.")]);
    let ask = json!({ "name": "ask", "arguments": { "corpus": "a", "question": "What?", "method": "rag" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask }).to_string();
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let socket = host.open("POST", "/mcp", &headers, body.as_bytes());
    eventually("the model is asked", || thinker.begun() == 1);
    drop(socket);
    eventually("the call is given up", || thinker.given_up() == 1);
}
