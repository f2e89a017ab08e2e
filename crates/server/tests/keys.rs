//! API keys, and the isolation of their tenants.

use std::sync::Arc;

use serde_json::json;
use server::{Keys, KeysError, KeysFile};
use store::Corpora;

use crate::documents::left_by_a_killed_server;
use crate::host::{Answer, Host, eventually, says};

#[test]
fn each_tenant_sees_only_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| Keys::add(&file, name).expect("a new key"));
    let text = std::fs::read_to_string(&file).expect("the file is there");
    assert!(!text.contains(&ann) && !text.contains(&ann[3..]), "keys themselves are nowhere");
    let host =
        Host::with(Arc::new(says("Yes.")), |config| config.keys = Some(KeysFile::open(&file).expect("it reads back")));
    let send = |method: &str, path: &str, key: &str, body: &str| -> Answer {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        host.send(method, path, &headers[usize::from(key.is_empty())..], body)
    };

    let none = send("GET", "/v1/models", "", "");
    none.refused(401, "invalid_api_key");
    assert_eq!(none.header("www-authenticate"), Some("Bearer"));
    send("GET", "/v1/models", "ml-wrong", "").refused(401, "invalid_api_key");
    send("GET", "/metrics", "", "").refused(401, "invalid_api_key");
    send("POST", "/mcp", "", "{}").refused(401, "invalid_api_key");
    assert_eq!(send("GET", "/v1/models", &ann, "").status, 200);
    for open in ["/health", "/ready", "/", "/docs", "/openapi.json"] {
        assert_eq!(send("GET", open, "", "").status, 200, "{open}");
    }
    for key in ["", "ml-wrong"] {
        assert_eq!(send("GET", "/ready", key, "").json(), json!({ "status": "ready" }), "models are for holders");
    }
    assert!(send("GET", "/ready", &ann, "").json()["models"].is_array());

    assert_eq!(send("POST", "/v1/corpora", &ann, "{\"name\":\"diary\"}").status, 201);
    let text = json!({ "name": "a.txt", "text": "Ann's horse is grey.", "method": "rag" }).to_string();
    let job = send("POST", "/v1/corpora/diary/documents", &ann, &text).json();
    let job = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    assert_eq!(send("GET", &format!("{job}/events"), &ann, "").events().last().expect("an end").1["status"], "done");
    assert_eq!(send("GET", "/v1/corpora", &bob, "").json(), json!({ "corpora": [] }));
    send("GET", "/v1/corpora/diary/documents", &bob, "").refused(404, "not_found");
    send("DELETE", "/v1/corpora/diary", &bob, "").refused(404, "not_found");
    send("GET", &job, &bob, "").refused(404, "not_found");
    assert_eq!(send("GET", &job, &ann, "").status, 200);
    assert_eq!(send("POST", "/v1/corpora", &bob, "{\"name\":\"diary\"}").status, 201, "names are per tenant");
    assert!(host.folder.path().join("tenants/ann/corpora/diary").is_dir());

    // The same over MCP.
    let call = json!({ "name": "list_corpora", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string();
    let documents = |key: &str| {
        let bearer = format!("Bearer {key}");
        let accept = ("accept", "application/json, text/event-stream");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), accept];
        let answer = host.send("POST", "/mcp", &headers, &call).json();
        let listed = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("tools answer in JSON");
        listed["corpora"][0]["documents"].clone()
    };
    assert_eq!((documents(&ann), documents(&bob)), (json!(1), json!(0)));
}

#[test]
fn a_key_file_is_validated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let digest = "0".repeat(64);
    let check = |text: String, wrong: fn(&KeysError) -> bool| {
        std::fs::write(&file, &text).expect("it can be written");
        let error = Keys::read(&file).expect_err(&text);
        assert!(wrong(&error), "{text}: {error}");
    };
    check(format!("# remark\nann {digest}\nann {digest}\n"), |error| matches!(error, KeysError::Taken { .. }));
    check(format!("../ann {digest}"), |error| matches!(error, KeysError::Name { .. }));
    check("ann short".into(), |error| matches!(error, KeysError::Line { line: 1 }));
    check(format!("\nann {digest} more"), |error| matches!(error, KeysError::Line { line: 2 }));
    std::fs::write(&file, format!("ann {digest} # hers\n\n")).expect("it can be written");
    assert_eq!(Keys::read(&file).expect("it is right").names().collect::<Vec<_>>(), ["ann"]);
    assert!(matches!(Keys::add(&file, "ann"), Err(KeysError::Taken { .. })));
    assert!(matches!(Keys::add(&file, "Ann"), Err(KeysError::Name { .. })));
}

#[test]
fn an_unknown_key_cannot_be_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("keys");
    assert!(matches!(Keys::remove(&missing, "ann"), Err(KeysError::Unknown { name }) if name == "ann"));
    assert!(!missing.exists());
}

#[test]
fn a_key_can_be_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, format!("# those who ask\nann {} # hers\n", "0".repeat(64))).expect("it can be written");
    Keys::add(&file, "anna").expect("a new key");
    let names = || Keys::read(&file).expect("it is right").names().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(), ["ann", "anna"]);
    Keys::remove(&file, "ann").expect("she has one");
    assert_eq!(names(), ["anna"]);
    assert!(std::fs::read_to_string(&file).expect("it is there").starts_with("# those who ask\n"), "remarks stay");
    assert!(matches!(Keys::remove(&file, "ann"), Err(KeysError::Unknown { .. })));
    Keys::remove(&file, "anna").expect("she has one");
    Keys::add(&file, "ann").expect("the name is free again");
}

#[test]
fn keys_are_added_and_removed_while_the_server_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let keys = KeysFile::open(&file).expect("it need not be there");
    let host = Host::with(Arc::new(says("Yes.")), |config| config.keys = Some(keys));
    let status = |method: &str, path: &str, key: &str, body: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        host.send(method, path, &headers, body).status
    };
    let seen = |key: &str| status("GET", "/v1/corpora", key, "");
    assert_eq!(host.get("/v1/corpora").status, 200, "no key is required yet");

    let ann = Keys::add(&file, "ann").expect("a new key");
    host.get("/v1/corpora").refused(401, "invalid_api_key");
    assert_eq!(seen(&ann), 200);
    let bob = Keys::add(&file, "bob").expect("a new key");
    assert_eq!((seen(&ann), seen(&bob)), (200, 200));
    assert_eq!(status("POST", "/v1/corpora", &bob, "{\"name\":\"diary\"}"), 201);
    assert!(host.folder.path().join("tenants/bob/corpora/diary").is_dir(), "a new holder has a place of their own");

    let whole = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, format!("{whole}eve short\n")).expect("it can be written");
    assert_eq!((seen(&ann), seen(&bob)), (200, 200), "a damaged file changes nothing");
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!((seen(&ann), seen("")), (200, 401), "a removed key is refused");

    std::fs::write(&file, whole).expect("it can be written");
    Keys::remove(&file, "ann").expect("she has one");
    assert_eq!((seen(&ann), seen(&bob)), (401, 200));
}

#[test]
fn a_job_is_resumed_when_the_key_of_its_holder_is_added() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let keys = KeysFile::open(&file).expect("it need not be there");
    let host = Host::with(Arc::new(says("")), |config| config.keys = Some(keys));
    let place = host.folder.path().join("tenants/ann");
    drop(Corpora::new(&place).create("a").expect("a corpus"));
    left_by_a_killed_server(&place, 0);
    let bearer = format!("Bearer {}", Keys::add(&file, "ann").expect("a new key"));
    let job = || host.send("GET", "/v1/jobs/job-0", &[("authorization", bearer.as_str())], "").json();
    eventually("it is resumed", || job()["status"] == "done");
}

#[test]
fn holders_of_keys_are_refused_while_an_adapter_of_a_private_corpus_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let keys = KeysFile::open(&file).expect("it need not be there");
    let host = Host::with(Arc::new(says("Yes.")), |config| {
        config.keys = Some(keys);
        config.private_adapter = true;
    });
    let ask = |key: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Is it?" }] });
        host.send("POST", "/v1/chat/completions", &headers, &body.to_string())
    };
    assert_eq!(host.get("/v1/corpora").status, 200, "its owner is the only user");
    let ann = Keys::add(&file, "ann").expect("a new key");
    ask(&ann).refused(403, "private_adapter");
    ask("ml-wrong").refused(401, "invalid_api_key");
    Keys::remove(&file, "ann").expect("it is there");
    let bearer = format!("Bearer {ann}");
    let models = host.send("GET", "/v1/models", &[("authorization", bearer.as_str())], "");
    models.refused(401, "invalid_api_key");
}
