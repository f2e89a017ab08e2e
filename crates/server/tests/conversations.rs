//! Conversations that responses continue.

use std::sync::Arc;

use calls::Scripted;
use serde_json::{Value, json};

use crate::files::id;
use crate::host::{CONTEXT_TOKENS, Host, eventually};
use test_support::thinker::Thinker;

#[test]
fn a_response_continues_its_conversation() {
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).answer("response", "One.").answer("response", "Two."));
    let host = Host::with(caller.clone(), |_| {});
    let begun = json!({ "metadata": { "a": "b" }, "items": [{ "role": "user", "content": "Count." }] });
    let conversation = host.post("/v1/conversations", &begun).json();
    let path = format!("/v1/conversations/{}", id(&conversation));
    for input in ["On.", "Further."] {
        let body = json!({ "model": "scripted", "input": input, "conversation": conversation["id"] });
        assert_eq!(host.post("/v1/responses", &body).json()["conversation"]["id"], conversation["id"]);
    }
    let turns = caller.seen()[1].prompt.messages();
    let texts: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(texts, ["Count.", "On.", "One.", "Further."]);
    let items = host.get(&format!("{path}/items?order=asc")).json();
    assert_eq!(items["data"].as_array().map(Vec::len), Some(5));
    let first = format!("{path}/items/{}", id(&items["data"][0]));
    assert_eq!(host.get(&first).json()["content"][0]["text"], "Count.");
    host.delete(&first);
    host.get(&first).refused(404, "not_found");
    let changed = host.post(&path, &json!({ "metadata": { "c": "d" } })).json();
    assert_eq!(changed["metadata"], json!({ "c": "d" }));
    assert_eq!(host.delete(&path).json()["deleted"], true);
    host.get(&path).refused(404, "not_found");
    let body = json!({ "model": "scripted", "input": "On.", "conversation": conversation["id"] });
    host.post("/v1/responses", &body).refused(404, "not_found");
}

#[test]
fn a_conversation_is_continued_by_one_response_at_a_time() {
    let thinker = Thinker::default();
    let host = Host::new(thinker.clone());
    let conversation = host.post("/v1/conversations", &json!({})).json();
    let body = json!({ "model": "thinker", "input": "On.", "conversation": conversation["id"], "background": true });
    let begun = host.post("/v1/responses", &body).json();
    eventually("it begins", || thinker.begun() == 1);
    host.post("/v1/responses", &body).refused(409, "conversation_locked");
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    let new = json!({ "items": [{ "role": "user", "content": "Further." }] });
    host.post(&items, &new).refused(409, "conversation_locked");
    assert_eq!(host.get(&items).json()["data"], json!([]), "it can be read");
    let other = json!({ "model": "thinker", "input": "On.", "background": true });
    assert_eq!(host.post("/v1/responses", &other).status, 200);
    host.post(&format!("/v1/responses/{}/cancel", id(&begun)), &json!({}));
    eventually("it is released", || host.post(&items, &new).status == 200);
}

#[test]
fn no_response_is_made_for_a_full_conversation() {
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).answer("response", "One."));
    let host = Host::with(caller.clone(), |_| {});
    let conversation = host.post("/v1/conversations", &json!({})).json();
    let file = host.folder.path().join(format!("conversations/{}.json", id(&conversation)));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).expect("it is kept")).expect("it is JSON");
    let item = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "On." }] });
    record["items"] = vec![item; 4095].into();
    std::fs::write(&file, record.to_string()).expect("it can be written");
    let body = json!({ "model": "scripted", "input": "On.", "conversation": conversation["id"] });
    let refused = host.post("/v1/responses", &body).refused(400, "invalid_value");
    assert!(refused.contains("at most 4096 items, and this one would have 4097"), "{refused}");
    assert!(caller.seen().is_empty());
}
