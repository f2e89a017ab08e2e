//! MCP over HTTP.

use std::sync::Arc;
use std::time::Duration;

use calls::Scripted;
use serde_json::{Value, json};
use store::{Corpora, NewDocument};

use crate::host::{CONTEXT_TOKENS, Host, eventually};
use test_support::thinker::Thinker;

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
    let failed = result["isError"].as_bool().unwrap_or(false);
    if !failed {
        assert_eq!(serde_json::from_str::<Value>(&text).expect("tools answer in JSON"), result["structuredContent"]);
    }
    (text, failed)
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
    let all =
        ["list_corpora", "list_documents", "remember", "prepare", "job", "forget", "search", "ask", "read_source"];
    assert_eq!(names, all);
    assert_eq!(tools[2]["inputSchema"]["required"], json!(["corpus", "name", "text"]));
    let hints = |tool: usize| {
        let hints = &tools[tool]["annotations"];
        (hints["readOnlyHint"] == true, hints["destructiveHint"] == true)
    };
    assert_eq!([hints(0), hints(2), hints(3), hints(5)], [(true, false), (false, true), (false, false), (false, true)]);
    assert_eq!(tools[7]["outputSchema"]["required"], json!(["answer", "citations", "statements"]));

    let text = "In November a storm broke the harbour wall.";
    let kept = good(&host, "remember", json!({ "corpus": "pell", "name": "wall", "text": text, "method": "rag" }));
    assert_eq!(kept["status"], "done");
    assert_eq!(good(&host, "list_corpora", json!({}))["corpora"][0]["name"], "pell");
    let documents = good(&host, "list_documents", json!({ "corpus": "pell" }));
    let hits = good(&host, "search", json!({ "corpus": "pell", "query": "storm" }))["hits"].take();
    assert_eq!(
        (&documents["documents"][0]["id"], &documents["documents"][0]["name"]),
        (&hits[0]["document"], &json!("wall"))
    );
    assert_eq!(hits[0]["text"], text);
    let answer = good(&host, "ask", json!({ "corpus": "pell", "question": "What broke?", "method": "rag" }));
    assert_eq!(
        (&answer["answer"], &answer["citations"][0]["quote"]),
        (&json!("A storm broke the wall."), &json!(text))
    );
    let cited = &answer["citations"][0]["document"];
    assert_eq!(&answer["statements"][0]["citation"]["document"], cited);
    let read = good(&host, "read_source", json!({ "corpus": "pell", "document": cited, "start": 3, "end": 11 }));
    assert_eq!((&read["text"], &read["characters"]), (&json!("November"), &json!(43)));

    let resources = rpc(&host, "resources/list", json!({}))["resources"].take();
    assert_eq!((&resources[0]["name"], resources.as_array().map(Vec::len)), (&json!("wall"), Some(1)));
    let content = rpc(&host, "resources/read", json!({ "uri": resources[0]["uri"] }));
    assert_eq!(content["contents"][0]["text"], text);
    for unknown in ["memlocal://../1", "memlocal://none/1", "memlocal://pell/x"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": unknown } });
        let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let answer = host.send("POST", "/mcp", &headers, &body.to_string());
        assert!(
            answer.text.contains(&format!("\"code\":-32002,\"message\":\"there is no {unknown}\"")),
            "{}",
            answer.text
        );
    }
    let templates = rpc(&host, "resources/templates/list", json!({}))["resourceTemplates"].take();
    assert_eq!(templates[0]["uriTemplate"], "memlocal://{corpus}/{document}");

    let forgotten = good(&host, "forget", json!({ "corpus": "pell", "document": cited }));
    assert_eq!(forgotten["forgotten"], true);
    assert_eq!(good(&host, "list_documents", json!({ "corpus": "pell" }))["documents"], json!([]));
    let (text, failed) = call(&host, "forget", json!({ "corpus": "pell", "document": cited }));
    assert!(failed && text.contains("document"), "{text}");
}

#[test]
fn no_corpus_with_the_name_of_a_model_is_made_for_a_text() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let text = |corpus: &str| json!({ "corpus": corpus, "name": "a", "text": "One.", "method": "rag" });
    let (said, failed) = call(&host, "remember", text("scripted"));
    assert!(failed && said.contains("a model has the name `scripted`"), "{said}");
    assert_eq!(good(&host, "list_corpora", json!({}))["corpora"], json!([]));
    // One that is there already gets the text.
    drop(Corpora::new(host.folder.path()).create("scripted").expect("it is new"));
    assert_eq!(good(&host, "remember", text("scripted"))["status"], "done");
}

#[test]
fn a_long_job_continues_after_its_tool_has_returned() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.preparation = Duration::from_secs(1));
    let arguments = json!({ "corpus": "a", "name": "a", "text": "One.", "method": "gam" });
    let params = json!({ "name": "remember", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let answer = host.send("POST", "/mcp", &headers, &body);
    let mut messages: Vec<Value> = answer.events().into_iter().map(|(_, message)| message).collect();
    let kept = messages.pop().expect("a result")["result"]["structuredContent"].take();
    assert!(messages.iter().any(|message| message["method"] == "notifications/progress"), "{messages:?}");
    assert!(kept["status"] == "running" || kept["status"] == "waiting", "{kept}");
    let note = kept["note"].as_str().expect("a note");
    assert!(note.contains(kept["id"].as_str().expect("an id")), "{note}");
    let job = good(&host, "job", json!({ "job": kept["id"] }));
    assert!(job["status"] == "running" || job["status"] == "waiting", "{job}");
    assert_eq!(thinker.given_up(), 0, "it was not cancelled");
    let (text, failed) = call(&host, "job", json!({ "job": "job-1" }));
    assert!(failed && text.contains("there is no job job-1"), "{text}");
}

#[test]
fn texts_of_one_name_in_two_folders_are_two_documents() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    for (name, text) in [("may/notes.md", "One."), ("june/notes.md", "Two."), ("/june/notes.md", "Three.")] {
        good(&host, "remember", json!({ "corpus": "a", "name": name, "text": text, "method": "direct" }));
    }
    let documents = good(&host, "list_documents", json!({ "corpus": "a" }))["documents"].take();
    let documents = documents.as_array().expect("documents");
    let names: Vec<&str> = documents.iter().filter_map(|document| document["name"].as_str()).collect();
    assert_eq!(names, ["may/notes.md", "june/notes.md"], "the third replaces the second");
    let read = good(&host, "read_source", json!({ "corpus": "a", "document": documents[1]["id"] }));
    assert_eq!(read["text"], "Three.");
}

#[test]
fn documents_are_listed_in_parts() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    drop(Corpora::new(host.folder.path()).create("a").expect("it is new"));
    let list = |arguments: Value| {
        let mut part = good(&host, "list_documents", arguments);
        let names = part["documents"].as_array().expect("documents").iter().map(|document| document["name"].clone());
        (names.collect::<Vec<Value>>(), part["next"].take())
    };
    assert_eq!(list(json!({ "corpus": "a" })), (Vec::new(), Value::Null));
    let mut corpus = Corpora::new(host.folder.path()).open_writer("a").expect("it is there");
    for number in 1..=101 {
        let path = format!("{number}.txt");
        let new = NewDocument { path: &path, kind: "text", title: "", text: "One.", passages: &[] };
        corpus.put_document(&new).expect("it can be stored");
    }
    drop(corpus);
    let (names, next) = list(json!({ "corpus": "a" }));
    assert_eq!((names.len(), names.last()), (100, Some(&json!("100.txt"))), "by default");
    assert_eq!(list(json!({ "corpus": "a", "after": next })), (vec![json!("101.txt")], Value::Null));
    let (names, next) = list(json!({ "corpus": "a", "limit": 2 }));
    assert_eq!(names, ["1.txt", "2.txt"]);
    assert_eq!(list(json!({ "corpus": "a", "limit": 1, "after": next })).0, ["3.txt"]);
    assert_eq!(list(json!({ "corpus": "a", "limit": 101 })).1, Value::Null, "there are no more");
    let (text, failed) = call(&host, "list_documents", json!({ "corpus": "a", "limit": 0 }));
    assert!(failed && text.contains("`limit` must be at least 1"), "{text}");
}

#[test]
fn a_corpus_is_prepared() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    host.corpus("a", &[("a.txt", "One.")]);
    let done = good(&host, "prepare", json!({ "corpus": "a", "method": "rag" }));
    assert_eq!((&done["status"], &done["method"], done.get("note")), (&json!("done"), &json!("rag"), None));
    let (text, failed) = call(&host, "prepare", json!({ "corpus": "none" }));
    assert!(failed && text.contains("there is no corpus `none`"), "{text}");
}

#[test]
fn prompts_are_written_with_their_arguments() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let prompts = rpc(&host, "prompts/list", json!({}))["prompts"].take();
    assert_eq!((&prompts[0]["name"], &prompts[1]["name"]), (&json!("answer"), &json!("keep")));
    assert_eq!(prompts[0]["arguments"][1]["name"], "question");
    let arguments = json!({ "corpus": "pell", "question": "What {broke}?" });
    let prompt = rpc(&host, "prompts/get", json!({ "name": "answer", "arguments": arguments }));
    let text = prompt["messages"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.starts_with("Answer this question from the corpus `pell`: What {broke}?\n"), "{text}");
    let ask = |params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params }).to_string();
        let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let answer = host.send("POST", "/mcp", &headers, &body);
        let answer: Value =
            serde_json::from_str(&answer.text).unwrap_or_else(|_| answer.events().pop().expect("an event").1);
        answer["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let lacking = ask(json!({ "name": "answer", "arguments": { "corpus": "pell" } }));
    assert_eq!(lacking, "the prompt `answer` needs the argument `question`");
    assert_eq!(ask(json!({ "name": "none" })), "there is no prompt `none`");
}

#[test]
fn errors_are_returned_to_the_model() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let check = |name: &str, arguments: Value, says: &str| {
        let (text, failed) = call(&host, name, arguments);
        assert!(failed && text.contains(says), "{name}: {text}");
    };
    let none = "there is no corpus `none`\nhint: list_corpora lists all corpora, remember makes one";
    check("ask", json!({ "corpus": "none", "question": "What?" }), none);
    check("search", json!({ "corpus": "none" }), "missing field `query`");
    check("remember", json!({ "corpus": "../a", "name": "a", "text": "a" }), "cannot name a corpus");
    check("remember", json!({ "corpus": "new", "name": "..", "text": "a" }), "name");
    check("remember", json!({ "corpus": "new", "name": "a", "text": "a", "method": "magic" }), "magic");
    assert_eq!(good(&host, "list_corpora", json!({}))["corpora"], json!([]), "a refused text creates no corpus");
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
