//! Batches of requests.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{CallError, Caller, Scripted};
use serde_json::{Value, json};
use test_support::double::Double;
use tokio::sync::Semaphore;

use crate::files::{id, upload};
use crate::host::{CONTEXT_TOKENS, Host, eventually};

#[test]
fn a_bad_line_does_not_end_a_batch() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("chat", "Yes."));
    let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Well?" }] });
    let line = |id: &str, body: &Value| {
        json!({ "custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body }).to_string()
    };
    let input = format!("{}\n{{\n{}\n", line("a", &body), line("b", &json!({ "model": "none", "messages": [] })));
    let file = id(&upload(&host, "in.jsonl", "batch", &input).json());
    let asked = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h" });
    let path = format!("/v1/batches/{}", id(&host.post("/v1/batches", &asked).json()));
    eventually("it ends", || host.get(&path).json()["status"] == "completed");
    let batch = host.get(&path).json();
    assert_eq!(batch["request_counts"], json!({ "total": 3, "completed": 1, "failed": 2 }));
    let lines = |name: &str| {
        let file = batch[name].as_str().unwrap_or_else(|| panic!("{batch}"));
        let text = host.get(&format!("/v1/files/{file}/content")).text;
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect::<Vec<Value>>()
    };
    let replies = lines("output_file_id");
    assert_eq!(replies[0]["custom_id"], "a");
    assert_eq!(replies[0]["response"]["body"]["choices"][0]["message"]["content"], "Yes.");
    assert_eq!(lines("error_file_id").len(), 2);
    let cancelled = host.post(&format!("{path}/cancel"), &json!({}));
    cancelled.refused(409, "conflict");
    assert!(cancelled.json()["error"].get("hint").is_none(), "jobs have no part in it: {}", cancelled.text);
}

/// A model that answers as many chats as there are permits; the others wait.
#[derive(Clone)]
struct Gate {
    permits: Arc<Semaphore>,
    begun: Arc<AtomicUsize>,
}

impl Gate {
    fn new(permits: usize) -> Gate {
        Gate { permits: Arc::new(Semaphore::new(permits)), begun: Arc::default() }
    }

    fn host(&self) -> Host {
        let gate = self.clone();
        Host::new(Double::new(yes()).answering(move |script, call| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.begun.fetch_add(1, Ordering::SeqCst);
                gate.permits.acquire().await.expect("it stays open").forget();
                script.call(call).await
            })
        }))
    }
}

fn yes() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("chat", "Yes.")
}

/// Begins a batch of this many chats, and returns its path.
fn begin(host: &Host, requests: usize) -> String {
    let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Well?" }] });
    let line = |number: usize| {
        json!({ "custom_id": number.to_string(), "url": "/v1/chat/completions", "body": body }).to_string() + "\n"
    };
    let input: String = (0..requests).map(line).collect();
    let file = id(&upload(host, "in.jsonl", "batch", &input).json());
    let asked = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h" });
    format!("/v1/batches/{}", id(&host.post("/v1/batches", &asked).json()))
}

/// The ids of the requests that have a reply, in order.
fn replied(host: &Host, batch: &Value) -> Vec<String> {
    let file = batch["output_file_id"].as_str().unwrap_or_else(|| panic!("{batch}"));
    let text = host.get(&format!("/v1/files/{file}/content")).text;
    let line = |line| serde_json::from_str::<Value>(line).expect("a line is JSON");
    let mut ids: Vec<String> =
        text.lines().map(|text| line(text)["custom_id"].as_str().expect("an id").into()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_batch_resumes_after_a_restart_with_the_requests_that_have_no_reply() {
    let host = Gate::new(2).host();
    let path = begin(&host, 6);
    eventually("two are answered", || host.get(&path).json()["request_counts"]["completed"] == 2);
    let folder = Arc::clone(&host.folder);
    drop(host);
    let caller = Arc::new(yes());
    let host = Host::on(folder, caller.clone(), |_| {});
    eventually("it ends", || host.get(&path).json()["status"] == "completed");
    let batch = host.get(&path).json();
    assert_eq!(batch["request_counts"], json!({ "total": 6, "completed": 6, "failed": 0 }));
    assert_eq!(replied(&host, &batch), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(caller.seen().len(), 4, "two had their replies");
}

#[test]
fn a_batch_whose_input_is_gone_fails_and_keeps_the_replies_that_are_finished() {
    let host = Gate::new(2).host();
    let path = begin(&host, 6);
    eventually("two are answered", || host.get(&path).json()["request_counts"]["completed"] == 2);
    let input = host.get(&path).json()["input_file_id"].as_str().expect("an id").to_owned();
    assert_eq!(host.delete(&format!("/v1/files/{input}")).json()["deleted"], true);
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(yes()), |_| {});
    eventually("it has failed", || host.get(&path).json()["status"] == "failed");
    let batch = host.get(&path).json();
    assert_eq!(batch["errors"]["data"][0]["message"], format!("there is no file {input}"));
    assert_eq!(replied(&host, &batch).len(), 2);
}

/// A batch of six chats of which four have begun, and its path.
fn half_begun() -> (Gate, Host, String) {
    let gate = Gate::new(0);
    let host = gate.host();
    let path = begin(&host, 6);
    eventually("four have begun", || gate.begun.load(Ordering::SeqCst) == 4);
    (gate, host, path)
}

#[test]
fn a_cancelled_batch_keeps_the_replies_that_are_finished() {
    let (gate, host, path) = half_begun();
    assert_eq!(host.post(&format!("{path}/cancel"), &json!({})).json()["status"], "cancelling");
    gate.permits.add_permits(6);
    eventually("it ends", || host.get(&path).json()["status"] == "cancelled");
    let batch = host.get(&path).json();
    assert_eq!(batch["request_counts"], json!({ "total": 6, "completed": 4, "failed": 0 }));
    assert_eq!(replied(&host, &batch).len(), 4);
    assert_eq!(gate.begun.load(Ordering::SeqCst), 4, "no further one is asked");
}

#[test]
fn a_batch_that_waits_for_its_turn_is_cancelled_at_once() {
    let (gate, host, first) = half_begun();
    let second = begin(&host, 2);
    assert_eq!(host.post(&format!("{second}/cancel"), &json!({})).json()["status"], "cancelled");
    let third = begin(&host, 1);
    gate.permits.add_permits(7);
    for path in [first, third] {
        eventually("it ends", || host.get(&path).json()["status"] == "completed");
    }
    assert_eq!(host.get(&second).json()["status"], "cancelled");
    assert_eq!(gate.begun.load(Ordering::SeqCst), 7, "nothing of the second is asked");
}

#[test]
fn a_batch_that_waits_for_a_busy_endpoint_can_be_cancelled() {
    let busy = CallError::Busy { endpoint: "http://elsewhere".into(), pause_seconds: 3600 };
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).fail("chat", busy));
    let host = Host::with(caller.clone(), |_| {});
    let path = begin(&host, 1);
    eventually("it is refused", || caller.seen().len() == 1);
    assert_eq!(host.post(&format!("{path}/cancel"), &json!({})).json()["status"], "cancelling");
    eventually("it ends", || host.get(&path).json()["status"] == "cancelled");
    assert_eq!(caller.seen().len(), 1, "it is sent again after an hour");
    assert_eq!(host.get(&path).json()["request_counts"], json!({ "total": 1, "completed": 0, "failed": 0 }));
}

#[test]
fn responses_of_a_batch_are_kept_on_request_only() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("response", "Yes."));
    let line =
        |body: Value| json!({ "custom_id": body["input"], "url": "/v1/responses", "body": body }).to_string() + "\n";
    let input = line(json!({ "model": "scripted", "input": "One?" }))
        + &line(json!({ "model": "scripted", "input": "Two?", "store": true }));
    let file = id(&upload(&host, "in.jsonl", "batch", &input).json());
    let asked = json!({ "input_file_id": file, "endpoint": "/v1/responses" });
    let path = format!("/v1/batches/{}", id(&host.post("/v1/batches", &asked).json()));
    eventually("it ends", || host.get(&path).json()["status"] == "completed");
    let file = host.get(&path).json()["output_file_id"].as_str().expect("a file").to_owned();
    let text = host.get(&format!("/v1/files/{file}/content")).text;
    let mut kept: Vec<(String, u16)> = Vec::new();
    for line in text.lines() {
        let reply: Value = serde_json::from_str(line).expect("a line is JSON");
        let response = format!("/v1/responses/{}", id(&reply["response"]["body"]));
        kept.push((reply["custom_id"].as_str().expect("an id").to_owned(), host.get(&response).status));
    }
    kept.sort_unstable();
    assert_eq!(kept, [("One?".to_owned(), 404), ("Two?".to_owned(), 200)]);
}

#[test]
fn a_batch_that_was_being_cancelled_is_cancelled_after_a_restart() {
    let (_gate, host, path) = half_begun();
    host.post(&format!("{path}/cancel"), &json!({}));
    let folder = Arc::clone(&host.folder);
    drop(host);
    let caller = Arc::new(yes());
    let host = Host::on(folder, caller.clone(), |_| {});
    eventually("it ends", || host.get(&path).json()["status"] == "cancelled");
    assert!(caller.seen().is_empty());
}

#[test]
fn a_batch_whose_replies_were_moved_before_the_server_ended_is_not_answered_again() {
    for (begun, ended) in [("finalizing", "completed"), ("cancelling", "cancelled")] {
        let host = Gate::new(3).host();
        let path = begin(&host, 3);
        eventually("it ends", || host.get(&path).json()["status"] == "completed");
        let before = host.get(&path).json();
        let record = host.folder.path().join(format!("batches/{}.json", id(&before)));
        let folder = Arc::clone(&host.folder);
        drop(host);
        let mut batch: Value = serde_json::from_slice(&fs::read(&record).expect("it is kept")).expect("it is JSON");
        (batch["status"], batch["output"]) = (json!(begun), Value::Null);
        fs::write(&record, batch.to_string()).expect("it can be written");
        let caller = Arc::new(yes());
        let host = Host::on(folder, caller.clone(), |_| {});
        eventually("it ends", || host.get(&path).json()["status"] == ended);
        let after = host.get(&path).json();
        assert_eq!(
            [&after["output_file_id"], &after["request_counts"]],
            [&before["output_file_id"], &before["request_counts"]]
        );
        assert_eq!(replied(&host, &after).len(), 3);
        assert!(caller.seen().is_empty(), "all had their replies");
    }
}

#[test]
fn two_servers_on_one_data_folder_do_not_answer_a_batch_twice() {
    let (gate, host, path) = half_begun();
    let caller = Arc::new(yes());
    let other = Host::on(Arc::clone(&host.folder), caller.clone(), |_| {});
    assert_eq!(other.get(&path).json()["status"], "in_progress");
    gate.permits.add_permits(6);
    eventually("it ends", || other.get(&path).json()["status"] == "completed");
    assert_eq!(other.get(&path).json()["request_counts"], json!({ "total": 6, "completed": 6, "failed": 0 }));
    assert!(caller.seen().is_empty(), "the first server has answered all");
}
