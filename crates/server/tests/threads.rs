//! Threads: conversations that the server keeps beside a corpus.

use std::sync::Arc;

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{Answer, CONTEXT_TOKENS, Host};

pub const WALL: &str = "In November a storm broke the harbour wall near Pell.";
pub const QUESTION: &str = "What did the storm break?";

pub fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("answer", "A storm broke the wall.")
}

pub fn host() -> Host {
    let host = Host::new(script());
    host.corpus("pell", &[("wall.txt", WALL)]);
    host
}

fn begin(host: &Host) -> String {
    let thread = host.post("/v1/corpora/pell/threads", &json!({}));
    assert_eq!(thread.status, 201, "{}", thread.text);
    thread.json()["id"].as_str().expect("an id").to_owned()
}

fn ask(host: &Host, thread: &str, question: &str, more: Value) -> Answer {
    let mut body = json!({ "question": question, "method": "rag", "thread": thread });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    host.post("/v1/corpora/pell/ask", &body)
}

fn list(host: &Host) -> Value {
    host.get("/v1/corpora/pell/threads").json()
}

#[test]
fn questions_and_answers_are_kept_in_their_thread() {
    let host = host();
    assert_eq!(list(&host), json!({ "kept": true, "threads": [] }));
    let thread = begin(&host);
    let first = ask(&host, &thread, QUESTION, json!({})).json();
    assert_eq!((&first["thread"], &first["turn"]), (&json!(thread), &json!(0)));
    assert_eq!(ask(&host, &thread, "When?", json!({})).json()["turn"], 1);
    let again = ask(&host, &thread, QUESTION, json!({ "turn": 0, "seed": 1 })).json();
    assert_eq!(again["turn"], 0);

    // Another server on the same data has it too.
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(script()), |_| {});
    let kept = host.get(&format!("/v1/corpora/pell/threads/{thread}")).json();
    let questions: Vec<&Value> =
        kept["turns"].as_array().expect("turns").iter().map(|turn| &turn["question"]).collect();
    assert_eq!((questions, &kept["title"]), (vec![&json!(QUESTION), &json!("When?")], &json!(QUESTION)));
    let answers = kept["turns"][0]["answers"].as_array().expect("answers");
    assert_eq!((answers.len(), &answers[0]["citations"]), (2, &first["citations"]));
    let listed = list(&host)["threads"].take();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["title"], &listed[0]["turns"]),
        (&json!(thread), &json!(QUESTION), &json!(2))
    );
}

#[test]
fn a_follow_up_is_rewritten_with_the_turns_before_it() {
    let rewritten = json!({ "question": "When did the storm break the wall?" }).to_string();
    let host = Host::new(script().answer("follow_up.rewrite", rewritten));
    host.corpus("pell", &[("wall.txt", WALL)]);
    let thread = begin(&host);
    let first = ask(&host, &thread, QUESTION, json!({ "follow_up": true })).json();
    assert!(first.get("understood").is_none(), "there is nothing before it: {first}");
    assert!(ask(&host, &thread, "When?", json!({})).json().get("understood").is_none(), "it was not asked for");
    let again = ask(&host, &thread, "When?", json!({ "turn": 1, "follow_up": true })).json();
    assert_eq!(again["understood"], "When did the storm break the wall?");
    let trace = host.get(&format!("/v1/traces/{}", again["trace"].as_str().expect("an id"))).json();
    let call = trace["events"]
        .as_array()
        .expect("events")
        .iter()
        .find(|event| event["step"] == "follow_up.rewrite" && event["event"] == "call");
    let prompt = call.expect("it is recorded")["prompt"].to_string();
    assert!(prompt.contains(QUESTION) && prompt.contains("A storm broke the wall."), "{prompt}");
    let kept = host.get(&format!("/v1/corpora/pell/threads/{thread}")).json();
    assert_eq!(kept["turns"][1]["question"], "When?");
    let small = ask(&host, &thread, "Why?", json!({ "follow_up": true, "profile": "small" })).json();
    assert!(small.get("understood").is_none(), "small models rewrite badly: {small}");
    assert_eq!(
        small["searched_with"], "When did the storm break the wall? Why?",
        "the search has the words of the questions before it"
    );
    let alone =
        ask(&host, &thread, "Who built the wall at Pell?", json!({ "follow_up": true, "profile": "small" })).json();
    assert!(alone.get("searched_with").is_none(), "it names its subject: {alone}");
    let without = host.post("/v1/corpora/pell/ask", &json!({ "question": QUESTION, "follow_up": true }));
    without.refused(400, "invalid_value");
}

#[test]
fn a_thread_is_renamed_exported_and_deleted() {
    let host = host();
    let thread = begin(&host);
    ask(&host, &thread, QUESTION, json!({}));
    let path = format!("/v1/corpora/pell/threads/{thread}");
    let rename = |title: &str| {
        host.send("PATCH", &path, &[("content-type", "application/json")], &json!({ "title": title }).to_string())
    };
    assert_eq!(rename("Der Sturm").json()["title"], "Der Sturm");
    rename(" ").refused(400, "invalid_value");
    let exported = host.get(&format!("{path}?format=markdown"));
    assert_eq!(exported.header("content-type"), Some("text/markdown; charset=utf-8"));
    let want = format!(
        "# Der Sturm\n\n## {QUESTION}\n\nA storm broke the wall.\n\n*rag*\n\n[1] wall.txt, characters 0 to {}:\n> {WALL}\n",
        WALL.len()
    );
    assert_eq!(exported.text, want);
    host.get(&format!("{path}?format=pdf")).refused(400, "invalid_value");
    assert_eq!(host.delete(&path).status, 204);
    host.get(&path).refused(404, "not_found");
    host.delete(&path).refused(404, "not_found");

    begin(&host);
    begin(&host);
    assert_eq!(host.delete("/v1/corpora/pell/threads").status, 204);
    assert_eq!(list(&host)["threads"], json!([]));
}

#[test]
fn a_place_that_does_not_exist_is_refused_before_the_question_is_asked() {
    let host = host();
    let thread = begin(&host);
    for unknown in ["thread-0", "../../wall", "thread-../../../../../../../../../../memory"] {
        ask(&host, unknown, QUESTION, json!({})).refused(404, "not_found");
    }
    ask(&host, &thread, QUESTION, json!({ "turn": 0 })).refused(400, "invalid_value");
    ask(&host, &thread, QUESTION, json!({}));
    ask(&host, &thread, "When?", json!({ "turn": 0 })).refused(400, "invalid_value");
    let without = host.post("/v1/corpora/pell/ask", &json!({ "question": QUESTION, "turn": 0 }));
    without.refused(400, "invalid_value");
    host.get("/v1/corpora/none/threads").refused(404, "not_found");
    assert_eq!(list(&host)["threads"][0]["turns"], 1);
}

#[test]
fn deleting_a_document_or_corpus_deletes_what_quotes_it() {
    let host = host();
    let thread = begin(&host);
    ask(&host, &thread, QUESTION, json!({}));
    let empty = begin(&host);
    let documents = host.get("/v1/corpora/pell/documents").json();
    let id = &documents["documents"][0]["id"];
    assert_eq!(host.delete(&format!("/v1/corpora/pell/documents/{id}")).status, 204);
    host.get(&format!("/v1/corpora/pell/threads/{thread}")).refused(404, "not_found");
    assert_eq!(host.get(&format!("/v1/corpora/pell/threads/{empty}")).status, 200, "it quotes nothing");

    assert_eq!(host.delete("/v1/corpora/pell").status, 204);
    host.corpus("pell", &[("wall.txt", WALL)]);
    assert_eq!(list(&host)["threads"], json!([]));
}

#[test]
fn a_server_that_keeps_no_threads_says_so() {
    let host = Host::with(Arc::new(script()), |config| config.keep_threads = false);
    host.corpus("pell", &[("wall.txt", WALL)]);
    assert_eq!(list(&host), json!({ "kept": false, "threads": [] }));
    let refused = host.post("/v1/corpora/pell/threads", &json!({}));
    refused.refused(409, "conflict");
    assert!(refused.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--no-threads")));
    ask(&host, "thread-0", QUESTION, json!({})).refused(409, "conflict");
    assert_eq!(host.post("/v1/corpora/pell/ask", &json!({ "question": QUESTION, "method": "rag" })).status, 200);
}
