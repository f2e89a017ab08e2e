//! Documents: uploads, their jobs, their texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calls::{BoxFuture, CallError, Kept, Prefixes, Scripted, TenantId, WorkflowId};
use serde_json::{Value, json};

use crate::files::upload;
use crate::host::{CONTEXT_TOKENS, Host, eventually, says};
use test_support::double::Double;
use test_support::thinker::Thinker;

/// Uploads in the data folder.
pub fn uploads(host: &Host) -> usize {
    let of_servers = std::fs::read_dir(host.folder.path().join("uploads")).into_iter().flatten().flatten();
    let folders = of_servers.flat_map(|server| std::fs::read_dir(server.path()).into_iter().flatten().flatten());
    folders.filter(|entry| entry.path().is_dir()).count()
}

#[test]
fn files_are_ingested_under_their_names() {
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
    assert_eq!(ended["hint"], Value::Null);
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
    assert_eq!(uploads(&host), 0, "ingested text is stored nowhere else");
}

#[test]
fn documents_are_listed_in_parts() {
    let host = Host::new(says(""));
    let long = "The wall broke in the night. ".repeat(200);
    host.corpus("a", &[("a.md", "One."), ("b.md", &long), ("c.md", "Three.")]);
    let list = |query: &str| host.get(&format!("/v1/corpora/a/documents{query}")).json();
    let all = list("");
    assert_eq!((all["documents"].as_array().map(Vec::len), &all["has_more"]), (Some(3), &json!(false)));
    for document in all["documents"].as_array().expect("documents") {
        let shown = host.get(&format!("/v1/corpora/a/documents/{}", document["id"])).json();
        assert_eq!(document["pages"].as_u64().map(|pages| pages as usize), shown["parts"].as_array().map(Vec::len));
    }
    let [first, second, third] = [0, 1, 2].map(|place| all["documents"][place].clone());
    assert!(second["pages"].as_u64() > Some(1), "{second}");
    assert_eq!(list("?limit=2"), json!({ "documents": [first, second], "has_more": true }));
    let rest = format!("?limit=2&after={}", second["id"]);
    assert_eq!(list(&rest), json!({ "documents": [third], "has_more": false }));
    assert_eq!(host.delete(&format!("/v1/corpora/a/documents/{}", second["id"])).status, 204);
    assert_eq!(list(&rest)["documents"], json!([third]), "a deleted document has a place too");
    host.get("/v1/corpora/a/documents?limit=0").refused(400, "invalid_value");
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
fn invalid_uploads_are_refused() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    host.upload("none", &[("a.txt", b"a")], "rag").refused(404, "not_found");
    let files: [(&str, &[u8]); 2] = [("a.exe", b"MZ\x90\0"), ("b.png", b"\0")];
    let unsupported = host.upload("a", &files, "rag");
    let message = unsupported.refused(400, "invalid_value");
    assert_eq!(message, "none of the files can be read; `a.exe`: unsupported file type");
    assert!(
        unsupported.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains(" .pdf ")),
        "{unsupported:?}"
    );
    host.upload("a", &[("a.txt", b"a")], "best").refused(400, "invalid_value");
    host.upload("a", &[], "rag").refused(400, "invalid_value");
    for name in ["..", "a\nb.txt", ""] {
        let refused = host.post("/v1/corpora/a/documents", &json!({ "name": name, "text": "a" }));
        let rule = "a document needs a name of 1 to 255 bytes, without control characters and other than `.` and `..`";
        assert_eq!(refused.refused(400, "invalid_value"), rule, "{name:?}");
    }
    let cut = host.send(
        "POST",
        "/v1/corpora/a/documents",
        &[("content-type", "multipart/form-data; boundary=x")],
        "--x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nhalf",
    );
    cut.refused(400, "invalid_value");
    let unread = host.ended(&host.upload("a", &[("a.txt", b"\x00")], "rag").json());
    assert_eq!((&unread["status"], &unread["error"]), (&json!("failed"), &json!("none of the files could be read")));
    assert_eq!(uploads(&host), 1, "what was refused is gone; what could not be read may be resumed");
}

#[test]
fn a_file_that_cannot_be_read_rejects_no_other() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let files: [(&str, &[u8]); 6] = [
        ("a.exe", b"MZ\x90\0"),
        ("lamp.png", b"\0"),
        ("x/a.txt", b"One."),
        ("y/a.txt", b"Two."),
        ("empty.txt", b""),
        ("Makefile", b"all:\n\ttrue"),
    ];
    let job = host.upload("a", &files, "rag").json();
    assert_eq!(job["files"], json!(["a.txt", "empty.txt", "Makefile"]));
    let ended = host.ended(&job);
    assert_eq!((&ended["status"], &ended["added"][0]["name"]), (&json!("done"), &json!("a.txt")));
    let unread: Vec<(&Value, &str)> = ended["unread"]
        .as_array()
        .expect("unread files")
        .iter()
        .map(|file| (&file["name"], file["reason"].as_str().expect("a reason")))
        .collect();
    assert_eq!(unread.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a.exe", "lamp.png", "a.txt", "empty.txt"]);
    assert_eq!((unread[0].1, unread[1].1), ("unsupported file type", "unsupported file type"));
    assert!(unread[2].1.starts_with("another file has this name"), "{unread:?}");
    assert!(ended["hint"].as_str().is_some_and(|hint| hint.contains(" .pdf ")), "the types are listed once: {ended}");
    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    let shown = host.get(&format!("/v1/corpora/a/documents/{}", documents[0]["id"])).json();
    assert_eq!((documents.as_array().map(Vec::len), &shown["text"]), (Some(2), &json!("One.")));
    let text = host.get(&format!("/v1/corpora/a/documents/{}", documents[1]["id"])).json()["text"].take();
    assert_eq!((&documents[1]["name"], text), (&json!("Makefile"), json!("all:\n\ttrue")), "a text of another type");
    assert_eq!((&shown["parts"][0]["start"], &shown["parts"][0]["end"]), (&json!(0), &json!(4)));
}

#[test]
fn a_job_can_be_cancelled_and_resumed() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    // GAM requests an abstract, which never arrives.
    let job = host.post("/v1/corpora/a/documents", &json!({ "name": "a.txt", "text": "One.", "method": "gam" })).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    eventually("the memorizer is asked", || thinker.begun() == 1);
    assert_eq!(host.get(&path).json()["status"], "running");
    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    assert_eq!(documents[0]["name"], "a.txt", "readers do not wait");
    host.delete("/v1/corpora/a").refused(409, "conflict");
    host.delete(&format!("/v1/corpora/a/documents/{}", documents[0]["id"])).refused(409, "conflict");
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
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "About a wall."));
    host.corpus("a", &[("a.txt", "The wall fell.")]);
    let job = host.post("/v1/corpora/a/prepare", &json!({ "method": "gam" }));
    assert_eq!((job.status, &host.ended(&job.json())["status"]), (202, &json!("done")));
    let failed = host.post("/v1/corpora/a/ask", &json!({ "question": "What fell?", "method": "gam" }));
    assert_eq!(failed.status, 500, "the script goes no further: {}", failed.text);
    host.post("/v1/corpora/none/prepare", &json!({})).refused(404, "not_found");
}

#[test]
fn a_job_that_its_server_did_not_finish_is_resumed_by_the_next_one() {
    let thinker = Thinker::default();
    let first = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(first.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let job =
        first.post("/v1/corpora/a/documents", &json!({ "name": "a.txt", "text": "One.", "method": "gam" })).json();
    let path = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    eventually("the memorizer is asked", || thinker.begun() == 1);
    let waiting =
        first.post("/v1/corpora/a/documents", &json!({ "name": "b.txt", "text": "Two.", "method": "rag" })).json();
    let folder = Arc::clone(&first.folder);
    drop(first);
    assert_eq!(thinker.given_up(), 1, "a server ends after its jobs");

    let second = Host::on(Arc::clone(&folder), Arc::new(thinker.clone()), |_| {});
    eventually("the memorizer is asked again", || thinker.begun() == 2);
    let left = second.get(&path).json();
    assert_eq!((&left["status"], &left["corpus"], &left["method"]), (&json!("running"), &json!("a"), &json!("gam")));
    assert_eq!(second.delete(&path).json()["status"], "cancelled");
    assert_eq!(second.ended(&waiting)["added"][0]["name"], "b.txt", "its file was kept");
    drop(second);

    let third = Host::on(folder, Arc::new(thinker.clone()), |_| {});
    assert_eq!(third.get(&path).json()["status"], "cancelled", "what a client cancelled is not resumed");
    let resume = || third.post(&format!("{path}/resume"), &json!({})).status;
    let mut told = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(resume)).collect();
        asked.into_iter().map(|asked| asked.join().expect("it is answered")).collect::<Vec<u16>>()
    });
    told.sort_unstable();
    assert_eq!(told, [202, 409, 409, 409]);
    eventually("the memorizer is asked again", || thinker.begun() == 3);
    assert_eq!(third.delete(&path).json()["status"], "cancelled");
    assert_eq!(thinker.given_up(), 3, "a job is cancelled once its thread has ended");
    assert_eq!(uploads(&third), 1, "ingested text is stored nowhere else");
    assert_eq!(third.delete(&path).status, 200);
    third.get(&path).refused(404, "not_found");
    third.post(&format!("{path}/resume"), &json!({})).refused(404, "not_found");
    assert_eq!(uploads(&third), 0, "a job that is deleted after its end takes its files along");
}

/// What a killed server leaves: a journal and a file under a free lock.
pub fn left_by_a_killed_server(folder: &Path, interruptions: u32) {
    let upload = folder.join(format!("uploads/server-killed/{interruptions}"));
    std::fs::create_dir_all(&upload).expect("a folder can be made");
    let journal = json!({ "id": format!("job-{interruptions}"), "corpus": "a", "method": "rag", "error": null,
        "files": [{ "name": format!("{interruptions}.txt"), "file": "0.txt" }], "interruptions": interruptions });
    std::fs::write(upload.join("job.json"), journal.to_string()).expect("it can be written");
    std::fs::write(upload.join("0.txt"), "The wall fell.").expect("it can be written");
}

#[test]
fn a_job_is_resumed_after_its_server_was_killed_unless_it_may_be_the_cause() {
    let first = Host::new(says(""));
    assert_eq!(first.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let folder = Arc::clone(&first.folder);
    drop(first);
    [0, 2, 3].into_iter().for_each(|interruptions| left_by_a_killed_server(folder.path(), interruptions));
    let second = Host::on(folder, Arc::new(says("")), |_| {});
    for id in ["job-0", "job-2"] {
        assert_eq!(second.ended(&json!({ "id": id }))["status"], "done");
    }
    let given_up = second.get("/v1/jobs/job-3").json();
    assert_eq!(given_up["status"], "failed");
    assert!(given_up["error"].as_str().is_some_and(|error| error.contains("interrupted 3 times")), "{given_up}");
    assert_eq!(second.post("/v1/jobs/job-3/resume", &json!({})).status, 202);
    assert_eq!(second.ended(&json!({ "id": "job-3" }))["status"], "done");
    assert_eq!(second.get("/v1/corpora/a/documents").json()["documents"].as_array().map(Vec::len), Some(3));
}

#[test]
fn only_interruptions_without_progress_count() {
    for (memos, want) in [(0, 3), (1, 0)] {
        let first = Host::new(says(""));
        assert_eq!(first.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
        let folder = Arc::clone(&first.folder);
        drop(first);
        left_by_a_killed_server(folder.path(), 2);
        let uploads = folder.path().join("uploads");
        let upload = uploads.join("server-killed/2");
        let journal = |upload: &Path| -> Value {
            serde_json::from_slice(&std::fs::read(upload.join("job.json")).expect("a journal")).expect("JSON")
        };
        let mut two = journal(&upload);
        two["method"] = "gam".into();
        two["files"] = json!([{ "name": "1.txt", "file": "0.txt" }, { "name": "2.txt", "file": "1.txt" }]);
        for (name, text) in [("1.txt", "The gate fell.".to_owned()), ("job.json", two.to_string())] {
            std::fs::write(upload.join(name), text).expect("it can be written");
        }
        let memo = json!({ "abstract": "Something fell." }).to_string();
        let script = (0..memos).fold(says(""), |script, _| script.answer("gam.memorize", memo.clone()));
        let script = script.fail("gam.memorize", CallError::Closed).fail("gam.memorize", CallError::Closed);
        let second = Host::on(folder, Arc::new(script), |_| {});
        assert_eq!(second.ended(&json!({ "id": "job-2" }))["status"], "failed");
        // The next server has taken the upload into its own folder.
        let own = std::fs::read_dir(&uploads).expect("a folder").map(|entry| entry.expect("an entry").path().join("2"));
        let own = own.filter(|upload| upload.is_dir()).last().expect("the upload of the job");
        assert_eq!(journal(&own)["interruptions"], want, "{memos} pages were finished");
    }
}

/// Stores the prompts of a workflow as an engine stores their KV pages.
struct Keeping(Arc<Scripted>);

impl Prefixes for Keeping {
    fn keep_prefixes<'a>(&'a self, _: TenantId, workflow: WorkflowId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(async move {
            let calls = self.0.seen().into_iter().filter(|call| call.workflow == workflow);
            let prompts: String = calls.flat_map(|call| call.prompt.messages()).map(|turn| turn.content).collect();
            std::fs::create_dir_all(folder).expect("a folder can be made");
            std::fs::write(folder.join("model.kv"), prompts).expect("it can be written");
            Kept { tokens: 1, refused: Vec::new() }
        })
    }

    fn bring_prefixes<'a>(&'a self, _: TenantId, _: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(async { Kept::default() })
    }
}

/// Files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.append(&mut holding(&entry.path(), text));
        } else {
            let bytes = std::fs::read(entry.path()).expect("it can be read");
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn deleting_a_corpus_leaves_nothing_of_it() {
    let secret = "The heron flies at dawn over Amsteldijk.";
    let script = Arc::new(Scripted::new(CONTEXT_TOKENS).answer("answer", "At dawn."));
    let caller = Double::new(Arc::clone(&script)).with_prefixes(Keeping(script));
    let host = Host::with(Arc::new(caller), |config| config.keep_prefixes = true);
    let data = host.folder.path().to_owned();
    host.corpus("a", &[("a.txt", secret)]);
    host.corpus("b", &[("b.txt", "Another text.")]);
    let failed = host.upload("a", &[("c.json", format!("{{ {secret}").as_bytes())], "rag").json();
    assert_eq!(host.ended(&failed)["status"], "failed");
    let other = host.upload("b", &[("c.json", b"{ none")], "rag").json();
    assert_eq!(host.ended(&other)["status"], "failed");
    let ask = host.post("/v1/corpora/a/ask", &json!({ "question": "When?", "method": "rag" })).json();
    let trace = format!("/v1/traces/{}", ask["trace"].as_str().expect("a trace"));
    assert!(host.get(&trace).text.contains(secret));
    let places: Vec<String> = holding(&data, secret)
        .iter()
        .map(|path| path.strip_prefix(&data).expect("below").display().to_string())
        .collect();
    let is_in = |part: &str| places.iter().any(|place| place.contains(part));
    assert!(is_in("memory.sqlite") && is_in("uploads") && is_in("prefixes"), "{places:?}");

    assert_eq!(host.delete("/v1/corpora/a").status, 204);
    assert_eq!(holding(&data, secret), Vec::<PathBuf>::new());
    let jobs = |host: &Host| {
        let jobs = host.get("/v1/jobs").json()["jobs"].take();
        jobs.as_array()
            .expect("jobs")
            .iter()
            .map(|job| job["corpus"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert!(jobs(&host).iter().all(|corpus| corpus == "b"), "{:?}", jobs(&host));
    host.get(&trace).refused(404, "not_found");
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(says("")), |_| {});
    assert_eq!(jobs(&host), ["b"], "the other one's job is still there");
    assert_eq!(holding(&data, secret), Vec::<PathBuf>::new());
    assert_eq!(uploads(&host), 1);
}

#[test]
fn a_field_of_a_form_that_is_not_a_file_is_limited() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let long = "x".repeat((64 << 10) + 1);
    let limit = "has more than 65536 bytes";
    assert!(host.upload("a", &[("a.txt", b"One.")], &long).refused(400, "invalid_value").contains(limit));
    assert!(upload(&host, "a.txt", &long, "One.").refused(400, "invalid_value").contains(limit));
    assert_eq!(uploads(&host), 0);
}

#[test]
fn the_number_of_files_in_a_form_is_limited() {
    let host = Host::new(says(""));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let names: Vec<String> = (0..1001).map(|number| format!("{number}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"a".as_slice())).collect();
    assert!(host.upload("a", &files, "rag").refused(400, "invalid_value").contains("1000 files"));
    assert_eq!(uploads(&host), 0);
}
