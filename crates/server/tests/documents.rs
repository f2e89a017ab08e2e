//! Documents: uploads, their jobs, their texts.

use std::sync::Arc;

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, Thinker, eventually, says};

/// Uploads that lie in the data folder.
fn uploads(host: &Host) -> usize {
    let of_servers = std::fs::read_dir(host.folder.path().join("uploads")).into_iter().flatten().flatten();
    let folders = of_servers.flat_map(|server| std::fs::read_dir(server.path()).into_iter().flatten().flatten());
    folders.filter(|entry| entry.path().is_dir()).count()
}

#[test]
fn files_are_remembered_under_their_names() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let talk = br#"[{"speaker": "Ann", "text": "My horse is grey."}]"#;
    let files: [(&str, &[u8]); 3] =
        [("../../notes.md", b"# Notes\n\nThe wall fell."), ("talk.json", talk), ("empty.txt", b"")];
    let accepted = host.upload("a", &files, "rag");
    assert_eq!(accepted.status, 202);
    let ended = host.ended(&accepted.json());
    assert_eq!((&ended["status"], &ended["corpus"], &ended["method"]), (&json!("done"), &json!("a"), &json!("rag")));
    let names: Vec<&Value> = ended["added"].as_array().expect("added").iter().map(|added| &added["name"]).collect();
    assert_eq!(names, ["notes.md", "talk.json"]);
    assert_eq!(ended["unread"], json!([{ "name": "empty.txt", "reason": "the file is empty" }]));
    assert_eq!(ended["progress"], json!({ "step": "embedding", "unit": "page", "done": 2, "of": 2 }));

    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    assert_eq!(
        (&documents[0]["name"], &documents[0]["title"], &documents[1]["kind"]),
        (&json!("notes.md"), &json!("Notes"), &json!("JSON conversation"))
    );
    let id = &documents[0]["id"];
    assert_eq!(host.get(&format!("/v1/corpora/a/documents/{id}")).json()["text"], "# Notes\n\nThe wall fell.");
    assert_eq!(host.delete(&format!("/v1/corpora/a/documents/{id}")).status, 204);
    host.get(&format!("/v1/corpora/a/documents/{id}")).refused(404, "not_found");
    host.get("/v1/corpora/a/documents/one").refused(404, "not_found");
    assert_eq!(uploads(&host), 0, "what is remembered lies nowhere else");
}

#[test]
fn a_text_of_the_same_name_is_replaced() {
    let host = Host::new(says(""));
    host.corpus("a", &[("a.md", "# One"), ("a.md", "# Two"), ("b", "Three.")]);
    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    let titles: Vec<(&Value, &Value)> = documents
        .as_array()
        .expect("documents")
        .iter()
        .map(|document| (&document["name"], &document["title"]))
        .collect();
    assert_eq!(titles, [(&json!("a.md"), &json!("Two")), (&json!("b"), &json!(""))]);
}

#[test]
fn uploads_that_make_no_sense_are_refused() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    host.upload("none", &[("a.txt", b"a")], "rag").refused(404, "not_found");
    assert!(host.upload("a", &[("a.exe", b"a")], "rag").refused(400, "invalid_value").contains(".pdf"));
    host.upload("a", &[("a.txt", b"a")], "best").refused(400, "invalid_value");
    host.upload("a", &[], "rag").refused(400, "invalid_value");
    host.post("/v1/corpora/a/documents", &json!({ "name": "..", "text": "a" })).refused(400, "invalid_value");
    let cut = host.send(
        "POST",
        "/v1/corpora/a/documents",
        &[("content-type", "multipart/form-data; boundary=x")],
        "--x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nhalf",
    );
    cut.refused(400, "invalid_value");
    let unread = host.ended(&host.upload("a", &[("a.txt", b"\x00")], "rag").json());
    assert_eq!((&unread["status"], &unread["error"]), (&json!("failed"), &json!("none of the files could be read")));
    assert_eq!(uploads(&host), 1, "what was refused is gone; what could not be read may be taken up again");
}

#[test]
fn a_job_can_be_cancelled_and_taken_up_again() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    // GAM asks for an abstract, which never comes.
    let job = host.post("/v1/corpora/a/documents", &json!({ "name": "a.txt", "text": "One." })).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    eventually("the memorizer is asked", || thinker.begun() == 1);
    assert_eq!(host.get(&path).json()["status"], "running");
    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    assert_eq!(documents[0]["name"], "a.txt", "who reads is not kept waiting");
    host.delete("/v1/corpora/a").refused(409, "conflict");
    host.delete(&format!("/v1/corpora/a/documents/{}", documents[0]["id"])).refused(409, "conflict");
    host.post("/v1/corpora/a/ask", &json!({ "question": "What?" })).refused(409, "not_ready");
    let found = host.post("/v1/corpora/a/search", &json!({ "query": "One", "tool": "bm25" }));
    assert_eq!(found.json()["hits"][0]["text"], "One.", "{}", found.text);
    host.post(&format!("{path}/resume"), &json!({})).refused(409, "conflict");

    assert_eq!(host.delete(&path).json()["status"], "cancelled");
    eventually("the call is given up", || thinker.given_up() == 1);
    assert_eq!(host.get("/v1/corpora/a/documents").json()["documents"][0]["name"], "a.txt", "what was done is kept");

    assert_eq!(host.send("POST", &format!("{path}/resume"), &[], "").status, 202);
    eventually("the memorizer is asked again", || thinker.begun() == 2);
    assert_eq!(host.delete(&path).json()["status"], "cancelled");
    let jobs = host.get("/v1/jobs").json()["jobs"].take();
    assert_eq!(jobs.as_array().map(Vec::len), Some(1));
    host.get("/v1/jobs/none").refused(404, "not_found");
}

#[test]
fn jobs_on_one_corpus_wait_for_one_another() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let put = |name: &str, method: &str| {
        host.post("/v1/corpora/a/documents", &json!({ "name": name, "text": "One.", "method": method })).json()
    };
    let first = put("a.txt", "gam");
    eventually("the memorizer is asked", || thinker.begun() == 1);
    let second = put("b.txt", "rag");
    assert_eq!(host.get(&format!("/v1/jobs/{}", second["id"].as_str().expect("an id"))).json()["status"], "waiting");
    host.delete(&format!("/v1/jobs/{}", first["id"].as_str().expect("an id")));
    assert_eq!(host.ended(&second)["status"], "done");
}

#[test]
fn a_corpus_is_prepared_for_another_method() {
    let host =
        Host::new(Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "About a wall.").answer("answer", "It fell."));
    host.corpus("a", &[("a.txt", "The wall fell.")]);
    let ask = json!({ "question": "What fell?", "method": "gam" });
    let message = host.post("/v1/corpora/a/ask", &ask).refused(409, "not_ready");
    assert!(message.contains("1 of 1 pages"), "{message}");
    let job = host.post("/v1/corpora/a/prepare", &json!({ "method": "gam" }));
    assert_eq!((job.status, &host.ended(&job.json())["status"]), (202, &json!("done")));
    let failed = host.post("/v1/corpora/a/ask", &ask);
    assert_eq!(failed.status, 500, "the script goes no further: {}", failed.text);
    host.post("/v1/corpora/none/prepare", &json!({})).refused(404, "not_found");
}

#[test]
fn a_job_outlives_its_server_and_is_taken_up_once() {
    let thinker = Thinker::default();
    let first = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(first.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let job = first.post("/v1/corpora/a/documents", &json!({ "name": "a.txt", "text": "One." })).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    let waiting =
        first.post("/v1/corpora/a/documents", &json!({ "name": "b.txt", "text": "Two.", "method": "rag" })).json();
    eventually("the memorizer is asked", || thinker.begun() == 1);
    let folder = Arc::clone(&first.folder);
    drop(first);
    assert_eq!(thinker.given_up(), 1, "a server ends after its jobs");

    let second = Host::on(folder, Arc::new(thinker.clone()), |_| {});
    let left = second.get(&path).json();
    assert_eq!((&left["status"], &left["corpus"], &left["method"]), (&json!("cancelled"), &json!("a"), &json!("gam")));
    assert_eq!(
        second.post(&format!("/v1/jobs/{}/resume", waiting["id"].as_str().expect("an id")), &json!({})).status,
        202
    );
    assert_eq!(second.ended(&waiting)["added"][0]["name"], "b.txt", "its file was kept");
    let resume = || second.post(&format!("{path}/resume"), &json!({})).status;
    let mut told = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(resume)).collect();
        asked.into_iter().map(|asked| asked.join().expect("it is answered")).collect::<Vec<u16>>()
    });
    told.sort_unstable();
    assert_eq!(told, [202, 409, 409, 409]);
    eventually("the memorizer is asked again", || thinker.begun() == 2);
    assert_eq!(second.delete(&path).json()["status"], "cancelled");
    assert_eq!(thinker.given_up(), 2, "a job is cancelled once its thread has ended");
    assert_eq!(uploads(&second), 1, "what was remembered lies nowhere else");
}

#[test]
fn a_form_holds_so_many_files() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let files: Vec<(&str, &[u8])> = vec![("a.txt", b"a"); 1001];
    assert!(host.upload("a", &files, "rag").refused(400, "invalid_value").contains("1000 files"));
    assert_eq!(uploads(&host), 0);
}
