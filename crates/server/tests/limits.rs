//! Limits of concurrency, size and time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use calls::{Agent, Call, CallError, Caller, ModelState, Scripted, Status, Tokens, Usage};
use serde_json::{Value, json};
use server::{Keys, KeysFile, ServerError};

use crate::host::{CONTEXT_TOKENS, Host, eventually, says};
use test_support::double::Double;
use test_support::thinker::Thinker;

fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "?" }] })
}

#[test]
fn a_full_server_sends_retry_after() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.max_requests = 2);
    let body = question("thinker").to_string();
    let ask = || host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
    let (first, second) = (ask(), ask());
    eventually("both are being answered", || thinker.begun() == 2);
    let third = host.post("/v1/chat/completions", &question("thinker"));
    third.refused(429, "overloaded");
    assert_eq!(third.header("retry-after"), Some("1"));
    assert_eq!(host.get("/health").status, 200, "what needs no model is answered");
    drop((first, second));
    eventually("places are free again", || thinker.given_up() == 2);
    eventually("others are let in", || {
        let socket = ask();
        socket.set_nonblocking(true).expect("a socket can be polled");
        // This model never replies, so that only a refusal can be read.
        eventually("it is refused or let in", || socket.peek(&mut [0]).is_ok() || thinker.begun() > 2);
        thinker.begun() > 2
    });
}

#[test]
fn a_server_that_one_key_fills_answers_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| format!("Bearer {}", Keys::add(&file, name).expect("a new key").trim()));
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| {
        config.max_requests = 2;
        config.keys = Some(KeysFile::open(&file).expect("it reads back"));
    });
    let body = question("thinker").to_string();
    let headers = |key| [("authorization", key), ("content-type", "application/json")];
    let open = |key| host.open("POST", "/v1/chat/completions", &headers(key), body.as_bytes());
    let _two = [open(ann.as_str()), open(ann.as_str())];
    eventually("both are being answered", || thinker.begun() == 2);
    let refused = |key| host.send("POST", "/v1/chat/completions", &headers(key), &body).refused(429, "overloaded");
    assert!(refused(ann.as_str()).starts_with("2 of your requests are being answered already"));
    let _third = open(bob.as_str());
    eventually("the other key is let in", || thinker.begun() == 3);
    assert!(refused(bob.as_str()).starts_with("1 of your requests"), "its share is one of two");
}

/// A database that refuses connections, and one that never answers.
#[test]
fn a_server_without_its_database_is_not_ready_and_says_why() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let silent = silent.local_addr().expect("it is bound").port();
    for port in [1, silent] {
        let url = format!("postgres://ann:opensesame@127.0.0.1:{port}/memory?connect_timeout=5");
        let host = Host::with(Arc::new(says("Yes.")), |config| {
            config.vectors = Some(store::Postgres::at(&url).expect("an address"));
        });
        let said = host.get("/ready").refused(503, "database");
        assert!(said.contains("--vectors") && !said.contains("127.0.0.1"), "no key is needed: {said}");
        assert_eq!(host.get("/health").status, 200);
        if port == 1 {
            let said = host.get("/v1/corpora").refused(503, "database");
            assert!(said.contains("PostgreSQL at 127.0.0.1") && !said.contains("opensesame"), "{said}");
        }
    }
}

#[test]
fn a_request_past_its_deadline_is_cancelled() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |config| config.deadline = Duration::from_millis(200));
    // On a busy machine the deadline may pass before the model is called.
    eventually("the model is called", || {
        host.post("/v1/chat/completions", &question("thinker")).refused(504, "deadline");
        thinker.begun() > 0
    });
    eventually("the call is cancelled", || thinker.given_up() == thinker.begun());
}

#[test]
fn a_slow_client_blocks_no_others_and_times_out() {
    let host = Host::with(Arc::new(says("Yes.")), |config| {
        config.max_requests = 1;
        config.read_timeout = Duration::from_secs(2);
    });
    let json = [("content-type", "application/json"), ("connection", "close")];
    let half = |path: &str, kind: &[(&str, &str)]| {
        let mut socket = TcpStream::connect(host.address).expect("the server listens");
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000\r\n", host.address);
        kind.iter().for_each(|(name, value)| head.extend([name, ": ", value, "\r\n"]));
        socket.write_all(format!("{head}\r\n{{\"model\":").as_bytes()).expect("the server reads");
        socket
    };
    let mut slow: Vec<TcpStream> =
        ["/v1/chat/completions", "/v1/rerank", "/api/chat", "/mcp"].map(|path| half(path, &json)).into();
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    slow.push(half(
        "/v1/corpora/a/documents",
        &[("content-type", "multipart/form-data; boundary=x"), ("connection", "close")],
    ));
    assert_eq!(host.post("/v1/chat/completions", &question("scripted")).status, 200, "the only place is free");
    let mut head = TcpStream::connect(host.address).expect("the server listens");
    head.write_all(b"GET /health HTTP/1.1\r\n").expect("the server reads");
    for mut socket in slow {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("the server answers");
        assert!(
            answer.starts_with("HTTP/1.1 408 ") && answer.contains("the request did not come within 2 s"),
            "{answer}"
        );
    }
    assert_eq!(head.read_to_string(&mut String::new()).expect("the server closes"), 0, "half a head is no request");
}

#[test]
fn a_refused_file_may_take_longer_than_the_time_of_one_chunk() {
    let host = Host::with(Arc::new(says("Yes.")), |config| config.read_timeout = Duration::from_secs(5));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let part =
        |name: &str| format!("--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    let (refused, taken) = (part("a.exe"), format!("\r\n{}Ada keeps the lamp.\r\n--x--\r\n", part("a.txt")));
    let chunk = [0; 100];
    let length = refused.len() + 6 * chunk.len() + taken.len();
    let mut socket = TcpStream::connect(host.address).expect("the server listens");
    let head = format!(
        "POST /v1/corpora/a/documents HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
         content-type: multipart/form-data; boundary=x\r\ncontent-length: {length}\r\n\r\n{refused}",
        host.address
    );
    socket.write_all(head.as_bytes()).expect("the server reads");
    for _ in 0..6 {
        socket.write_all(&chunk).expect("the server reads");
        std::thread::sleep(Duration::from_secs(1));
    }
    socket.write_all(taken.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("the server answers");
    assert!(answer.starts_with("HTTP/1.1 2") && answer.contains("a.exe"), "{answer}");
}

/// A model that can end.
struct Mortal(Arc<AtomicBool>);

impl Status for Mortal {
    fn state(&self) -> Vec<ModelState> {
        Vec::new()
    }

    fn is_alive(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn the_server_ends_with_an_error_when_its_engine_has_ended() {
    let dead = Arc::new(AtomicBool::new(false));
    let host = Host::new(Double::new(says("")).with_status(Mortal(Arc::clone(&dead))));
    assert_eq!(host.get("/ready").status, 200);
    dead.store(true, Ordering::SeqCst);
    assert!(matches!(host.outcome(), Err(ServerError::EngineEnded)));
}

#[test]
fn output_limits_beyond_the_context_are_refused() {
    let host = Host::new(
        Scripted::new(CONTEXT_TOKENS)
            .answer("chat", "Yes.")
            .answer("completion", "Yes.")
            .answer("response", "Yes.")
            .answer("ollama", "Yes."),
    );
    let check = |path: &str, body: Value, field: &str| {
        let send = |tokens: Value| {
            let mut body = body.clone();
            *body.pointer_mut(field).expect("the field is there") = tokens;
            host.post(path, &body)
        };
        // For Ollama 0 is as many as fit, and errors are plain texts.
        let is_ollama = path.starts_with("/api/");
        assert_eq!(send(json!(0)).status, if is_ollama { 200 } else { 400 }, "{path}");
        assert_eq!(send(json!(1)).status, 200, "{path}");
        for many in [json!(CONTEXT_TOKENS), json!(i64::MAX)] {
            let refused = send(many.clone());
            let message = match is_ollama {
                true => refused.refused_plainly(400),
                false => refused.refused(400, "context_length_exceeded"),
            };
            assert!(message.contains(&many.to_string()) && message.contains("8192"), "{message}");
        }
        assert_eq!(send(json!(u64::MAX)).status, 400, "{path}");
    };
    let messages = json!([{ "role": "user", "content": "?" }]);
    let chat = json!({ "model": "scripted", "messages": messages, "max_tokens": 0 });
    check("/v1/chat/completions", chat, "/max_tokens");
    check("/v1/completions", json!({ "model": "scripted", "prompt": "a", "max_tokens": 0 }), "/max_tokens");
    check("/v1/responses", json!({ "model": "scripted", "input": "a", "max_output_tokens": 0 }), "/max_output_tokens");
    let ollama = json!({ "model": "scripted", "stream": false, "messages": messages, "options": { "num_predict": 0 } });
    check("/api/chat", ollama, "/options/num_predict");
    let rest = json!({ "model": "scripted", "stream": false, "prompt": "a", "options": { "num_predict": -1 } });
    assert_eq!(host.post("/api/generate", &rest).status, 200);
    let many = json!({ "model": "scripted", "prompt": ["a", "b"], "n": 65 });
    assert!(host.post("/v1/completions", &many).refused(400, "invalid_value").contains("130"));
}

#[test]
fn large_bodies_are_refused() {
    let host = Host::with(Arc::new(says("Yes.")), |config| {
        config.max_body_bytes = 1000;
        config.max_upload_bytes = 3000;
    });
    let chat = |bytes: usize| {
        let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "x".repeat(bytes) }] });
        host.post("/v1/chat/completions", &body)
    };
    assert_eq!(chat(500).status, 200);
    assert!(chat(1000).refused(413, "request_too_large").contains("1000 bytes"));
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let upload = |bytes: usize| host.upload("a", &[("a.txt", "x".repeat(bytes).as_bytes())], "rag");
    assert_eq!(upload(2000).status, 202);
    let text = host.post("/v1/corpora/a/documents", &json!({ "name": "a", "text": "x".repeat(2000) }));
    assert!(text.refused(413, "request_too_large").contains("1000 bytes"), "a text is a body");
    assert!(upload(4000).refused(413, "request_too_large").contains("3000 bytes"));
}

#[test]
fn long_queries_and_questions_are_refused_with_both_numbers() {
    let host = Host::new(says("Yes."));
    host.corpus("a", &[("a.txt", "The lamp was out.")]);
    let long = "é".repeat(65_537);
    let says = "has at most 65536 characters; this one has 65537";
    let search = host.post("/v1/corpora/a/search", &json!({ "query": long })).refused(400, "invalid_value");
    let store = host.post("/v1/vector_stores/a/search", &json!({ "query": long })).refused(400, "invalid_value");
    let ask = host.post("/v1/corpora/a/ask", &json!({ "question": long })).refused(400, "invalid_value");
    let stream = json!({ "question": long, "stream": true });
    let stream = host.post("/v1/corpora/a/ask", &stream).refused(400, "invalid_value");
    let chat = json!({ "model": "a", "messages": [{ "role": "user", "content": long }] });
    let chat = host.post("/v1/chat/completions", &chat).refused(400, "invalid_value");
    assert_eq!([search, store], [(); 2].map(|()| format!("a query {says}")));
    assert_eq!([ask, stream, chat], [(); 3].map(|()| format!("a question {says}")));
    assert_eq!(host.post("/v1/corpora/a/search", &json!({ "query": "x".repeat(65_536) })).status, 200);
}

/// A model that writes three pieces.
fn pieces() -> Double {
    let script = Scripted::new(CONTEXT_TOKENS).named("pieces").answer("chat", "Good day.");
    Double::new(script).answering(|script, mut call| {
        Box::pin(async move {
            let on_text = call.on_text.take().expect("the call is streamed");
            ["Good", " day", "."].iter().for_each(|piece| on_text.send(piece));
            let mut reply = script.call(call).await?;
            reply.usage = Usage { calls: 1, prompt_tokens: 1, output_tokens: 3, ..Usage::default() };
            Ok(reply)
        })
    })
}

#[test]
fn health_readiness_and_counts() {
    let host = Host::with(Arc::new(pieces()), |_| {});
    assert_eq!(host.get("/health").json(), json!({ "status": "ok" }));
    assert_eq!(host.get("/ready").json()["models"], json!(["pieces", "letters"]));
    let mut streamed = question("pieces");
    streamed["stream"] = true.into();
    host.post("/v1/chat/completions", &streamed);
    host.get("/v1/models/none");
    // The duration of a response is known when all of it is sent.
    let timed = "memlocal_request_seconds_total{method=\"POST\",route=\"/v1/chat/completions\",status=\"200\"} ";
    eventually("the answer has been timed", || host.get("/metrics").text.contains(timed));
    let metrics = host.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4"));
    for line in [
        "memlocal_requests_total{method=\"POST\",route=\"/v1/chat/completions\",status=\"200\"} 1",
        "memlocal_requests_total{method=\"GET\",route=\"/v1/models/{model}\",status=\"404\"} 1",
        "memlocal_calls_total{role=\"responder\"} 1",
        "memlocal_output_tokens_total{role=\"responder\"} 3",
        "# TYPE memlocal_requests_in_flight gauge",
        "# TYPE memlocal_ttft_seconds histogram",
        "memlocal_ttft_seconds_bucket{role=\"responder\",le=\"+Inf\"} 1",
        "memlocal_ttft_seconds_count{role=\"responder\"} 1",
        "memlocal_itl_seconds_count{role=\"responder\"} 2",
    ] {
        assert!(metrics.text.lines().any(|found| found == line), "{line} in {}", metrics.text);
    }
}

/// A model whose tokenizer takes a configured time.
#[derive(Clone, Default)]
struct Counter {
    counting: Arc<AtomicUsize>,
    released: Arc<AtomicBool>,
}

impl Tokens for Counter {
    fn context_tokens(&self, _: Agent) -> usize {
        CONTEXT_TOKENS
    }

    fn token_spans(&self, _: Agent, _: &str) -> Vec<Range<usize>> {
        Vec::new()
    }

    fn prompt_tokens(&self, _: &Call) -> usize {
        self.counting.fetch_add(1, Ordering::SeqCst);
        while !self.released.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        1
    }
}

#[test]
fn counting_tokens_does_not_block_other_requests() {
    let counter = Counter::default();
    let host = Host::new(Double::new(says("")).with_tokens(counter.clone()));
    let json = [("content-type", "application/json")];
    let body = question("scripted").to_string();
    // The server has two threads for its sockets.
    let asked: Vec<TcpStream> =
        (0..3).map(|_| host.open("POST", "/v1/chat/completions", &json, body.as_bytes())).collect();
    eventually("the prompts are being counted", || counter.counting.load(Ordering::SeqCst) == 3);
    assert_eq!(host.get("/health").status, 200);
    counter.released.store(true, Ordering::SeqCst);
    drop(asked);
}

#[test]
fn a_rate_limited_client_receives_retry_after() {
    let host = Host::with(Arc::new(says("Yes.")), |config| config.rate = NonZeroU32::new(2));
    let ask = || host.post("/v1/chat/completions", &question("scripted"));
    assert_eq!((ask().status, ask().status), (200, 200));
    let third = ask();
    third.refused(429, "rate_limit_exceeded");
    let pause: u64 = third.header("retry-after").expect("a pause").parse().expect("seconds");
    assert!((1..=30).contains(&pause), "{pause}");
    assert_eq!(host.get("/v1/models").status, 200, "what asks for no work is answered");

    let busy = CallError::Busy { endpoint: "http://elsewhere".into(), pause_seconds: 17 };
    let busy = Host::new(Scripted::new(CONTEXT_TOKENS).fail("chat", busy));
    let refused = busy.post("/v1/chat/completions", &question("scripted"));
    refused.refused(429, "overloaded");
    assert_eq!(refused.header("retry-after"), Some("17"), "as long as the endpoint asks for");
}

#[test]
fn a_graph_is_admitted_and_counted_as_a_question_is() {
    let thinker = Thinker::default();
    let full = Host::with(Arc::new(thinker.clone()), |config| config.max_requests = 1);
    let body = question("thinker").to_string();
    let _asked = full.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.as_bytes());
    eventually("it is being answered", || thinker.begun() == 1);
    full.get("/v1/corpora/a/graph").refused(429, "overloaded");

    let limited = Host::with(Arc::new(says("")), |config| config.rate = NonZeroU32::new(2));
    let graph = || limited.get("/v1/corpora/a/graph");
    assert_eq!((graph().status, graph().status), (404, 404));
    graph().refused(429, "rate_limit_exceeded");
}
