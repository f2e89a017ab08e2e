//! `bench engine` and `bench serve`: sizes by class of machine, and servers that fail or close the connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use calls::{Call, Caller, Embedder, Scripted, ScriptedEmbedder, Tokens};
use eval::speed::{
    ClientLoad, Decoding, EngineUnderTest, Items, Peer, Plan, Preset, Service, SpeedReport, SpeedSuite, Who, measure,
    measure_clients,
};
use eval::{Error, Host};
use serde_json::{Value, json};

use crate::questions::block_on;

/// An engine whose answers cost nothing.
struct Idle(Scripted);

impl EngineUnderTest for Idle {
    fn caller(&self) -> &dyn Caller {
        &self.0
    }

    fn embedder(&self) -> &dyn Embedder {
        &ScriptedEmbedder
    }

    fn prompt_ids(&self, call: &Call) -> eval::Result<Vec<u32>> {
        Ok(vec![7; self.0.prompt_tokens(call)])
    }

    fn fresh(&self) -> eval::Result<Box<dyn EngineUnderTest + '_>> {
        Ok(Box::new(idle()))
    }
}

fn idle() -> Idle {
    Idle(Scripted::new(4096).answer("bench", "word"))
}

/// A server that serves `most` completions and fails at all others; returns its address.
fn server(most: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let done = Arc::clone(&done);
            thread::spawn(move || serve(stream, most, &done));
        }
    });
    address
}

/// The request line and the body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let (mut request, mut length) = (String::new(), 0);
    reader.read_line(&mut request).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((request, serde_json::from_slice(&body).unwrap_or_default()))
}

fn serve(stream: TcpStream, most: usize, done: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (request, asked) = request(&mut reader)?;
        let (status, answer) = match request.starts_with("GET") {
            true => ("200 OK", json!({})),
            false if done.fetch_add(1, Ordering::Relaxed) < most => {
                let tokens = asked["prompt"].as_array()?.len();
                let written = if asked["json_schema"].is_object() { &json!(7) } else { &asked["max_tokens"] };
                ("200 OK", json!({ "usage": { "prompt_tokens": tokens, "completion_tokens": written } }))
            }
            false => ("500 Internal Server Error", json!({ "error": "no memory" })),
        };
        let answer = answer.to_string();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
        (&stream).write_all((head + &answer).as_bytes()).ok()?;
    }
}

/// A server that answers one chat per connection and closes it without announcing that; returns its address.
fn curt() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some((asked, _)) = request(&mut BufReader::new(stream.try_clone().unwrap())) else { continue };
            let answer = if asked.starts_with("GET") {
                json!({ "data": [{ "id": "curt" }] }).to_string()
            } else {
                let said = json!({ "choices": [{ "delta": { "content": "yes" }, "finish_reason": "stop" }],
                    "usage": { "prompt_tokens": 130, "completion_tokens": 1 } });
                format!("data: {said}\n\ndata: [DONE]\n\n")
            };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            let _ = stream.write_all((head + &answer).as_bytes());
        }
    });
    address
}

#[test]
fn clients_continue_when_the_server_closes_the_connection_after_each_answer() {
    let service = Service::find(&curt()).unwrap();
    let time = std::time::Duration::from_secs(1);
    let plan =
        ClientLoad { ours: &service, peer: None, clients: &[2], decodings: &[Decoding::Chat], time, repetitions: 2 };
    let items = measure_clients(&plan, &mut |_| ()).unwrap();
    let answers = items.items.iter().find(|item| item.case == "2 clients, T 0.8 top_p 0.95").unwrap();
    // One token per answer, one answer per connection, and more answers than clients.
    let go_on = answers.samples.iter().all(|sample| sample.outcome.output_tokens > 2);
    assert!(answers.samples.len() == 2 && go_on, "{answers:?}");
}

fn run(preset: Preset, suites: &[SpeedSuite], peer: Option<&Peer>) -> (eval::Result<()>, Items) {
    let plan = Plan {
        suites,
        preset,
        decodings: &[Decoding::Agents, Decoding::Greedy],
        repetitions: 2,
        peer,
        embedding_peer: None,
        conversations: None,
        questions: 1,
        documents: None,
    };
    let mut items = Items::default();
    let measured = block_on(measure(plan, &idle(), &mut items, &mut |_| ()));
    (measured, items)
}

fn cases(items: &Items) -> Vec<&str> {
    items.items.iter().map(|item| item.case.as_str()).collect()
}

#[test]
fn workloads_have_the_sizes_of_the_preset_and_those_that_do_not_fit_are_listed() {
    let check = |preset, suite, expect: &[&str], left_out: &[&str]| {
        let (measured, items) = run(preset, &[suite], None);
        assert!(measured.is_ok());
        assert_eq!(cases(&items), expect, "{preset}");
        assert_eq!(items.left_out, left_out, "{preset}");
    };
    check(Preset::Laptop, SpeedSuite::Prefill, &["512 tokens", "2048 tokens"], &[]);
    let left_out = ["prefill 7168 tokens: the context of 4096 tokens has no room for it"];
    check(Preset::Workstation, SpeedSuite::Prefill, &["512 tokens", "2048 tokens"], &left_out);
    check(Preset::Laptop, SpeedSuite::Siblings, &["4 on 2048 tokens"], &[]);
    let left_out = ["siblings 32 on 8192 tokens: the context of 4096 tokens has no room for it"];
    check(Preset::Server, SpeedSuite::Siblings, &[], &left_out);
    let decode = ["1 at once", "8 at once", "32 at once", "64 at once", "after 2048 tokens"]
        .map(|case| [format!("{case}, T 0.3"), format!("{case}, greedy")]);
    let decode: Vec<&str> = decode.as_flattened().iter().map(String::as_str).collect();
    check(Preset::Server, SpeedSuite::Decode, &decode, &[]);
    check(Preset::Laptop, SpeedSuite::Json, &["1 at once, T 0.3", "2 at once, T 0.3", "4 at once, T 0.3"], &[]);
    let long = [(32, 128), (8, 512)];
    let left_out = long
        .map(|(texts, tokens)| format!("embed {texts} texts of {tokens} tokens: letters reads 64 tokens of a text"));
    check(Preset::Laptop, SpeedSuite::Embed, &["1 texts of 16 tokens"], &left_out.each_ref().map(String::as_str));
    assert_eq!("desk".parse::<Preset>().unwrap_err(), "`desk` is not one of laptop, workstation, server");
}

#[test]
fn an_answer_in_a_schema_has_the_tokens_that_its_server_writes() {
    let peer = Peer::connect(&server(usize::MAX)).unwrap();
    let (measured, items) = run(Preset::Laptop, &[SpeedSuite::Json], Some(&peer));
    measured.unwrap();
    for (item, calls) in items.items.iter().zip([1, 2, 4]) {
        let of_peer = item.samples.iter().filter(|sample| sample.who == Who::Peer);
        let written: Vec<usize> = of_peer.map(|sample| sample.outcome.output_tokens).collect();
        assert_eq!(written, [7 * calls; 2], "{}", item.case);
    }
}

#[test]
fn what_was_measured_before_a_server_gave_up_is_kept() {
    let suites = [SpeedSuite::Prefill, SpeedSuite::Decode];
    let check = |most: usize, expect: &[(&str, usize, bool)]| {
        let peer = Peer::connect(&server(most)).unwrap();
        let (measured, items) = run(Preset::Laptop, &suites, Some(&peer));
        let found: Vec<_> =
            items.items.iter().map(|item| (item.case.as_str(), item.samples.len(), item.peer.is_some())).collect();
        assert_eq!(found, expect);
        let failed = measured.as_ref().err().map(ToString::to_string);
        assert!(matches!(measured, Err(Error::Peer { .. })), "{failed:?}");
        let page = SpeedReport {
            model: "tiny".into(),
            quantise: None,
            context_tokens: 4096,
            peer: Some("there".into()),
            preset: Preset::Laptop,
            repetitions: 2,
            max_draft_tokens: 8,
            machine: Host::this(),
            peak_memory_bytes: Some(1_500_000_000),
            peer_peak_memory_bytes: Some(3_541_000_000),
            ended_early: failed,
            items,
        };
        assert!(page.to_string().contains("no memory"), "{page}");
        assert!(page.to_string().contains("Peak memory: 1.50 GB; the server's: 3.54 GB."), "{page}");
        assert_eq!(serde_json::to_value(&page).unwrap()["items"].as_array().unwrap().len(), expect.len());
    };
    check(0, &[("512 tokens", 1, false)]);
    check(3, &[("512 tokens", 4, true), ("2048 tokens", 3, true)]);
    // An answer is two requests: its prompt is computed first.
    check(6, &[("512 tokens", 4, true), ("2048 tokens", 4, true), ("1 at once, T 0.3", 2, true)]);
}
