//! Files, vector stores and the search over them.

use std::sync::Arc;

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};

/// Uploads a file as OpenAI's clients do.
pub fn upload(host: &Host, name: &str, purpose: &str, content: &str) -> Answer {
    let body = format!(
        "--frontier\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--frontier\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{content}\r\n--frontier--\r\n"
    );
    let kind = [("content-type", "multipart/form-data; boundary=frontier")];
    host.send_bytes("POST", "/v1/files", &kind, body.as_bytes())
}

pub fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

fn is_empty(host: &Host, folder: &str) -> bool {
    let entries = std::fs::read_dir(host.folder.path().join(folder));
    entries.map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn a_file_is_kept_until_it_is_deleted() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = upload(&host, "wall.txt", "user_data", "The wall broke.").json();
    assert_eq!((&file["filename"], &file["bytes"]), (&json!("wall.txt"), &json!(15)));
    let path = format!("/v1/files/{}", id(&file));
    assert_eq!(host.get(&path).json(), file);
    assert_eq!(host.get(&format!("{path}/content")).text, "The wall broke.");
    assert_eq!(host.get("/v1/files").json()["data"], json!([file]));
    assert_eq!(host.get("/v1/files?purpose=batch").json()["data"], json!([]));
    assert_eq!(host.delete(&path).json()["deleted"], true);
    host.get(&path).refused(404, "not_found");
    assert!(is_empty(&host, "files"));
    upload(&host, "a.txt", "fine-tune", "x").refused(400, "invalid_value");
}

#[test]
fn a_file_of_a_vector_store_is_a_document_of_its_corpus() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke in May.").json());
    let store = host.post("/v1/vector_stores", &json!({ "name": "Pell", "metadata": { "a": "b" } })).json();
    let path = format!("/v1/vector_stores/{}", id(&store));
    assert_eq!((&store["name"], &store["metadata"]["a"]), (&json!("Pell"), &json!("b")));
    let files = format!("{path}/files");
    host.post(&files, &json!({ "file_id": file }));
    let place = format!("{files}/{file}");
    eventually("it is ingested", || host.get(&place).json()["status"] == "completed");
    host.post(&files, &json!({ "file_id": file })).refused(400, "invalid_value");
    assert_eq!(host.get(&path).json()["file_counts"]["completed"], 1);
    let found = host.post(&format!("{path}/search"), &json!({ "query": "wall" })).json();
    assert_eq!((&found["data"][0]["file_id"], &found["data"][0]["filename"]), (&json!(file), &json!("wall.txt")));
    assert_eq!(host.delete(&place).json()["deleted"], true);
    let corpus = format!("/v1/corpora/{}/documents", id(&store));
    assert_eq!(host.get(&corpus).json()["documents"], json!([]));
    assert_eq!(host.get(&format!("/v1/files/{file}")).status, 200, "the file itself stays");
    assert_eq!(host.delete(&path).json()["deleted"], true);
    host.get(&path).refused(404, "not_found");
}

#[test]
fn a_file_that_cannot_be_read_has_failed() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "lamp.jpg", "assistants", "x").json());
    let store = id(&host.post("/v1/vector_stores", &json!({})).json());
    let added = host.post(&format!("/v1/vector_stores/{store}/files"), &json!({ "file_id": file })).json();
    assert_eq!(added["status"], "failed");
    assert!(added["last_error"]["message"].is_string(), "{added}");
}

#[test]
fn an_answer_from_vector_stores_cites_files() {
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).answer("answer", "The wall broke in May."));
    let host = Host::with(caller, |_| {});
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke in May.").json());
    let store = id(&host.post("/v1/vector_stores", &json!({ "file_ids": [file] })).json());
    let place = format!("/v1/vector_stores/{store}/files/{file}");
    eventually("it is ingested", || host.get(&place).json()["status"] == "completed");
    let body = json!({ "model": "scripted", "input": "When did the wall break?",
        "include": ["file_search_call.results"],
        "tools": [{ "type": "file_search", "vector_store_ids": [store], "max_num_results": 3 }] });
    let response = host.post("/v1/responses", &body).json();
    let items = response["output"].as_array().unwrap_or_else(|| panic!("{response}"));
    assert_eq!(items[0]["type"], "file_search_call");
    assert_eq!(items[0]["results"][0]["file_id"], file.as_str());
    let cited = items.iter().find(|item| item["type"] == "message").expect("a message");
    let annotation = &cited["content"][0]["annotations"][0];
    assert_eq!((&annotation["type"], &annotation["file_id"]), (&json!("file_citation"), &json!(file)));
}
