//! Streamed responses, and clients that disconnect during them.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{CallError, Caller, Scripted};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::host::{CONTEXT_TOKENS, Host, eventually, read_until, says};
use test_support::double::Double;
use test_support::thinker::Thinker;

fn hello(more: Value) -> Value {
    let mut body =
        json!({ "model": "scripted", "stream": true, "messages": [{ "role": "user", "content": "Hello?" }] });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

#[test]
fn chunks_are_framed_as_clients_expect() {
    let host = Host::new(says("Good\n\nday."));
    let answer = host.post("/v1/chat/completions", &hello(json!({ "stream_options": { "include_usage": true } })));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert!(answer.text.ends_with("data: [DONE]\n\n"), "{}", answer.text);
    assert!(
        answer.text.split_terminator("\n\n").all(|block| block.starts_with("data: ") && !block.contains('\n')),
        "{}",
        answer.text
    );
    let chunks: Vec<Value> = answer.events().into_iter().map(|(_, chunk)| chunk).collect();
    assert_eq!(chunks.len(), 3, "a text, its end, the usage");
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == chunks[0]["id"]));
    let delta = json!({ "content": "Good\n\nday.", "role": "assistant" });
    assert_eq!(chunks[0]["choices"], json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]));
    assert_eq!(chunks[1]["choices"], json!([{ "index": 0, "delta": {}, "logprobs": null, "finish_reason": "stop" }]));
    assert_eq!(
        (&chunks[2]["choices"], &chunks[2]["usage"]["total_tokens"], &chunks[0]["usage"]),
        (&json!([]), &json!(8), &Value::Null)
    );
    let plain = host.post("/v1/chat/completions", &hello(json!({ "logprobs": true }))).events();
    assert_eq!(plain.len(), 2);
    assert!(plain[0].1.get("usage").is_none());
    let tokens = |chunk: usize| plain[chunk].1["choices"][0]["logprobs"]["content"].as_array().map(Vec::len);
    assert_eq!((tokens(0), tokens(1)), (Some(3), None), "beside the text of their tokens");
}

#[test]
fn a_thought_is_streamed_before_the_text() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).thought("chat", "Hm.", "Yes."));
    let events = host.post("/v1/chat/completions", &hello(json!({ "reasoning_effort": "low" }))).events();
    let deltas: Vec<&Value> = events.iter().map(|(_, chunk)| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(*deltas[0], json!({ "reasoning_content": "Hm.", "role": "assistant" }));
    assert_eq!(*deltas[1], json!({ "content": "Yes." }));
}

#[test]
fn choices_are_numbered() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("chat", "One.").answer("chat", "Two."));
    let events = host.post("/v1/chat/completions", &hello(json!({ "n": 2 }))).events();
    let text = |index: u64| -> Vec<Value> {
        let choices = events.iter().map(|(_, chunk)| &chunk["choices"][0]).filter(|choice| choice["index"] == index);
        choices.map(|choice| choice["delta"]["content"].clone()).collect()
    };
    assert_eq!((text(0), text(1)), (vec![json!("One."), Value::Null], vec![json!("Two."), Value::Null]));
}

/// The first choice is answered after the second.
#[test]
fn choices_begin_in_their_order_and_have_their_role_once() {
    let (gate, calls) = (Arc::new(Semaphore::new(0)), AtomicUsize::new(0));
    let waiting = Arc::clone(&gate);
    let script = Scripted::new(CONTEXT_TOKENS).answer("chat", "One.").answer("chat", "Two.");
    let host = Host::new(Double::new(script).answering(move |script, call| {
        let (waiting, is_first) = (Arc::clone(&waiting), calls.fetch_add(1, Ordering::SeqCst) == 0);
        Box::pin(async move {
            if is_first {
                waiting.acquire().await.expect("it stays open").forget();
            }
            script.call(call).await
        })
    }));
    let body = hello(json!({ "n": 2 })).to_string();
    let socket = host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
    let ends = |index: usize| (json!(index), json!({}));
    let mut deltas: Vec<(Value, Value)> = Vec::new();
    for line in BufReader::new(&socket).lines().map_while(Result::ok) {
        let Some(Ok(mut chunk)) = line.strip_prefix("data: ").map(serde_json::from_str::<Value>) else { continue };
        let choice = &mut chunk["choices"][0];
        deltas.push((choice["index"].take(), choice["delta"].take()));
        if deltas.last() == Some(&ends(1)) {
            gate.add_permits(1);
        }
    }
    let begins = |index: usize, text: &str| (json!(index), json!({ "role": "assistant", "content": text }));
    assert_eq!(deltas, [begins(0, ""), begins(1, "One."), ends(1), (json!(0), json!({ "content": "Two." })), ends(0)]);
    let empty = Host::new(says("")).post("/v1/chat/completions", &hello(json!({}))).events();
    assert_eq!((empty.len(), &empty[0].1["choices"][0]["delta"]["role"]), (1, &json!("assistant")));
}

/// The second choice fails after the first has started.
#[test]
fn a_failure_in_the_middle_is_the_last_event() {
    let failing = Scripted::new(CONTEXT_TOKENS)
        .answer("chat", "One.")
        .fail("chat", CallError::Failed { step: "chat", reason: "no".into() });
    let answer = Host::new(failing).post("/v1/chat/completions", &hello(json!({ "n": 2 })));
    let (name, last) = answer.events().pop().expect("events");
    assert_eq!((answer.status, name.as_str(), &last["error"]["code"]), (200, "error", &json!("internal")));
    assert!(!answer.text.contains("[DONE]"));
}

/// It fails after the head of the response, and before the first event.
#[test]
fn a_failure_in_a_stream_of_anthropics_api_has_its_form() {
    let is_sent = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&is_sent);
    let host = Host::new(Double::new(says("")).answering(move |_, _| {
        let waits = Arc::clone(&waits);
        Box::pin(async move {
            waits.acquire().await.expect("it stays open").forget();
            Err(CallError::Failed { step: "messages", reason: "no".into() })
        })
    }));
    let body = hello(json!({ "max_tokens": 9 })).to_string();
    let socket = host.open("POST", "/v1/messages", &[("content-type", "application/json")], body.as_bytes());
    read_until(&socket, "text/event-stream");
    is_sent.add_permits(1);
    read_until(&socket, "\"type\":\"api_error\"");
}

#[test]
fn a_disconnect_cancels_the_calls() {
    let thinker = Thinker::default();
    let host = Host::new(thinker.clone());
    let check = |stream: bool, times: usize| {
        let body = json!({ "model": "thinker", "stream": stream, "messages": [{ "role": "user", "content": "?" }] })
            .to_string();
        let socket =
            host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
        if stream {
            read_until(&socket, "Well");
        }
        eventually("the call begins", || thinker.begun() == times);
        assert_eq!(thinker.given_up(), times - 1);
        drop(socket);
        eventually("the call is given up", || thinker.given_up() == times);
    };
    check(true, 1);
    check(false, 2);
    // Its permit is free again.
    eventually("only this request is in flight", || {
        host.get("/metrics").text.contains("memlocal_requests_in_flight 1\n")
    });
}

#[test]
fn a_stopping_server_drains_or_aborts_responses() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.drain = std::time::Duration::from_millis(50));
    let body =
        json!({ "model": "thinker", "stream": true, "messages": [{ "role": "user", "content": "?" }] }).to_string();
    let socket = host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
    read_until(&socket, "Well");
    drop(host);
    eventually("the call is given up with the server", || thinker.given_up() == 1);
}
