//! Files, vector stores and the search over them.

use std::fs::File;
use std::sync::Arc;
use std::thread;

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};

/// Uploads a file as OpenAI's clients do.
pub fn upload(host: &Host, name: &str, purpose: &str, content: &str) -> Answer {
    let (kind, body) = form(name, purpose, content);
    host.send("POST", "/v1/files", &[("content-type", kind)], &body)
}

/// The form of an upload, and its content type.
pub fn form(name: &str, purpose: &str, content: &str) -> (&'static str, String) {
    let body = format!(
        "--frontier\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--frontier\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{content}\r\n--frontier--\r\n"
    );
    ("multipart/form-data; boundary=frontier", body)
}

pub fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// The names of all that is in the folder of files, in order.
fn kept(host: &Host) -> Vec<String> {
    let entries = std::fs::read_dir(host.folder.path().join("files")).expect("the folder is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let mut names: Vec<String> = entries.map(|entry| name(entry).expect("UTF-8")).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_a_crash_left_of_an_upload_is_deleted_on_start() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "user_data", "The wall broke.").json());
    let whole = kept(&host);
    let folder = Arc::clone(&host.folder);
    drop(host);
    // As after a crash behind the move of the content, and one while the record was written.
    let digits = "0123456789abcdef".repeat(2);
    for left in ["content", "new"] {
        let path = folder.path().join("files").join(format!("file-{digits}.{left}"));
        std::fs::write(path, "A secret.").expect("it is written");
    }
    let host = Host::on(folder, Arc::new(Scripted::new(CONTEXT_TOKENS)), |_| {});
    assert_eq!(kept(&host), whole);
    assert_eq!(host.get(&format!("/v1/files/{file}/content")).text, "The wall broke.");
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
    // As between the two steps of a deletion.
    std::fs::remove_file(host.folder.path().join(format!("files/{}.content", id(&file)))).expect("it is there");
    host.get(&format!("{path}/content")).refused(404, "not_found");
    assert_eq!(host.delete(&path).json()["deleted"], true);
    host.get(&path).refused(404, "not_found");
    let left: Vec<_> = kept(&host);
    assert_eq!(left, ["changes.lock", "lock"]);
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
    host.post(&format!("{path}/search"), &json!({ "query": [] })).refused(400, "invalid_value");
    assert_eq!(host.delete(&place).json()["deleted"], true);
    let corpus = format!("/v1/corpora/{}/documents", id(&store));
    assert_eq!(host.get(&corpus).json()["documents"], json!([]));
    assert_eq!(host.get(&format!("/v1/files/{file}")).status, 200, "the file itself stays");
    assert_eq!(host.delete(&path).json()["deleted"], true);
    host.get(&path).refused(404, "not_found");
}

#[test]
fn all_conversations_of_a_file_are_deleted_with_it() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let chat = r#"{"messages": [{"role": "user", "content": "Did the wall break?"}, {"role": "assistant", "content": "Yes."}]}"#;
    let file = id(&upload(&host, "chats.jsonl", "assistants", &format!("{chat}\n{chat}\n")).json());
    let other = id(&upload(&host, "chats.jsonl#2.txt", "assistants", "The wall broke.").json());
    let store = id(&host.post("/v1/vector_stores", &json!({ "file_ids": [file] })).json());
    let place = format!("/v1/vector_stores/{store}/files/{file}");
    eventually("it is ingested", || host.get(&place).json()["status"] == "completed");
    let documents = || host.get(&format!("/v1/corpora/{store}/documents")).json()["documents"].clone();
    assert_eq!(documents().as_array().map(Vec::len), Some(2));
    assert_eq!(host.get(&format!("/v1/vector_stores/{store}/files")).json()["data"].as_array().map(Vec::len), Some(1));
    host.post(&format!("/v1/vector_stores/{store}/files"), &json!({ "file_id": other }));
    let place_of_other = format!("/v1/vector_stores/{store}/files/{other}");
    eventually("it is ingested", || host.get(&place_of_other).json()["status"] == "completed");
    // One of them alone leaves the file.
    let one = documents()[0]["id"].to_string();
    assert_eq!(host.delete(&format!("/v1/corpora/{store}/documents/{one}")).status, 204);
    assert_eq!(host.get(&place).json()["status"], "completed");
    assert_eq!(host.delete(&place).json()["deleted"], true);
    assert_eq!(documents().as_array().map(Vec::len), Some(1), "another file whose name has a # stays");
    host.get(&place).refused(404, "not_found");
}

#[test]
fn what_is_found_in_an_export_is_of_its_file() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let turn = |role: &str, text: &str| json!({ "role": role, "content": text });
    let chat = json!({ "messages": [turn("user", "Did the wall break?"), turn("assistant", "Yes.")] });
    let file = id(&upload(&host, "chats.jsonl", "assistants", &format!("{chat}\n{chat}\n")).json());
    let store =
        format!("/v1/vector_stores/{}", id(&host.post("/v1/vector_stores", &json!({ "file_ids": [file] })).json()));
    let place = format!("{store}/files/{file}");
    eventually("it is ingested", || host.get(&place).json()["status"] == "completed");
    let changed = host.post(&place, &json!({ "attributes": { "year": 1921 } }));
    assert_eq!(changed.status, 200, "{}", changed.text);
    let found = host.post(&format!("{store}/search"), &json!({ "query": "wall" })).json();
    let first = &found["data"][0];
    assert_eq!((&first["file_id"], &first["attributes"]), (&json!(file), &json!({ "year": 1921 })), "{found}");
    let content = host.get(&format!("{place}/content")).json();
    let texts = content["data"].as_array().unwrap_or_else(|| panic!("{content}"));
    assert!(
        texts.len() == 2 && texts.iter().all(|part| part["text"].as_str().is_some_and(|text| text.contains("wall")))
    );
}

#[test]
fn attributes_are_checked_wherever_they_are_set() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke.").json());
    let path = format!("/v1/vector_stores/{}", id(&host.post("/v1/vector_stores", &json!({})).json()));
    let (files, batches) = (format!("{path}/files"), format!("{path}/file_batches"));
    let (good, bad) = (json!({ "year": 1921 }), json!({ "years": [1921] }));
    let refused = |path: &str, body: Value| {
        let answer = host.post(path, &body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], "attributes", "{}", answer.text);
    };
    refused(&files, json!({ "file_id": file, "attributes": bad }));
    refused(&batches, json!({ "file_ids": [file], "attributes": bad }));
    refused(&batches, json!({ "files": [{ "file_id": file, "attributes": bad }] }));
    assert_eq!(host.get(&files).json()["data"], json!([]));
    let added = host.post(&files, &json!({ "file_id": file, "attributes": good })).json();
    assert_eq!(added["attributes"], good);
    let place = format!("{files}/{file}");
    refused(&place, json!({ "attributes": bad }));
    assert_eq!(host.get(&place).json()["attributes"], good);
}

#[test]
fn a_field_of_a_file_of_a_batch_that_has_no_effect_is_named() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke.").json());
    let path = format!("/v1/vector_stores/{}/file_batches", id(&host.post("/v1/vector_stores", &json!({})).json()));
    let file = json!({ "file_id": file, "chunking_strategy": { "type": "auto" } });
    let added = host.post(&path, &json!({ "files": [file] }));
    assert_eq!((added.status, added.warning()), (200, "ignored fields: files[0].chunking_strategy"));
}

#[test]
fn files_of_one_name_that_are_added_at_once_become_documents_of_their_own() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let store = id(&host.post("/v1/vector_stores", &json!({})).json());
    let new = |number: usize| id(&upload(&host, "wall.txt", "assistants", &format!("Wall {number} broke.")).json());
    let files: Vec<String> = (0..8).map(new).collect();
    let path = format!("/v1/vector_stores/{store}/files");
    thread::scope(|scope| {
        for file in &files {
            let (host, path) = (&host, &path);
            scope.spawn(move || assert_eq!(host.post(path, &json!({ "file_id": file })).status, 200));
        }
    });
    for file in &files {
        eventually("it is ingested", || host.get(&format!("{path}/{file}")).json()["status"] == "completed");
    }
    let documents = host.get(&format!("/v1/corpora/{store}/documents")).json();
    assert_eq!(documents["documents"].as_array().map(Vec::len), Some(8), "{documents}");
}

#[test]
fn a_file_that_is_named_twice_makes_no_vector_store() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke.").json());
    host.post("/v1/vector_stores", &json!({ "file_ids": [file, file] })).refused(400, "invalid_value");
    assert_eq!(host.get("/v1/vector_stores").json()["data"], json!([]));
}

#[test]
fn a_vector_store_whose_files_cannot_be_added_is_not_made() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke.").json());
    std::fs::remove_dir_all(host.folder.path().join("uploads")).expect("it is there");
    let new = json!({ "name": "Pell", "file_ids": [file] });
    host.post("/v1/vector_stores", &new).refused(500, "internal");
    assert_eq!(host.get("/v1/vector_stores").json()["data"], json!([]));
}

#[test]
fn new_metadata_leaves_the_age_of_a_corpus() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    host.corpus("pell", &[("wall.txt", "The wall broke.")]);
    let created = host.get("/v1/vector_stores/pell").json()["created_at"].take();
    assert!(created.as_u64() > Some(0), "{created}");
    let changed = host.post("/v1/vector_stores/pell", &json!({ "metadata": { "a": "b" } })).json();
    assert_eq!((&changed["created_at"], &changed["metadata"]), (&created, &json!({ "a": "b" })));
}

#[test]
fn vector_stores_are_listed_while_texts_are_removed_from_one() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    host.corpus("pell", &[("wall.txt", "The wall broke.")]);
    host.corpus("tern", &[("lamp.txt", "The lamp was out.")]);
    // As a removal does.
    let readers = File::open(host.folder.path().join("corpora/pell/readers")).expect("there were readers");
    readers.lock().expect("they have ended");
    let listed = host.get("/v1/vector_stores?order=asc").json();
    let shown = |at: usize, field: &str| listed["data"][at][field].clone();
    assert_eq!([shown(0, "id"), shown(1, "id")], ["pell", "tern"]);
    assert_eq!([shown(0, "status"), shown(1, "status")], ["in_progress", "completed"]);
    assert_eq!(shown(0, "file_counts")["total"], 1);
}

#[test]
fn a_file_is_not_deleted_while_a_corpus_that_may_have_it_cannot_be_opened() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "wall.txt", "assistants", "The wall broke.").json());
    let store = id(&host.post("/v1/vector_stores", &json!({ "file_ids": [file] })).json());
    let place = format!("/v1/vector_stores/{store}/files/{file}");
    eventually("it is ingested", || host.get(&place).json()["status"] == "completed");
    let path = format!("/v1/files/{file}");
    // As a removal of another document does.
    let readers = host.folder.path().join(format!("corpora/{store}/readers"));
    let readers = File::open(readers).expect("there were readers");
    readers.lock().expect("they have ended");
    host.delete(&path).refused(409, "conflict");
    // Closing it is not enough: a process that another test is starting may hold a duplicate of its descriptor.
    readers.unlock().expect("it is locked");
    assert_eq!(host.delete(&path).json()["deleted"], true);
    assert_eq!(host.get(&format!("/v1/corpora/{store}/documents")).json()["documents"], json!([]));
}

#[test]
fn nothing_is_left_of_files_whose_records_cannot_be_written() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let new = |name: &str| id(&upload(&host, name, "assistants", "The wall broke.").json());
    let [first, second] = ["wall.txt", "lamp.txt"].map(new);
    let store = id(&host.post("/v1/vector_stores", &json!({})).json());
    let path = format!("/v1/vector_stores/{store}");
    // A folder in the place of the second record.
    let record = host.folder.path().join(format!("corpora/{store}/files/{second}.json"));
    std::fs::create_dir_all(&record).expect("a folder can be made");
    host.post(&format!("{path}/file_batches"), &json!({ "file_ids": [first, second] })).refused(500, "internal");
    std::fs::remove_dir(&record).expect("it is empty");
    assert_eq!(host.get(&format!("{path}/files")).json()["data"], json!([]));
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(Scripted::new(CONTEXT_TOKENS)), |_| {});
    assert_eq!(host.get("/v1/jobs").json()["jobs"], json!([]), "no job is taken over");
}

#[test]
fn a_file_that_cannot_be_read_has_failed() {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS));
    let file = id(&upload(&host, "lamp.jpg", "assistants", "\0").json());
    let store = id(&host.post("/v1/vector_stores", &json!({})).json());
    host.post(&format!("/v1/vector_stores/{store}/files"), &json!({ "file_id": file }));
    let place = format!("/v1/vector_stores/{store}/files/{file}");
    eventually("it has failed", || host.get(&place).json()["status"] == "failed");
    let added = host.get(&place).json();
    assert_eq!(added["last_error"], json!({ "code": "unsupported_file", "message": "unsupported file type" }));
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
    let streamed = host.post("/v1/responses", &with(&body, "stream", json!(true)));
    let items = response["output"].as_array().unwrap_or_else(|| panic!("{response}"));
    assert_eq!(items[0]["type"], "file_search_call");
    assert_eq!(items[0]["results"][0]["file_id"], file.as_str());
    let cited = items.iter().find(|item| item["type"] == "message").expect("a message");
    let annotation = &cited["content"][0]["annotations"][0];
    assert_eq!((&annotation["type"], &annotation["file_id"]), (&json!("file_citation"), &json!(file)));

    let events = streamed.events();
    let place = |name: &str| events.iter().position(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}"));
    let order = [
        "response.created",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.completed",
    ];
    assert!(order.map(place).is_sorted(), "{:?}", order.map(place));
    let annotated = &events[place("response.output_text.annotation.added")].1["annotation"];
    assert_eq!(annotated, annotation, "as in a response that is not streamed");
    let whole = &events[place("response.completed")].1["response"]["output"];
    assert_eq!(whole[0]["results"], items[0]["results"]);
    let deltas = events.iter().filter(|(name, _)| name == "response.output_text.delta");
    let text: String = deltas.filter_map(|(_, event)| event["delta"].as_str()).collect();
    assert_eq!(cited["content"][0]["text"], text.as_str());
}

fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}
