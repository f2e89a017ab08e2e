//! Notes: texts of the reader and saved answers beside a corpus.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::{Answer, Host};
use crate::threads::{QUESTION, WALL, host, script};

const NOTES: &str = "/v1/corpora/pell/notes";

/// A thread with one answer, and the answer.
fn asked(host: &Host) -> (String, Value) {
    let thread = host.post("/v1/corpora/pell/threads", &json!({})).json()["id"].as_str().expect("an id").to_owned();
    let body = json!({ "question": QUESTION, "method": "rag", "thread": thread });
    (thread, host.post("/v1/corpora/pell/ask", &body).json())
}

fn change(host: &Host, note: &Value, to: &Value) -> Answer {
    let path = format!("{NOTES}/{}", note["id"].as_str().expect("an id"));
    host.send("PATCH", &path, &[("content-type", "application/json")], &to.to_string())
}

#[test]
fn notes_are_written_changed_listed_and_deleted() {
    let host = host();
    let note = host.post(NOTES, &json!({ "text": "# Der Sturm\n\nWhich year?" }));
    assert_eq!((note.status, &note.json()["title"]), (201, &json!("Der Sturm")), "{}", note.text);
    let changed = change(&host, &note.json(), &json!({ "text": "1911." })).json();
    assert_eq!((&changed["title"], &changed["text"]), (&json!("Der Sturm"), &json!("1911.")));
    change(&host, &changed, &json!({ "text": " " })).refused(400, "invalid_value");
    host.post(NOTES, &json!({ "title": "none" })).refused(400, "invalid_value");
    host.post(NOTES, &json!({ "text": "x".repeat(32_769) })).refused(400, "invalid_value");

    // Another server on the same data has it too.
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(script()), |_| {});
    assert_eq!(host.get(NOTES).json()["notes"], json!([changed]));
    let path = format!("{NOTES}/{}", changed["id"].as_str().expect("an id"));
    assert_eq!(host.delete(&path).status, 204);
    host.delete(&path).refused(404, "not_found");
    host.delete(&format!("{NOTES}/note-../../memory")).refused(404, "not_found");
    host.get("/v1/corpora/none/notes").refused(404, "not_found");
    assert_eq!(host.get(NOTES).json()["notes"], json!([]));
}

#[test]
fn a_saved_answer_outlives_its_thread_and_goes_with_its_document() {
    let host = host();
    let (thread, answer) = asked(&host);
    let save = |text: &str, at: usize| {
        host.post(NOTES, &json!({ "text": text, "from": { "thread": thread, "turn": 0, "answer": at } }))
    };
    save("", 1).refused(400, "invalid_value");
    let plain = save("", 0).json();
    assert_eq!((&plain["title"], &plain["saved"]["question"]), (&json!(QUESTION), &json!(QUESTION)));
    assert_eq!(plain["saved"]["answer"]["citations"], answer["citations"]);
    save("Mine.", 0);
    assert_eq!(host.delete(&format!("/v1/corpora/pell/threads/{thread}")).status, 204);
    assert_eq!(host.get(NOTES).json()["notes"].as_array().map(Vec::len), Some(2));

    let id = host.get("/v1/corpora/pell/documents").json()["documents"][0]["id"].take();
    assert_eq!(host.delete(&format!("/v1/corpora/pell/documents/{id}")).status, 204);
    let notes = host.get(NOTES).json()["notes"].take();
    assert_eq!((notes.as_array().map(Vec::len), &notes[0]["text"]), (Some(1), &json!("Mine.")));
    assert_eq!(notes[0]["saved"], json!(null));
    assert_eq!(host.delete("/v1/corpora/pell").status, 204);
    host.corpus("pell", &[("wall.txt", WALL)]);
    assert_eq!(host.get(NOTES).json()["notes"], json!([]));
}

#[test]
fn a_server_without_threads_keeps_notes_of_the_reader_only() {
    let host = Host::with(Arc::new(script()), |config| config.keep_threads = false);
    host.corpus("pell", &[("wall.txt", WALL)]);
    let from = json!({ "thread": format!("thread-{:032x}", 1), "turn": 0, "answer": 0 });
    host.post(NOTES, &json!({ "from": from })).refused(409, "conflict");
    assert_eq!(host.post(NOTES, &json!({ "text": "Mine." })).status, 201);
}
