//! Servers with data folders of their own that share corpora through PostgreSQL.

use std::sync::Arc;

use calls::Scripted;
use serde_json::{Value, json};
use server::{Keys, KeysFile};
use store::Postgres;

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually};
use test_support::postgres::Server;

#[test]
fn a_shared_corpus_is_queried_at_another_server() {
    let Some(database) = Server::start("server-shared") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| Keys::add(&file, name).expect("a new key"));
    let host = || {
        Host::with(Arc::new(Scripted::new(CONTEXT_TOKENS).answer("answer", "Ann's horse is grey.")), |config| {
            config.keys = Some(KeysFile::open(&file).expect("it reads back"));
            config.vectors = Some(Postgres::at(&database.url()).expect("an address"));
        })
    };
    let (one, other) = (host(), host());
    let send = |host: &Host, method: &str, path: &str, key: &str, body: &str| -> Answer {
        let bearer = format!("Bearer {key}");
        host.send(method, path, &[("authorization", bearer.as_str()), ("content-type", "application/json")], body)
    };
    let remember = |host: &Host, name: &str, text: &str| {
        let document = json!({ "name": name, "text": text, "method": "rag" }).to_string();
        let job = send(host, "POST", "/v1/corpora/diary/documents", &ann, &document).json();
        let events = format!("/v1/jobs/{}/events", job["id"].as_str().expect("an id"));
        assert_eq!(send(host, "GET", &events, &ann, "").events().last().expect("an end").1["status"], "done");
    };
    assert_eq!(send(&one, "POST", "/v1/corpora", &ann, "{\"name\":\"diary\"}").status, 201);
    remember(&one, "horse.txt", "Ann's horse is grey.");
    let listed = send(&other, "GET", "/v1/corpora", &ann, "").json()["corpora"].take();
    assert_eq!((&listed[0]["name"], &listed[0]["documents"]), (&json!("diary"), &json!(1)));
    let ask = json!({ "question": "What is the horse like?", "method": "rag" }).to_string();
    let answer = send(&other, "POST", "/v1/corpora/diary/ask", &ann, &ask).json();
    assert_eq!(
        (&answer["answer"], &answer["citations"][0]["path"]),
        (&json!("Ann's horse is grey."), &json!("horse.txt"))
    );
    assert_eq!(database.vectors(), 1, "the only page was searched there");

    remember(&other, "goat.txt", "Ann's goat is white.");
    let documents = send(&one, "GET", "/v1/corpora/diary/documents", &ann, "").json();
    assert_eq!(documents["documents"].as_array().map(Vec::len), Some(2), "{documents}");

    // Names of corpora reveal nothing to other tenants here either.
    for host in [&one, &other] {
        assert_eq!(send(host, "GET", "/v1/corpora", &bob, "").json(), json!({ "corpora": [] }));
        send(host, "POST", "/v1/corpora/diary/ask", &bob, &ask).refused(404, "not_found");
        send(host, "DELETE", "/v1/corpora/diary", &bob, "").refused(404, "not_found");
    }
    assert_eq!(send(&other, "DELETE", "/v1/corpora/diary", &ann, "").status, 204);
    send(&one, "POST", "/v1/corpora/diary/ask", &ann, &ask).refused(404, "not_found");
}

#[test]
fn what_another_server_removes_is_forgotten_when_the_corpus_is_opened() {
    let Some(database) = Server::start("server-forgets") else { return };
    let horse = "Ann's horse is grey.";
    let host = || {
        Host::with(Arc::new(Scripted::new(CONTEXT_TOKENS).answer("answer", horse)), |config| {
            config.vectors = Some(Postgres::at(&database.url()).expect("an address"));
        })
    };
    let (one, other) = (host(), host());
    one.corpus("diary", &[("horse.txt", horse)]);
    // The path of a stored response, and that of a thread.
    let ask = || -> [String; 2] {
        let id = |value: &Value| value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let question = "What is the horse like?";
        let response = one.post("/v1/responses", &json!({ "model": "diary:quick", "input": question })).json();
        let thread = id(&one.post("/v1/corpora/diary/threads", &json!({})).json());
        let body = json!({ "question": question, "method": "rag", "thread": thread });
        assert_eq!(one.post("/v1/corpora/diary/ask", &body).json()["thread"], thread.as_str());
        [format!("/v1/responses/{}", id(&response)), format!("/v1/corpora/diary/threads/{thread}")]
    };
    let documents = |host: &Host| host.get("/v1/corpora/diary/documents").json()["documents"].take();
    let opened_with = |number: usize| assert_eq!(documents(&one).as_array().map(Vec::len), Some(number));
    let statuses = |paths: &[String; 2]| paths.each_ref().map(|path| one.get(path).status);

    let before = ask();
    let goat = json!({ "name": "goat.txt", "text": "Ann's goat is white.", "method": "rag" });
    assert_eq!(other.ended(&other.post("/v1/corpora/diary/documents", &goat).json())["status"], "done");
    opened_with(2);
    assert_eq!(statuses(&before), [200, 200], "nothing was removed");

    let listed = documents(&other);
    let removed = listed.as_array().into_iter().flatten().find(|document| document["name"] == "horse.txt");
    let id = &removed.expect("it is listed")["id"];
    assert_eq!(other.delete(&format!("/v1/corpora/diary/documents/{id}")).status, 204);
    opened_with(1);
    assert_eq!(statuses(&before), [404, 404]);
    let known = one.folder.path().join("forgetting/diary.known");
    assert!(!std::fs::read_to_string(&known).expect("it is there").contains("horse.txt"));

    let after = ask();
    opened_with(1);
    assert_eq!(statuses(&after), [200, 200], "it is forgotten once");
    assert_eq!(other.delete("/v1/corpora/diary").status, 204);
    one.get("/v1/corpora/diary/documents").refused(404, "not_found");
    assert_eq!(statuses(&after), [404, 404]);
    assert!(!known.exists());
}

#[test]
fn a_database_that_is_away_is_reported_and_used_again_once_it_is_back() {
    let Some(database) = Server::start("server-away") else { return };
    let caller = Scripted::new(CONTEXT_TOKENS).answer("answer", "Ann's horse is grey.").answer("chat", "Yes.");
    let host = Host::with(Arc::new(caller), |config| {
        config.vectors = Some(Postgres::at(&database.url()).expect("an address"));
    });
    let horse = "Ann's horse is grey.";
    host.corpus("diary", &[("horse.txt", horse)]);
    let ask = || host.post("/v1/corpora/diary/ask", &json!({ "question": "What is it like?", "method": "rag" }));
    let upload = |name: &str| {
        let body = json!({ "name": name, "text": "Ann's goat is white.", "method": "rag" });
        host.post("/v1/corpora/diary/documents", &body)
    };
    let chat = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "?" }] });
    for round in 0..2 {
        assert_eq!((host.get("/ready").status, ask().status), (200, 200), "round {round}");
        database.end();
        for _ in 0..3 {
            host.get("/ready").refused(503, "database");
            assert_eq!((host.get("/health").status, host.post("/v1/chat/completions", &chat).status), (200, 200));
            ask().refused(503, "database");
        }
        // The upload is refused, or its job says why it failed.
        let refused = upload("away.txt");
        if refused.status == 202 {
            assert_eq!(host.ended(&refused.json())["status"], "failed");
        } else {
            refused.refused(503, "database");
        }
        assert!(database.begin(), "it starts again");
        eventually("ready again", || host.get("/ready").status == 200);
        let answer = ask();
        assert_eq!(answer.json()["citations"][0]["path"], "horse.txt", "{}", answer.text);
        let accepted = upload(&format!("goat-{round}.txt"));
        assert_eq!(host.ended(&accepted.json())["status"], "done", "{}", accepted.text);
    }
}
