//! Batches of requests.

use calls::Scripted;
use serde_json::{Value, json};

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
    host.post(&format!("{path}/cancel"), &json!({})).refused(409, "conflict");
}
