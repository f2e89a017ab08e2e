//! How much at once, how large, how long.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::host::{Host, Thinker, eventually, says};

fn question(model: &str) -> serde_json::Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "?" }] })
}

#[test]
fn a_full_server_says_when_to_come_again() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.max_requests = 2);
    let body = question("thinker").to_string();
    let ask = || host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
    let (first, second) = (ask(), ask());
    eventually("both are being answered", || thinker.begun() == 2);
    let third = host.post("/v1/chat/completions", &question("thinker"));
    third.refused(429, "overloaded");
    assert_eq!(third.header("retry-after"), Some("1"));
    assert_eq!(host.get("/health").status, 200, "what needs no model is answered");
    drop((first, second));
    eventually("places are free again", || thinker.given_up() == 2);
    eventually("others are let in", || {
        let socket = ask();
        // A refusal comes at once; an answer of this model never.
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket can have a time limit");
        let _ = socket.peek(&mut [0]);
        thinker.begun() > 2
    });
}

#[test]
fn a_late_answer_is_given_up() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.deadline = Duration::from_millis(20));
    host.post("/v1/chat/completions", &question("thinker")).refused(504, "deadline");
    assert_eq!((thinker.begun(), thinker.given_up()), (1, 1));
}

#[test]
fn large_bodies_are_refused() {
    let host = Host::with(Arc::new(says("Yes.")), |config| {
        config.max_body_bytes = 1000;
        config.max_upload_bytes = 3000;
    });
    let chat = |bytes: usize| {
        let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "x".repeat(bytes) }] });
        host.post("/v1/chat/completions", &body)
    };
    assert_eq!(chat(500).status, 200);
    assert!(chat(1000).refused(413, "request_too_large").contains("1000 bytes"));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let upload = |bytes: usize| host.upload("a", &[("a.txt", "x".repeat(bytes).as_bytes())], "rag");
    assert_eq!(upload(2000).status, 202);
    assert!(upload(4000).refused(413, "request_too_large").contains("3000 bytes"));
}

#[test]
fn health_readiness_and_counts() {
    let host = Host::new(says("Good day."));
    assert_eq!(host.get("/health").json(), json!({ "status": "ok" }));
    assert_eq!(host.get("/ready").json()["models"], json!(["scripted", "letters"]));
    host.post("/v1/chat/completions", &question("scripted"));
    host.get("/v1/models/none");
    let metrics = host.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4"));
    for line in [
        "memlocal_requests_total{method=\"POST\",route=\"/v1/chat/completions\",status=\"200\"} 1",
        "memlocal_requests_total{method=\"GET\",route=\"/v1/models/{model}\",status=\"404\"} 1",
        "memlocal_calls_total{role=\"responder\"} 1",
        "memlocal_output_tokens_total{role=\"responder\"} 3",
        "# TYPE memlocal_requests_in_flight gauge",
    ] {
        assert!(metrics.text.lines().any(|found| found == line), "{line} in {}", metrics.text);
    }
}
