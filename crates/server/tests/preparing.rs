//! Questions on corpora that are not prepared: what is missing is prepared, or the answer says what it is from.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use calls::{Caller, Scripted};
use serde_json::{Value, json};

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};
use test_support::double::Double;

const TEXT: &str = "The wall fell.";

/// A script for all steps of gam. Plans and notes are none that it could use, so it searches for the question and answers
/// from the pages.
fn script() -> Scripted {
    let agents = ["gam.plan", "gam.integrate", "gam.info_check", "gam.follow_up"];
    let script = Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "About a wall.").answer("answer", "The wall.");
    agents.into_iter().fold(script, |script, step| script.answer(step, "none"))
}

/// The script, with a memorizer that never replies.
fn stuck() -> Double {
    Double::new(script()).answering(|script, call| {
        if call.step == "gam.memorize" { Box::pin(std::future::pending()) } else { script.call(call) }
    })
}

/// A corpus whose preparation for gam takes longer than questions wait.
fn slow() -> Host {
    let host = Host::with(Arc::new(stuck()), |config| config.preparation = Duration::from_millis(300));
    host.corpus("a", &[("a.txt", TEXT)]);
    host
}

fn ask(host: &Host, method: &str) -> Answer {
    host.post("/v1/corpora/a/ask", &json!({ "question": "What fell?", "method": method }))
}

fn jobs(host: &Host) -> Vec<Value> {
    host.get("/v1/jobs").json()["jobs"].as_array().expect("a list of jobs").clone()
}

#[test]
fn a_question_prepares_what_its_method_needs() {
    let host = Host::new(script());
    host.corpus("a", &[("a.txt", TEXT)]);
    let answer = ask(&host, "gam");
    assert_eq!((answer.status, &answer.json()["answer"]), (200, &json!("The wall.")), "{}", answer.text);
    assert!(answer.json().get("note").is_none(), "all is prepared: {}", answer.text);
    assert_eq!(jobs(&host).last().expect("a job has prepared it")["status"], "done");
}

#[test]
fn the_stream_shows_the_preparation() {
    let host = Host::new(script());
    host.corpus("a", &[("a.txt", TEXT)]);
    let body = json!({ "question": "What fell?", "method": "gam", "stream": true });
    let events = host.post("/v1/corpora/a/ask", &body).events();
    let first = &events[0];
    assert_eq!((first.0.as_str(), &first.1["event"], &first.1["method"]), ("step", &json!("prepare"), &json!("gam")));
    assert_eq!(events.last().expect("an answer").0, "answer");
}

#[test]
fn what_takes_too_long_is_answered_from_what_is_ready() {
    let host = slow();
    let answer = ask(&host, "gam");
    let said = answer.json();
    assert_eq!((answer.status, &said["answer"]), (200, &json!("The wall.")), "{}", answer.text);
    assert_eq!(said["prepared"], json!({ "ready": 0, "of": 1 }));
    eventually("the preparation runs", || jobs(&host).last().is_some_and(|job| job["status"] == "running"));
    let note =
        "0 of 1 pages are prepared for gam, so the answer is from what is ready: the rest is still being prepared";
    assert_eq!(said["note"], note, "people read it: it has no id of a job");

    let before = jobs(&host).len();
    assert_eq!(ask(&host, "gam").status, 200);
    assert_eq!(jobs(&host).len(), before, "questions share a job");
    let other = ask(&host, "comorag").json();
    assert_eq!(other["method"], "rag", "what cannot answer in part is replaced: {other}");
    assert!(other["note"].as_str().is_some_and(|note| note.contains("rag answered instead")), "{other}");
}

#[test]
fn a_question_waits_for_the_documents_of_a_job() {
    let host = Host::new(script());
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    thread::scope(|scope| {
        for number in 0..8 {
            let host = &host;
            let name = format!("{number}.txt");
            let accepted =
                host.post("/v1/corpora/a/documents", &json!({ "name": name, "text": TEXT, "method": "rag" }));
            assert_eq!(accepted.status, 202);
            scope.spawn(move || {
                let answer = ask(host, "rag");
                assert_eq!(answer.status, 200, "{}", answer.text);
            });
        }
    });
}

#[test]
fn a_client_that_leaves_withdraws_its_preparation() {
    let host = Host::with(Arc::new(stuck()), |_| {});
    host.corpus("a", &[("a.txt", TEXT)]);
    let before = jobs(&host).len();
    let body = json!({ "question": "What fell?", "method": "gam" }).to_string();
    let socket = host.open("POST", "/v1/corpora/a/ask", &[("content-type", "application/json")], body.as_bytes());
    eventually("a job prepares", || jobs(&host).len() > before);
    drop(socket);
    eventually("the job is withdrawn", || jobs(&host).len() == before);
}

#[test]
fn a_corpus_that_another_process_writes_is_asked_as_it_is() {
    let host = Host::new(script());
    host.corpus("a", &[("a.txt", TEXT)]);
    let writer = store::Corpora::new(host.folder.path()).open_writer("a").expect("no job runs");
    let answer = ask(&host, "gam");
    assert_eq!(answer.status, 200, "{}", answer.text);
    let note = answer.json()["note"].as_str().expect("not all is ready").to_owned();
    let holder = format!("the corpus `a` is in use by process {}", std::process::id());
    assert!(note.contains(&holder) && !note.contains(std::env::args().next().unwrap().as_str()), "{note}");
    drop(writer);
    assert!(ask(&host, "gam").json().get("note").is_none());
}

#[test]
fn an_empty_corpus_is_refused_with_a_hint() {
    let host = Host::new(script());
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let refused = ask(&host, "gam");
    refused.refused(409, "not_ready");
    let hint = "add documents: POST /v1/corpora/a/documents, or the tool `remember` of MCP";
    assert_eq!(refused.json()["error"]["hint"], hint);
}

/// Asks over MCP; the messages that come back.
fn ask_mcp(host: &Host, meta: Value) -> Vec<Value> {
    let arguments = json!({ "corpus": "a", "question": "What fell?", "method": "gam" });
    let params = json!({ "name": "ask", "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let answer = host.send("POST", "/mcp", &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    match serde_json::from_str(&answer.text) {
        Ok(message) => vec![message],
        Err(_) => answer.events().into_iter().map(|(_, message)| message).collect(),
    }
}

#[test]
fn a_tool_prepares_with_progress() {
    let host = Host::new(script());
    host.corpus("a", &[("a.txt", TEXT)]);
    let messages = ask_mcp(&host, json!({ "progressToken": "t" }));
    let (answer, progress) = messages.split_last().expect("an answer");
    assert!(!progress.is_empty(), "{messages:?}");
    for (number, message) in (1..).zip(progress) {
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(
            (&message["params"]["progressToken"], message["params"]["progress"].as_f64()),
            (&json!("t"), Some(f64::from(number)))
        );
    }
    assert!(answer["result"]["isError"] != true, "{answer}");
    assert_eq!(ask_mcp(&host, json!({})).len(), 1, "nothing is left to prepare");
}

#[test]
fn a_tool_says_what_its_answer_is_from() {
    let host = slow();
    let [message] = &ask_mcp(&host, json!({}))[..] else { panic!("one message without a progress token") };
    let text = message["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(message["result"]["isError"] != true && text.contains("the rest is still being prepared"), "{text}");
}

#[test]
fn a_search_by_meaning_computes_missing_vectors() {
    let host = Host::new(script());
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let direct = json!({ "name": "a.txt", "text": TEXT, "method": "direct" });
    assert_eq!(host.ended(&host.post("/v1/corpora/a/documents", &direct).json())["status"], "done");
    let found = host.post("/v1/corpora/a/search", &json!({ "query": "wall", "tool": "dense" }));
    assert_eq!(found.json()["hits"][0]["text"], TEXT, "{}", found.text);
}
