//! Ten thousand malformed requests: none causes a server error or a panic, and the server keeps running.
//!
//! They are valid requests with mutations drawn from a fixed seed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::panic;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use calls::Scripted;
use random::Random;
use serde_json::{Value, json};
use test_support::fuzz::part_of_rounds;

use crate::host::{CONTEXT_TOKENS, Host};

const REQUESTS: u64 = 3_000;
const THREADS: u64 = 4;
const LONG_TEXT: usize = 100_000;
const JSON: &[u8] = b"application/json";

/// Up to `most` bytes.
fn bytes(random: &mut Random, most: usize) -> Vec<u8> {
    (0..random.below(most)).map(|_| random.bits() as u8).collect()
}

/// A request in bytes.
struct Request {
    method: Vec<u8>,
    path: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    /// True if the announced length exceeds the body.
    missing_bytes: usize,
    /// True if the HTTP syntax is valid, so that there must be a response.
    framed: bool,
}

/// Valid requests, each with many fields.
fn good() -> Vec<(&'static str, Value)> {
    let messages = json!([{ "role": "system", "content": "Be short." },
        { "role": "user", "content": [{ "type": "text", "text": "Paint it." }] }]);
    let schema =
        json!({ "type": "object", "properties": { "colour": { "enum": ["red", "blue"] } }, "required": ["colour"] });
    let function = json!({ "name": "paint", "description": "Paints.", "parameters": schema });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "c", "strict": true, "schema": schema } });
    let protocol =
        |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let tool = |name: &str, arguments: Value| protocol("tools/call", json!({ "name": name, "arguments": arguments }));
    vec![
        (
            "/v1/responses",
            json!({ "model": "scripted", "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "?" }] }],
                "instructions": "Be short.", "max_output_tokens": 9, "temperature": 0, "stream": true, "store": false }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "scripted", "messages": messages, "stream": false, "response_format": format, "logprobs": true,
                "top_logprobs": 2, "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 7, "n": 2 }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "scripted", "messages": messages, "stream": true, "stream_options": { "include_usage": true },
                "tools": [{ "type": "function", "function": function }], "tool_choice": "required" }),
        ),
        (
            "/v1/messages",
            json!({ "model": "scripted", "max_tokens": 9, "system": [{ "type": "text", "text": "Be short." }],
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Paint it." }] },
                    { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "paint", "input": {} }] },
                    { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": "Done." }] }],
                "tools": [{ "name": "paint", "input_schema": schema }], "tool_choice": { "type": "auto" },
                "thinking": { "type": "enabled", "budget_tokens": 4 }, "stop_sequences": ["."], "stream": true }),
        ),
        ("/v1/messages/count_tokens", json!({ "model": "scripted", "messages": [{ "role": "user", "content": "?" }] })),
        ("/v1/responses/input_tokens", json!({ "model": "scripted", "input": [{ "role": "user", "content": "?" }] })),
        (
            "/v1/completions",
            json!({ "model": "scripted", "prompt": ["One,"], "max_tokens": 5, "logprobs": 1, "n": 1, "stream": false }),
        ),
        (
            "/v1/embeddings",
            json!({ "model": "letters", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 26 }),
        ),
        ("/v1/rerank", json!({ "model": "letters", "query": "a", "documents": ["a", { "text": "b" }], "top_n": 1 })),
        ("/v1/corpora", json!({ "name": "b" })),
        ("/v1/corpora/a/documents", json!({ "name": "n.txt", "text": "The lamp was out.", "method": "rag" })),
        ("/v1/corpora/a/search", json!({ "query": "lamp", "tool": "bm25", "k": 3 })),
        (
            "/v1/corpora/a/ask",
            json!({ "question": "Was it out?", "method": "rag", "k": 2, "temperature": 0, "stream": true }),
        ),
        ("/v1/corpora/a/prepare", json!({ "method": "rag" })),
        (
            "/api/chat",
            json!({ "model": "scripted", "messages": [{ "role": "user", "content": "?" }], "format": "json",
                "options": { "temperature": 0, "num_predict": 9 }, "stream": false }),
        ),
        ("/api/generate", json!({ "model": "scripted", "prompt": "?", "raw": true, "stream": true })),
        ("/api/embed", json!({ "model": "letters", "input": "a" })),
        ("/mcp", tool("search", json!({ "corpus": "a", "query": "lamp", "tool": "dense", "k": 2 }))),
        ("/mcp", tool("ask", json!({ "corpus": "a", "question": "Was it out?", "method": "rag" }))),
        ("/mcp", tool("remember", json!({ "corpus": "c", "name": "m.txt", "text": "It was lit.", "method": "rag" }))),
        ("/mcp", tool("read_source", json!({ "corpus": "a", "document": 1, "start": 0, "end": 9 }))),
        ("/mcp", protocol("resources/read", json!({ "uri": "memlocal://a/1" }))),
        (
            "/mcp",
            protocol(
                "initialize",
                json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "a", "version": "1" } }),
            ),
        ),
    ]
}

/// A mutated request.
fn spoilt(random: &mut Random) -> Request {
    let good = good();
    let (path, mut body) = good[random.below(good.len())].clone();
    let mut request = Request {
        method: b"POST".to_vec(),
        path: path.into(),
        headers: vec![(b"accept".to_vec(), b"application/json, text/event-stream".to_vec())],
        body: Vec::new(),
        missing_bytes: 0,
        framed: true,
    };
    let mut kind = JSON.to_vec();
    let malady = random.below(11);
    match malady {
        0 => *any_value(&mut body, random) = strange(random),
        1 => *any_value(&mut body, random) = nested(random),
        _ => {}
    }
    request.body = body.to_string().into_bytes();
    match malady {
        2 => break_json(&mut request.body, random),
        3 => huge_number(&mut request.body, random),
        4 => {
            let at = random.below(request.body.len().max(1));
            request.body.splice(at..at, [0xc3, 0x28, 0xff]);
        }
        5 => {
            request.missing_bytes = 1 + random.below(1000);
            request.framed = false;
        }
        6 => {
            let kinds = [
                "",
                "text/plain",
                "application/json; charset=utf-7",
                "multipart/form-data",
                "image/png",
                "multipart/form-data; boundary=x",
                "application/x-www-form-urlencoded",
                "json",
                "application/jsonx",
            ];
            kind = random.pick(&kinds).as_bytes().to_vec();
        }
        7 => odd_target(&mut request, random),
        8 => junk_headers(&mut request, random),
        9 => odd_query(&mut request, random),
        10 => {
            kind = b"multipart/form-data; boundary=x".to_vec();
            odd_form(&mut request, random);
        }
        _ => {}
    }
    request.headers.push((b"content-type".to_vec(), kind));
    request
}

/// Any value within a value, itself included.
fn any_value<'a>(value: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let inside = match &*value {
        Value::Object(fields) => fields.len(),
        Value::Array(values) => values.len(),
        _ => 0,
    };
    if inside == 0 || random.below(8) == 0 {
        return value;
    }
    let choice = random.below(inside);
    let inner = match value {
        Value::Object(fields) => fields.values_mut().nth(choice),
        value => value.get_mut(choice),
    };
    any_value(inner.expect("it is there"), random)
}

fn strange(random: &mut Random) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(f64::MAX),
        json!(""),
        json!("\u{0}\u{202e}\u{10ffff}"),
        json!("x".repeat(LONG_TEXT)),
        json!([]),
        json!([[], {}]),
        json!(vec![0; 3000]),
        json!({}),
        json!({ "type": {} }),
        json!({ "$ref": "#/x" }),
    ];
    values[random.below(values.len())].clone()
}

fn nested(random: &mut Random) -> Value {
    let objects = random.below(2) == 0;
    (0..random.below(100)).fold(json!(1), |inner, _| if objects { json!({ "a": inner }) } else { json!([inner]) })
}

fn break_json(body: &mut Vec<u8>, random: &mut Random) {
    match random.below(4) {
        0 => body.truncate(random.below(body.len().max(1))),
        1 => drop(body.remove(random.below(body.len()))),
        2 => {
            let at = random.below(body.len());
            body[at] = random.bits() as u8;
        }
        // Deeper than any parser should recurse.
        _ => {
            let at = random.below(body.len());
            let open = random.pick(&["[", "{\"a\":"]).repeat(5000);
            body.splice(at..at, open.into_bytes());
        }
    }
}

/// Replaces the first number after a position, or appends at the end.
fn huge_number(body: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(body.len());
    let number =
        random.pick(&["1e999", "-1e308", "99999999999999999999999999", "1e-400", "-0", "18446744073709551616"]);
    let start = (from..body.len()).find(|at| body[*at].is_ascii_digit()).unwrap_or(body.len() - 1);
    let end = (start..body.len()).find(|at| !body[*at].is_ascii_digit()).unwrap_or(body.len());
    body.splice(start..end, number.bytes());
}

fn odd_target(request: &mut Request, random: &mut Random) {
    request.framed = false;
    let methods =
        ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "QUERY", "", "P OST", "\u{e9}"];
    request.method = random.pick(&methods).as_bytes().to_vec();
    let corpus = ["..", ".", "%2e%2e", "%00", "%ff", "a%2Fb", "%", "%zz", "A", "a b", "\u{e9}", "", "-", "a;b"];
    let name = random.pick(&corpus);
    let paths = [
        format!("/v1/corpora/{name}"),
        format!("/v1/corpora/{name}/documents/{name}"),
        format!("/v1/corpora/a/documents/{}", random.bits().cast_signed()),
        format!("/v1/jobs/{name}/resume"),
        format!("/v1/models/{name}"),
        format!("/v1/traces/{name}?x={name}"),
        format!("//{name}"),
        format!("/{}", name.repeat(3000)),
        format!("http://{name}/v1/models"),
        "*".to_owned(),
        String::new(),
        "/openapi.json/../../etc/passwd".to_owned(),
    ];
    request.path = paths[random.below(paths.len())].clone().into_bytes();
    if random.below(8) == 0 {
        request.path = [b"/".to_vec(), bytes(random, 60)].concat();
    }
}

fn odd_query(request: &mut Request, random: &mut Random) {
    let names = ["graph", "question", "format", "node", "hops", "limit", "run", "x", ""];
    let values = [
        "mindgraph",
        "comorag",
        "dot",
        "graphml",
        "json",
        "0",
        "1",
        "-1",
        "99999999999999999999",
        "1e3",
        "..",
        "%00",
        "%ff",
        "%",
        "%zz",
        "a&b",
        "",
        "+",
    ];
    let paths = [
        "/v1/corpora/a/graph",
        "/v1/corpora/none/graph",
        "/v1/bench/report",
        "/v1/bench/runs",
        "/v1/jobs",
        "/v1/corpora",
        "/v1/engine",
        "/metrics",
        "/api/tags",
    ];
    let query: Vec<String> =
        (0..random.below(5)).map(|_| format!("{}={}", random.pick(&names), random.pick(&values))).collect();
    request.method = b"GET".to_vec();
    request.path = format!("{}?{}", random.pick(&paths), query.join("&")).into_bytes();
    request.body.clear();
}

/// Invalid files under invalid names.
fn odd_form(request: &mut Request, random: &mut Random) {
    let names = [
        "a.txt",
        "a.pdf",
        "a.docx",
        "a.epub",
        "a.json",
        "a.jsonl",
        "a.html",
        "a.md",
        "../a.txt",
        "a",
        "",
        "\u{e9}.txt",
        "a.exe",
    ];
    let methods = ["rag", "gam", "best", ""];
    request.path = b"/v1/corpora/a/documents".to_vec();
    request.body.clear();
    for _ in 0..random.below(4) {
        let head = match random.below(4) {
            0 => format!("content-disposition: form-data; name=\"method\"\r\n\r\n{}", random.pick(&methods)),
            1 => "content-disposition: form-data\r\n\r\nx".to_owned(),
            _ => format!("content-disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\r\n", random.pick(&names)),
        };
        let starts: [&[u8]; 5] = [b"", b"%PDF-1.7\n1 0 obj <<", b"PK\x03\x04", b"[{\"text\":", b"<p>\xff"];
        request
            .body
            .extend([&b"--x\r\n"[..], head.as_bytes(), *random.pick(&starts), &bytes(random, 300), b"\r\n"].concat());
    }
    request.body.extend_from_slice(random.pick(&["--x--\r\n", "", "--x"]).as_bytes());
}

fn junk_headers(request: &mut Request, random: &mut Random) {
    request.framed = false;
    let headers: [(&[u8], Vec<u8>); 14] = [
        (b"content-length", b"-1".to_vec()),
        (b"content-length", b"18446744073709551616".to_vec()),
        (b"transfer-encoding", b"chunked, chunked".to_vec()),
        (b"transfer-encoding", b"gzip".to_vec()),
        (b"expect", b"the unexpected".to_vec()),
        (b"host", b"evil.example".to_vec()),
        (b"host", bytes(random, 20)),
        (b"origin", bytes(random, 40)),
        (b"authorization", [b"Bearer ".to_vec(), bytes(random, 200)].concat()),
        (b"authorization", b"Basic".to_vec()),
        (b"x-long", vec![b'x'; 200_000]),
        (b"bad name", b"x".to_vec()),
        (b"upgrade", b"websocket".to_vec()),
        (b"mcp-protocol-version", bytes(random, 9)),
    ];
    for _ in 0..=random.below(3) {
        let (name, value) = &headers[random.below(headers.len())];
        request.headers.push((name.to_vec(), value.clone()));
    }
    if random.below(8) == 0 {
        request.headers.extend((0..300).map(|number| (format!("x-{number}").into_bytes(), b"y".to_vec())));
    }
}

/// Sends a request; returns the status of the response, 0 if there is none, and its text.
fn send(host: &Host, request: &Request) -> (u16, String) {
    let mut stream = TcpStream::connect(host.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a socket can have a time limit");
    let length = (request.body.len() + request.missing_bytes).to_string();
    let mut bytes = [&request.method[..], b" ", &request.path, b" HTTP/1.1\r\n"].concat();
    let own = [(b"connection".to_vec(), b"close".to_vec()), (b"content-length".to_vec(), length.into_bytes())];
    let address = (b"host".to_vec(), host.address.to_string().into_bytes());
    for (name, value) in [address].iter().chain(&own).chain(&request.headers) {
        bytes.extend([name, &b": "[..], value, &b"\r\n"[..]].concat());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&request.body);
    // A server that refuses the head may close before all of it is sent.
    let sent = stream.write_all(&bytes);
    if sent.is_ok() && request.missing_bytes > 0 {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert!(
            !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
            "no end: {error}"
        );
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    (text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), text)
}

#[test]
fn malformed_requests_have_replies_and_cause_no_panic() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    let script = Scripted::new(CONTEXT_TOKENS);
    let steps = ["chat", "messages", "completion", "ollama", "response", "answer"];
    let gam = ["gam.memorize", "gam.plan", "gam.integrate", "gam.info_check", "gam.follow_up"];
    let host = Host::new(steps.into_iter().chain(gam).fold(script, |script, step| script.answer(step, "paint")));
    host.corpus("a", &[("lamp.txt", "The lamp was out for two hours.")]);
    // Requests add texts of this length to a corpus, whose questions are then answered by `gam`.
    host.corpus("long", &[("n.txt", &"x".repeat(LONG_TEXT))]);
    let answer = host.post("/v1/corpora/long/ask", &json!({ "question": "Was it out?", "stream": false }));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let accept = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    for (path, body) in good() {
        let answer = host.send("POST", path, &accept, &body.to_string());
        // The corpus of a running job is in use.
        assert!(matches!(answer.status, 200..300 | 409), "{path}: {}", answer.text);
        let refused = ["\"error\":{", "\"isError\":true"].iter().any(|word| answer.text.contains(word));
        assert!(path != "/mcp" || !refused, "{body}: {}", answer.text);
    }
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        for part in 0..THREADS {
            let (host, sent) = (&host, &sent);
            scope.spawn(move || {
                let mut rounds = part_of_rounds(REQUESTS, part, THREADS);
                for number in &mut rounds {
                    let request = spoilt(&mut Random::new(number));
                    let (status, answer) = send(host, &request);
                    let failed_later = answer.contains("event: error") && answer.contains("\"internal\"");
                    let answered = (200..500).contains(&status) || (status == 0 && !request.framed);
                    let shown = String::from_utf8_lossy(&request.body[..request.body.len().min(300)]).into_owned();
                    let path = String::from_utf8_lossy(&request.path).into_owned();
                    assert!(answered && !failed_later, "request {number}, {path:.60}: {shown}: {answer:.2000}");
                }
                sent.fetch_add(rounds.done(), Ordering::SeqCst);
            });
        }
    });
    println!("{} requests", sent.load(Ordering::SeqCst));
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "something has panicked");
    assert_eq!(host.get("/health").status, 200);
    let (path, body) = &good()[0];
    assert_eq!(host.post(path, body).status, 200, "and it still answers");
}
