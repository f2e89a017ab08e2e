//! Corpora: make, list, search, ask, remove; traces.

use calls::Scripted;
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, says};

const PELL: [(&str, &str); 2] = [
    ("wall.txt", "In November a storm broke the harbour wall near Pell."),
    ("lamp.txt", "The new lamp was bought in Paris for 900 crowns."),
];

fn host() -> Host {
    let host = Host::new(Scripted::new(CONTEXT_TOKENS).answer("answer", "A storm broke the wall."));
    host.corpus("pell", &PELL);
    host
}

#[test]
fn corpora_are_created_listed_and_deleted() {
    let host = host();
    let listed = host.get("/v1/corpora").json()["corpora"].take();
    assert_eq!((&listed[0]["name"], &listed[0]["documents"]), (&json!("pell"), &json!(2)));
    let shown = host.get("/v1/corpora/pell").json();
    assert_eq!((&shown["name"], &shown["documents"]), (&json!("pell"), &json!(2)));
    host.get("/v1/corpora/pel").refused(404, "not_found");
    host.get("/v1/corpora/..%2fpell").refused(400, "invalid_value");
    host.post("/v1/corpora", &json!({ "name": "pell" })).refused(409, "conflict");
    host.post("/v1/corpora", &json!({ "name": "../pell" })).refused(400, "invalid_value");
    host.delete("/v1/corpora/pel").refused(404, "not_found");
    host.delete("/v1/corpora/..%2fpell").refused(400, "invalid_value");
    assert_eq!(host.delete("/v1/corpora/pell").status, 204);
    assert_eq!(host.get("/v1/corpora").json(), json!({ "corpora": [] }));
}

#[test]
fn a_corpus_has_a_title_of_any_script_and_a_name_from_it() {
    let host = host();
    for (title, name) in [("My Notes", "my-notes"), ("My notes!", "my-notes-2"), (" Мои заметки ", "corpus")]
    {
        let created = host.post("/v1/corpora", &json!({ "title": title }));
        assert_eq!(created.json(), json!({ "name": name, "title": title.trim() }));
    }
    let titles = |host: &Host| -> Vec<(String, String)> {
        let listed = host.get("/v1/corpora").json()["corpora"].take();
        let word = |entry: &Value, what: &str| entry[what].as_str().expect("a text").to_owned();
        listed.as_array().expect("a list").iter().map(|entry| (word(entry, "name"), word(entry, "title"))).collect()
    };
    let pairs = |listed: &[(&str, &str)]| -> Vec<(String, String)> {
        listed.iter().map(|(name, title)| ((*name).to_owned(), (*title).to_owned())).collect()
    };
    let want = [("corpus", "Мои заметки"), ("my-notes", "My Notes"), ("my-notes-2", "My notes!"), ("pell", "pell")];
    assert_eq!(titles(&host), pairs(&want));

    let rename = |corpus: &str, title: &str| {
        let body = json!({ "title": title }).to_string();
        host.send("PATCH", &format!("/v1/corpora/{corpus}"), &[("content-type", "application/json")], &body)
    };
    assert_eq!(rename("pell", "Pell 🌊").json(), json!({ "name": "pell", "title": "Pell 🌊" }));
    assert_eq!(titles(&host)[3], pairs(&[("pell", "Pell 🌊")])[0]);
    rename("none", "None").refused(404, "not_found");
    for title in ["", " ", "a\nb", "a\u{0}b", &"x".repeat(121)] {
        rename("pell", title).refused(400, "invalid_value");
        host.post("/v1/corpora", &json!({ "title": title })).refused(400, "invalid_value");
        host.post("/v1/corpora", &json!({ "name": "refused", "title": title })).refused(400, "invalid_value");
    }
    host.post("/v1/corpora", &json!({})).refused(400, "invalid_value");
    assert_eq!(host.delete("/v1/corpora/pell").status, 204);
    host.corpus("pell", &PELL);
    assert_eq!(titles(&host)[3].1, "pell", "the title was removed with the corpus");
}

#[test]
fn each_tool_searches_by_itself() {
    let host = host();
    let search = |tool: &str, query: &str| {
        host.post("/v1/corpora/pell/search", &json!({ "query": query, "tool": tool })).json()["hits"].take()
    };
    for tool in ["bm25", "dense", "fused"] {
        let hits = search(tool, "a storm in November");
        assert_eq!((&hits[0]["name"], &hits[0]["text"]), (&json!("wall.txt"), &json!(PELL[0].1)), "{tool}");
        assert_eq!((&hits[0]["start"], &hits[0]["end"]), (&json!(0), &json!(53)));
        assert!(hits[0]["score"].as_f64().is_some_and(|score| score > 0.0));
    }
    assert_eq!(search("bm25", "zebra"), json!([]));
    assert_eq!(search("dense", "zebra").as_array().map(Vec::len), Some(2));
    let refused =
        |body: Value, status: u16, code: &str| host.post("/v1/corpora/pell/search", &body).refused(status, code);
    refused(json!({ "query": "a", "tool": "magic" }), 400, "invalid_value");
    refused(json!({ "query": "a", "k": 0 }), 400, "invalid_value");
    host.post("/v1/corpora/none/search", &json!({ "query": "a" })).refused(404, "not_found");
}

#[test]
fn an_answer_has_citations_and_a_trace() {
    let host = host();
    let ask = json!({ "question": "What did the storm break?", "method": "rag" });
    let answer = host.post("/v1/corpora/pell/ask", &ask).json();
    assert_eq!(
        (&answer["answer"], &answer["method"], &answer["usage"]["calls"]),
        (&json!("A storm broke the wall."), &json!("rag"), &json!(1))
    );
    let citation = &answer["citations"][0];
    assert_eq!((&citation["path"], &citation["quote"]), (&json!("wall.txt"), &json!(PELL[0].1)));
    let statement = &answer["statements"][0];
    assert_eq!((&statement["text"], &statement["verdict"]), (&answer["answer"], &json!("supported")));
    assert_eq!(&statement["citation"], citation);
    assert!(answer["elapsed_seconds"].is_number(), "{answer}");
    let trace = host.get(&format!("/v1/traces/{}", answer["trace"].as_str().expect("an id"))).json();
    let events: Vec<&Value> = trace["events"].as_array().expect("events").iter().map(|event| &event["event"]).collect();
    assert_eq!(events, ["search", "evidence", "call", "statements"]);
    assert!(trace["events"][2]["prompt"].as_str().is_some_and(|prompt| prompt.contains("storm")));
    host.get("/v1/traces/none").refused(404, "not_found");
}

#[test]
fn a_question_without_a_method_gets_one_and_says_why() {
    let host = host();
    let answer = host.post("/v1/corpora/pell/ask", &json!({ "question": "What did the storm break?" })).json();
    assert_eq!((&answer["answer"], &answer["method"]), (&json!("A storm broke the wall."), &json!("direct")));
    let why = answer["chosen"].as_str().expect("a reason");
    assert!(why.starts_with("the text has ") && why.contains("scripted (of unknown size)"), "{why}");
}

#[test]
fn steps_and_text_are_streamed() {
    let host = host();
    let ask = json!({ "question": "What did the storm break?", "method": "rag", "stream": true });
    let events = host.post("/v1/corpora/pell/ask", &ask).events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["step", "step", "text", "step", "step", "answer"]);
    assert_eq!(events[2].1, json!({ "text": "A storm broke the wall." }));
    assert!(events[3].1.get("prompt").is_none() && events[3].1["output"] == "A storm broke the wall.");
    assert_eq!(events[5].1["answer"], "A storm broke the wall.");
    let wrong = json!({ "question": "What?", "method": "direct", "stream": true });
    host.post("/v1/corpora/none/ask", &wrong).refused(404, "not_found");
}

#[test]
fn invalid_questions_are_refused() {
    let host = host();
    let check = |more: Value, code: &str, status: u16| {
        let mut body = json!({ "question": "What?", "method": "rag" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/v1/corpora/pell/ask", &body).refused(status, code)
    };
    check(json!({ "question": " " }), "invalid_value", 400);
    assert!(
        check(json!({ "method": "best" }), "invalid_value", 400)
            .contains("gam, memcot, comorag, mindgraph, rag, direct")
    );
    check(json!({ "k": 0 }), "invalid_value", 400);
    check(json!({ "max_iterations": 1000 }), "invalid_value", 400);
    for tokens in [0, 1, 63] {
        let refused = check(json!({ "evidence_tokens": tokens }), "invalid_value", 400);
        assert_eq!(refused, format!("`evidence_tokens` is {tokens}; a passage needs 64 or more"));
    }
    check(json!({ "temperature": -1 }), "invalid_value", 400);
    check(json!({ "method": "gam", "output": "poem" }), "invalid_value", 400);
    let refused = check(json!({ "output": "pages" }), "invalid_value", 400);
    assert_eq!(refused, "`output` has no effect on the method rag; these have it: gam");
    check(json!({ "layout": "upside-down" }), "invalid_value", 400);
    assert!(check(json!({ "profile": "huge" }), "invalid_value", 400).contains("`huge` is not one of small, paper"));
    let empty = Host::new(says(""));
    assert_eq!(empty.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    empty.post("/v1/corpora/a/ask", &json!({ "question": "What?" })).refused(409, "not_ready");
}
