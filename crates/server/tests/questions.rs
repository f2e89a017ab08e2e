//! Suggested questions of a corpus.

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};

const WALL: &str = "In November a storm broke the harbour wall near Pell.";
const QUESTIONS: &str = "/v1/corpora/pell/questions";

/// A server with two documents, whose model suggests this.
fn suggesting(question: &str) -> Host {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("suggest", json!({ "question": question }).to_string()));
    host.corpus("pell", &[("wall.txt", WALL), ("again.txt", "A storm broke the wall of the harbour again.")]);
    host
}

fn questions(host: &Host) -> Value {
    host.get(QUESTIONS).json()
}

#[test]
fn questions_are_made_once_and_go_with_a_document() {
    let host = suggesting("What did the storm break?");
    assert_eq!(questions(&host), json!({ "made": false, "questions": [] }));
    let made = host.post(QUESTIONS, &json!({})).json();
    let first = &made["questions"][0];
    assert_eq!(
        (made["questions"].as_array().map(Vec::len), &first["question"]),
        (Some(1), &json!("What did the storm break?"))
    );
    assert_eq!((&first["document"], &first["page"]), (&json!(1), &json!(1)), "a question is suggested once");
    assert_eq!(questions(&host), made);
    host.delete("/v1/corpora/pell/documents/2");
    assert_eq!(questions(&host), json!({ "made": false, "questions": [] }));
    host.post("/v1/corpora/none/questions", &json!({})).refused(404, "not_found");
}

#[test]
fn questions_that_are_not_about_their_page_are_left_out() {
    for vague in ["What is the main theme of this story?", "The storm broke the wall."] {
        let made = suggesting(vague).post(QUESTIONS, &json!({})).json();
        assert_eq!(made, json!({ "made": true, "questions": [] }), "{vague}");
    }
}
