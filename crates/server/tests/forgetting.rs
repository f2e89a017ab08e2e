//! A text that was removed or replaced, by a server or the command line, is nowhere in the data folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use calls::{BoxFuture, Call, CallError, Caller, ModelInfo, Reply, Scripted, Tokens};
use random::Random;
use serde_json::{Value, json};
use server::{Forget, ServerError};
use store::{Change, Corpora, DocId, Layer, Meta, NewDocument, NewPassage, Writer};
use test_support::thinker::Thinker;

use crate::files;
use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};

const WALL: &str = "In November a storm broke the harbour wall near Pell.";
const FERRY: &str = "The ferry to Pell leaves at nine.";
const QUESTION: &str = "What did the storm break?";

/// Answers quote the first text.
fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS)
        .answer("answer", WALL)
        .answer("suggest", format!("[\"{WALL}\"]"))
        .answer("chat", "I am the model.")
        .answer("response", "I am the model.")
}

fn host() -> Host {
    let host = Host::new(script());
    host.corpus("pell", &[("wall.txt", WALL)]);
    host
}

fn on(host: Host) -> Host {
    let folder = Arc::clone(&host.folder);
    drop(host);
    Host::on(folder, Arc::new(script()), |_| {})
}

/// The files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if fs::read(&path).expect("it can be read").windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[track_caller]
fn is_nowhere(host: &Host, text: &str) {
    assert_eq!(holding(host.folder.path(), text), [] as [PathBuf; 0]);
}

fn begin(host: &Host) -> String {
    let thread = host.post("/v1/corpora/pell/threads", &json!({})).json();
    thread["id"].as_str().unwrap_or_else(|| panic!("{thread}")).to_owned()
}

fn ask(host: &Host, thread: &str, turn: Option<usize>) -> Answer {
    let mut body = json!({ "question": QUESTION, "method": "rag", "thread": thread });
    if let Some(turn) = turn {
        body["turn"] = turn.into();
    }
    let answer = host.post("/v1/corpora/pell/ask", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

fn document(host: &Host, name: &str) -> DocId {
    let documents = host.get("/v1/corpora/pell/documents").json()["documents"].take();
    let named = documents.as_array().into_iter().flatten().find(|document| document["name"] == name);
    DocId(named.and_then(|document| document["id"].as_i64()).unwrap_or_else(|| panic!("{documents}")))
}

fn delete(host: &Host, name: &str) -> Answer {
    host.delete(&format!("/v1/corpora/pell/documents/{}", document(host, name)))
}

/// What quotes the first text.
struct Quoted {
    /// The paths of a thread, a response, a conversation and a trace.
    paths: [String; 4],
    batches: [Batch; 2],
}

impl Quoted {
    fn by(host: &Host) -> Quoted {
        let thread = begin(host);
        let answer = ask(host, &thread, None).json();
        let from = json!({ "from": { "thread": thread, "turn": 0, "answer": 0 } });
        assert_eq!(host.post("/v1/corpora/pell/notes", &from).status, 201);
        let conversation = host.post("/v1/conversations", &json!({})).json()["id"].take();
        let body = json!({ "model": "pell", "input": QUESTION, "conversation": conversation });
        let response = host.post("/v1/responses", &body);
        assert_eq!(response.status, 200, "{}", response.text);
        let id = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let quoted = Quoted {
            paths: [
                format!("/v1/corpora/pell/threads/{thread}"),
                format!("/v1/responses/{}", id(&response.json()["id"])),
                format!("/v1/conversations/{}", id(&conversation)),
                format!("/v1/traces/{}", id(&answer["trace"])),
            ],
            batches: Batch::BODIES.map(|(endpoint, field)| Batch::of(host, endpoint, field)),
        };
        quoted.are_there(host);
        quoted
    }

    #[track_caller]
    fn are_there(&self, host: &Host) {
        self.paths.iter().for_each(|path| assert_eq!(host.get(path).status, 200, "{path}"));
        self.batches.iter().for_each(|batch| batch.is_there(host));
        assert_eq!(notes(host), 1);
    }

    #[track_caller]
    fn are_gone(&self, host: &Host) {
        self.paths.iter().for_each(|path| assert_eq!(host.get(path).status, 404, "{path}"));
        self.batches.iter().for_each(|batch| batch.is_forgotten(host));
        is_nowhere(host, WALL);
    }
}

/// A batch that has asked the corpus and the model.
struct Batch {
    path: String,
    /// Of the file of its replies.
    output: String,
}

impl Batch {
    /// The endpoints, and the fields of a question to them.
    const BODIES: [(&str, &str); 2] = [("/v1/chat/completions", "messages"), ("/v1/responses", "input")];

    fn of(host: &Host, endpoint: &str, field: &str) -> Batch {
        let line = |model: &str| {
            let body = json!({ "model": model, field: [{ "role": "user", "content": QUESTION }], "store": false });
            json!({ "custom_id": model, "url": endpoint, "body": body }).to_string() + "\n"
        };
        let input = line("pell:quick") + &line("scripted");
        let file = files::id(&files::upload(host, "in.jsonl", "batch", &input).json());
        let asked = json!({ "input_file_id": file, "endpoint": endpoint, "completion_window": "24h" });
        let path = format!("/v1/batches/{}", files::id(&host.post("/v1/batches", &asked).json()));
        eventually("it ends", || host.get(&path).json()["status"] == "completed");
        let batch = host.get(&path).json();
        let output = batch["output_file_id"].as_str().unwrap_or_else(|| panic!("{batch}"));
        Batch { output: format!("/v1/files/{output}"), path }
    }

    /// The replies of the corpus and of the model.
    fn replies(&self, host: &Host) -> [Value; 2] {
        let text = host.get(&format!("{}/content", self.output)).text;
        assert_eq!(host.get(&self.output).json()["bytes"], text.len());
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        let counts = json!({ "total": 2, "completed": 2, "failed": 0 });
        assert_eq!((&host.get(&self.path).json()["request_counts"], lines.len()), (&counts, 2));
        ["pell:quick", "scripted"].map(|id| {
            let reply = lines.iter().find(|line| line["custom_id"] == id);
            reply.unwrap_or_else(|| panic!("{lines:?}")).clone()
        })
    }

    #[track_caller]
    fn is_there(&self, host: &Host) {
        let [quoting, other] = self.replies(host);
        assert!(quoting["response"].to_string().contains(WALL) && quoting["error"].is_null(), "{quoting}");
        assert!(other["response"].is_object() && other["error"].is_null(), "{other}");
    }

    #[track_caller]
    fn is_forgotten(&self, host: &Host) {
        let [quoting, other] = self.replies(host);
        assert_eq!((&quoting["response"], &quoting["error"]["code"]), (&Value::Null, &json!("document_removed")));
        assert!(other["response"].is_object() && other["error"].is_null(), "{other}");
    }
}

fn notes(host: &Host) -> usize {
    host.get("/v1/corpora/pell/notes").json()["notes"].as_array().map_or(0, Vec::len)
}

/// Changes a corpus as the command line does: another process opens its data folder.
fn change(host: &Host, change: impl FnOnce(&mut Writer)) {
    change_in(host.folder.path(), change);
}

fn change_in(folder: &Path, change: impl FnOnce(&mut Writer)) {
    let mut writer = Corpora::new(folder).open_writer("pell").expect("it is free");
    let made: Result<(), ServerError> = Forget::beside(&writer).change(
        &mut writer,
        |_| true,
        |writer| {
            change(writer);
            Ok(())
        },
    );
    made.expect("it is made and forgotten");
}

fn replace(writer: &mut Writer, path: &str, text: &str) -> Change {
    let page = NewPassage { layer: Layer::Page, bytes: 0..text.len(), tokens: 9, meta: Meta::default() };
    let new = NewDocument { path, kind: "text", title: "", text, passages: &[page] };
    writer.put_document(&new).expect("it can be stored").1
}

/// Changes a file as a server of an earlier time would have written it.
fn rewrite(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).expect("it is there")).expect("it is JSON");
    change(&mut value);
    fs::write(path, value.to_string()).expect("it can be written");
}

fn file_of(host: &Host, path: &str) -> PathBuf {
    let (kind, id) = path.rsplit_once('/').expect("a path");
    let folder = if kind.starts_with("/v1/corpora/") { kind.replacen("/v1/", "", 1) } else { kind.replace("/v1/", "") };
    host.folder.path().join(folder).join(format!("{id}.json"))
}

#[test]
fn a_refused_deletion_forgets_nothing_and_names_the_request() {
    let host = host();
    let quoted = Quoted::by(&host);
    let reader = Corpora::new(host.folder.path()).open("pell").expect("it is there");
    let message = delete(&host, "wall.txt").refused(409, "conflict");
    assert!(message.contains("another request of this server"), "{message}");
    let message = host.delete("/v1/corpora/pell").refused(409, "conflict");
    assert!(message.contains("another request of this server"), "{message}");
    quoted.are_there(&host);
    drop(reader);
    assert_eq!(delete(&host, "wall.txt").status, 204);
    quoted.are_gone(&host);
}

#[test]
fn what_the_command_line_removes_is_forgotten() {
    let host = host();
    let quoted = Quoted::by(&host);
    let id = document(&host, "wall.txt");
    change(&host, |writer| writer.remove_document(id).expect("it has no readers"));
    quoted.are_gone(&host);
    assert_eq!(notes(&host), 0);
}

#[test]
fn what_the_command_line_replaces_is_forgotten() {
    let host = host();
    let quoted = Quoted::by(&host);
    change(&host, |writer| assert_eq!(replace(writer, "wall.txt", FERRY), Change::Replaced));
    quoted.paths.iter().for_each(|path| assert_eq!(host.get(path).status, 404, "{path}"));
    assert_eq!(notes(&host), 0);
    let after = Quoted::by(&host);
    change(&host, |writer| assert_eq!(replace(writer, "wall.txt", FERRY), Change::Unchanged));
    after.are_there(&host);
}

#[test]
fn a_corpus_that_the_command_line_removes_is_forgotten() {
    let host = host();
    let quoted = Quoted::by(&host);
    let folder = host.folder.path();
    Forget::in_folder(folder).remove_corpus(&Corpora::new(folder), "pell").expect("it is there");
    quoted.are_gone(&host);
    let twice = Forget::in_folder(folder).remove_corpus(&Corpora::new(folder), "pell");
    assert!(matches!(twice, Err(ServerError::Store(store::Error::UnknownCorpus { .. }))), "{twice:?}");
    host.corpus("pell", &[("ferry.txt", FERRY)]);
    quoted.are_gone(&host);
}

#[test]
fn a_further_answer_to_an_old_question_is_forgotten() {
    let host = Host::new(script());
    host.corpus("pell", &[("ferry.txt", FERRY)]);
    let thread = begin(&host);
    ask(&host, &thread, None);
    // It was asked long before the document was added.
    rewrite(&file_of(&host, &format!("/v1/corpora/pell/threads/{thread}")), |thread| {
        thread["turns"][0]["created"] = 1.into();
        thread["turns"][0]["answers"] = json!([]);
    });
    host.ended(
        &host.post("/v1/corpora/pell/documents", &json!({ "name": "wall.txt", "text": WALL, "method": "rag" })).json(),
    );
    ask(&host, &thread, Some(0));
    let from = json!({ "from": { "thread": thread, "turn": 0, "answer": 0 } });
    assert_eq!(host.post("/v1/corpora/pell/notes", &from).status, 201);
    assert_eq!(delete(&host, "wall.txt").status, 204);
    is_nowhere(&host, WALL);
}

#[test]
fn what_quotes_a_document_only_in_a_statement_or_an_annotation_is_forgotten() {
    let host = host();
    let Quoted { paths: [thread, response, conversation, _], .. } = Quoted::by(&host);
    let quote = json!({ "path": "wall.txt", "page": 1, "start": 0, "end": 53, "quote": WALL });
    let answer =
        json!({ "answer": "No.", "citations": [], "statements": [{ "verdict": "contradicted", "citation": quote }] });
    let old = |value: &mut Value| {
        value["created"] = 1.into();
        value["updated"] = 1.into();
    };
    rewrite(&file_of(&host, &thread), |thread| {
        old(thread);
        old(&mut thread["turns"][0]);
        thread["turns"][0]["answers"] = json!([answer]);
    });
    let note = host.get("/v1/corpora/pell/notes").json()["notes"][0]["id"].take();
    let note = format!("/v1/corpora/pell/notes/{}", note.as_str().expect("an id"));
    rewrite(&file_of(&host, &note), |note| {
        old(note);
        note["saved"] = json!({ "question": QUESTION, "answer": answer, "asked": 1, "answered": 1 });
    });
    let annotation = json!({ "type": "file_citation", "filename": "wall.txt" });
    let item = json!({ "type": "message", "content": [{ "text": WALL, "annotations": [annotation] }] });
    rewrite(&file_of(&host, &conversation), |conversation| {
        old(conversation);
        conversation["items"] = json!([item]);
    });
    rewrite(&file_of(&host, &response), |response| {
        (response["created"], response["answered"]) = (1.into(), 1.into());
        response["response"] = json!({ "output": [item] });
    });
    assert_eq!(delete(&host, "wall.txt").status, 204);
    is_nowhere(&host, WALL);
}

#[test]
fn a_response_that_refers_to_an_item_with_a_quote_is_forgotten() {
    let host = host();
    let quoting = host.post("/v1/responses", &json!({ "model": "pell", "input": QUESTION })).json();
    let items = quoting["output"].as_array().unwrap_or_else(|| panic!("{quoting}"));
    let item = items.iter().find(|item| item["type"] == "message").expect("an answer");
    let input = json!([{ "type": "item_reference", "id": item["id"] }, { "role": "user", "content": "On." }]);
    let referring = host.post("/v1/responses", &json!({ "model": "scripted", "input": input })).json();
    let path = format!("/v1/responses/{}", referring["id"].as_str().unwrap_or_else(|| panic!("{referring}")));
    assert_eq!(host.get(&path).status, 200);
    assert_eq!(delete(&host, "wall.txt").status, 204);
    assert_eq!(host.get(&path).status, 404);
    is_nowhere(&host, WALL);
}

#[test]
fn what_quotes_a_document_that_an_upload_replaces_is_forgotten() {
    let host = host();
    let quoted = Quoted::by(&host);
    let new = json!({ "name": "wall.txt", "text": FERRY, "method": "rag" });
    let job = host.ended(&host.post("/v1/corpora/pell/documents", &new).json());
    assert_eq!(job["added"][0]["change"], "replaced", "{job}");
    quoted.are_gone(&host);
    assert_eq!(notes(&host), 0);
}

/// A script with work that is done once, while a question is answered.
struct Meanwhile {
    script: Scripted,
    work: Arc<Mutex<Option<Work>>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Caller for Meanwhile {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            if call.step == "answer"
                && let Some(work) = self.work.lock().expect("it did not panic").take()
            {
                work();
            }
            self.script.call(call).await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

#[test]
fn an_answer_from_a_text_that_is_replaced_meanwhile_is_not_kept() {
    let work = Arc::default();
    let host = Host::new(Meanwhile { script: script(), work: Arc::clone(&work) });
    host.corpus("pell", &[("wall.txt", WALL)]);
    let replaced_by = |text: &'static str| {
        let folder = Arc::clone(&host.folder);
        let replace: Work = Box::new(move || change_in(folder.path(), |writer| _ = replace(writer, "wall.txt", text)));
        *work.lock().expect("it did not panic") = Some(replace);
    };
    let thread = begin(&host);
    replaced_by(FERRY);
    let answer = ask(&host, &thread, None).json();
    assert_eq!((&answer["answer"], &answer["thread"]), (&json!(WALL), &Value::Null));
    assert_eq!(host.get(&format!("/v1/corpora/pell/threads/{thread}")).json()["turns"], json!([]));
    host.get(&format!("/v1/traces/{}", answer["trace"].as_str().expect("an id"))).refused(404, "not_found");

    let conversation = host.post("/v1/conversations", &json!({})).json()["id"].take();
    replaced_by("The ferry to Pell leaves at ten.");
    let body = json!({ "model": "pell", "input": QUESTION, "conversation": conversation });
    let response = host.post("/v1/responses", &body).json();
    host.get(&format!("/v1/responses/{}", response["id"].as_str().expect("an id"))).refused(404, "not_found");
    let items = format!("/v1/conversations/{}/items", conversation.as_str().expect("an id"));
    assert_eq!(host.get(&items).json()["data"], json!([]));
}

#[test]
fn an_answer_is_given_if_its_thread_is_deleted_meanwhile() {
    let work = Arc::default();
    let host = Host::new(Meanwhile { script: script(), work: Arc::clone(&work) });
    host.corpus("pell", &[("wall.txt", WALL)]);
    let (thread, threads) = (begin(&host), host.folder.path().join("corpora/pell/threads"));
    let delete: Work = Box::new(move || fs::remove_dir_all(threads).expect("it is there"));
    *work.lock().expect("it did not panic") = Some(delete);
    let answer = ask(&host, &thread, None).json();
    assert_eq!((&answer["answer"], &answer["thread"]), (&json!(WALL), &Value::Null));
}

#[test]
fn a_request_of_a_batch_is_sent_again_if_its_text_is_replaced_meanwhile() {
    let work = Arc::default();
    let script = Scripted::new(CONTEXT_TOKENS).answer("answer", WALL).answer("answer", FERRY).answer("chat", "Yes.");
    let host = Host::new(Meanwhile { script, work: Arc::clone(&work) });
    host.corpus("pell", &[("wall.txt", WALL)]);
    let folder = Arc::clone(&host.folder);
    let replace: Work = Box::new(move || change_in(folder.path(), |writer| _ = replace(writer, "wall.txt", FERRY)));
    *work.lock().expect("it did not panic") = Some(replace);
    let batch = Batch::of(&host, "/v1/chat/completions", "messages");
    let [reply, _] = batch.replies(&host).map(|reply| reply["response"]["body"].to_string());
    assert!(reply.contains(FERRY) && !reply.contains(WALL), "{reply}");
}

#[test]
fn the_upload_of_a_deleted_document_is_deleted_with_it() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "pell" })).status, 201);
    let cancelled = |files: &[(&str, &[u8])]| {
        let begun = thinker.begun();
        let job = host.upload("pell", files, "gam").json();
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap_or_else(|| panic!("{job}")));
        eventually("the memorizer is asked", || thinker.begun() > begun);
        assert_eq!(host.delete(&path).json()["status"], "cancelled");
        path
    };
    let alone = cancelled(&[("wall.txt", WALL.as_bytes())]);
    assert_eq!(delete(&host, "wall.txt").status, 204);
    is_nowhere(&host, WALL);
    host.post(&format!("{alone}/resume"), &json!({})).refused(404, "not_found");

    let of_two = cancelled(&[("wall.txt", WALL.as_bytes()), ("ferry.txt", FERRY.as_bytes())]);
    assert_eq!(delete(&host, "wall.txt").status, 204);
    is_nowhere(&host, WALL);
    let begun = thinker.begun();
    assert_eq!(host.post(&format!("{of_two}/resume"), &json!({})).status, 202);
    eventually("the memorizer is asked", || thinker.begun() > begun);
    let job = host.delete(&of_two).json();
    assert_eq!(
        (&job["unread"][0]["name"], &job["added"][0]["name"]),
        (&json!("wall.txt"), &json!("ferry.txt")),
        "{job}"
    );
    let documents = host.get("/v1/corpora/pell/documents").json()["documents"].take();
    assert_eq!((documents.as_array().map(Vec::len), &documents[0]["name"]), (Some(1), &json!("ferry.txt")));
}

/// What a process leaves that is killed while it changes a document.
fn journal(host: &Host) -> PathBuf {
    let corpus = Corpora::new(host.folder.path()).open("pell").expect("it is there");
    let document = corpus.document_at("wall.txt").expect("it can be read").expect("it is there");
    let folder = host.folder.path().join("forgetting");
    fs::create_dir_all(&folder).expect("it can be made");
    let path = folder.join("change-0.json");
    let entry = json!({ "path": document.path, "kind": document.kind, "digest": document.digest.to_string(),
        "since": document.created_seconds });
    fs::write(&path, json!({ "corpus": "pell", "documents": [entry] }).to_string()).expect("it can be written");
    path
}

#[test]
fn after_a_crash_the_next_start_forgets_what_is_gone_and_nothing_else() {
    let host = host();
    let quoted = Quoted::by(&host);
    let left = journal(&host);
    let host = on(host);
    quoted.paths[..3]
        .iter()
        .for_each(|path| assert_eq!(host.get(path).status, 200, "{path} is there as its document is"));
    assert!(!left.exists());

    let left = journal(&host);
    let mut writer = Corpora::new(host.folder.path()).open_writer("pell").expect("it is free");
    writer.remove_document(document(&host, "wall.txt")).expect("it has no readers");
    drop(writer);
    assert_eq!(host.get(&quoted.paths[0]).status, 200, "the process was killed here");
    let host = on(host);
    assert!(!left.exists());
    quoted.are_gone(&host);
}

#[test]
fn random_operations_leave_no_removed_text() {
    let mut random = Random::new(7);
    for round in 0..4 {
        let host = host();
        host.ended(
            &host
                .post("/v1/corpora/pell/documents", &json!({ "name": "ferry.txt", "text": FERRY, "method": "rag" }))
                .json(),
        );
        let mut thread = begin(&host);
        let mut is_there = true;
        for step in 0..16 {
            let put = |text: &str| {
                let new = json!({ "name": "wall.txt", "text": text, "method": "rag" });
                assert_eq!(host.ended(&host.post("/v1/corpora/pell/documents", &new).json())["status"], "done");
            };
            match random.below(8) {
                0 | 1 => {
                    if host.get(&format!("/v1/corpora/pell/threads/{thread}")).status != 200 {
                        thread = begin(&host);
                    }
                    // The model would quote a text that is not there.
                    if is_there {
                        ask(&host, &thread, None);
                    }
                }
                2 => {
                    drop(host.post(
                        "/v1/corpora/pell/notes",
                        &json!({ "from": { "thread": thread, "turn": 0, "answer": 0 } }),
                    ));
                }
                3 if is_there => drop(host.post("/v1/responses", &json!({ "model": "pell", "input": QUESTION }))),
                4 => {
                    put(WALL);
                    is_there = true;
                }
                5 => {
                    put(&format!("Nothing of {round} {step}."));
                    is_there = false;
                }
                6 if is_there => {
                    assert_eq!(delete(&host, "wall.txt").status, 204);
                    is_there = false;
                }
                7 => {
                    change(&host, |writer| _ = replace(writer, "wall.txt", &format!("Nothing of {round} {step}.")));
                    is_there = false;
                }
                _ => {}
            }
            if !is_there {
                is_nowhere(&host, WALL);
            }
        }
    }
}
