//! A remote caller with a scripted endpoint: requests, every kind of answer, and when it aborts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use calls::{
    Agent, Call, CallError, Caller, Finish, Limits, ModelInfo, OnText, OutputFormat, Prompt, Reply, Stability,
    TenantId, Tokens, schema,
};
use remote::{Remote, RemoteError, Setup};
use serde_json::Value;

const MODELS: &str = r#"{"object":"list","data":[{"id":"large","max_model_len":4096},{"id":"small"}]}"#;

/// An endpoint that sends its answers in sequence, for any requests.
struct Endpoint {
    url: String,
    seen: Receiver<Seen>,
}

/// A received request, and the socket if no answer was sent.
struct Seen {
    head: String,
    body: String,
    open: Option<TcpStream>,
}

/// An answer: status line and headers, and a body. With an empty head the socket stays open and nothing is sent.
type Answer = (String, String);

impl Endpoint {
    /// Lists its models on every such request.
    fn new(answers: Vec<Answer>) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
        let (sender, seen) = channel();
        thread::spawn(move || {
            let mut answers = answers.into_iter();
            for stream in listener.incoming().map_while(Result::ok) {
                let (head, body) = read(&stream);
                if head.starts_with("GET /v1/models ") {
                    write(&stream, &ok("application/json", MODELS));
                    continue;
                }
                let Some(answer) = answers.next() else { return };
                if answer.0.is_empty() {
                    let _ = sender.send(Seen { head, body, open: Some(stream) });
                    continue;
                }
                let _ = sender.send(Seen { head, body, open: None });
                write(&stream, &answer);
            }
        });
        Endpoint { url, seen }
    }

    fn remote(&self) -> Remote {
        Remote::connect(self.setup()).expect("the endpoint is there")
    }

    fn setup(&self) -> Setup {
        let address = self.url.parse().expect("an address");
        let patience = Duration::from_secs(20);
        Setup { address, model: None, context_tokens: None, key: Some("secret".into()), patience }
    }
}

fn read(stream: &TcpStream) -> (String, String) {
    let (mut reader, mut head, mut length) = (BufReader::new(stream), String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (head, String::from_utf8(body).expect("UTF-8"))
}

fn write(mut stream: &TcpStream, (head, body): &Answer) {
    let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
}

fn ok(kind: &str, body: &str) -> Answer {
    (format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", body.len()), body.to_owned())
}

fn status(line: &str, headers: &str, body: &str) -> Answer {
    (format!("HTTP/1.1 {line}\r\n{headers}content-length: {}\r\n", body.len()), body.to_owned())
}

/// A streamed chat completion with these pieces.
fn says(pieces: &[&str], reason: &str) -> Answer {
    let piece =
        |text: &&str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{}}}}}]}}\n\n", Value::from(*text));
    let end = format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n");
    let usage = "{\"prompt_tokens\":40,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":32}}";
    let usage = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
    ok("text/event-stream", &(pieces.iter().map(piece).collect::<String>() + &end + &usage))
}

fn call(output_format: OutputFormat) -> Call {
    let prompt = Prompt::new().system("Be short.").user(Stability::Volatile, "Was the lamp out?");
    Call { output_format, ..Call::new(Agent::Judge, "gam.reflect", prompt, 16) }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

/// Lets an endpoint with these answers answer one call.
fn asked(output_format: OutputFormat, answers: Vec<Answer>) -> Result<Reply, CallError> {
    wait(Endpoint::new(answers).remote().call(call(output_format)))
}

#[test]
fn a_call_becomes_a_request_and_its_answer_a_reply() {
    let endpoint = Endpoint::new(vec![says(&["Ye", "s."], "stop")]);
    let remote = endpoint.remote();
    assert_eq!((remote.model(Agent::Judge), remote.context_tokens(Agent::Judge)), ("large", 4096));
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&pieces);
    let on_text = OnText::new(move |piece| heard.lock().expect("a lock").push(piece.to_owned()));
    let reply = wait(remote.call(Call { on_text: Some(on_text), ..call(OutputFormat::Text) })).expect("a reply");
    assert_eq!((reply.text.as_str(), reply.finish, reply.model.as_str()), ("Yes.", Finish::Stop, "large"));
    let usage = reply.usage;
    assert_eq!((usage.calls, usage.prompt_tokens, usage.cached_tokens, usage.output_tokens), (1, 40, 32, 7));
    assert_eq!(*pieces.lock().expect("a lock"), ["Ye", "s."]);
    let Seen { head, body, .. } = endpoint.seen.recv().expect("a request");
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    assert!(head.contains("authorization: Bearer secret\r\n"), "{head}");
    let body: Value = serde_json::from_str(&body).expect("a body is JSON");
    assert_eq!((&body["model"], &body["messages"][1]["content"]), (&"large".into(), &"Was the lamp out?".into()));
}

#[test]
fn a_tenant_does_not_see_what_an_endpoint_had_cached() {
    let endpoint = Endpoint::new(vec![says(&["Yes."], "stop"), says(&["Yes."], "stop")]);
    let remote = endpoint.remote();
    let cached =
        |tenant| wait(remote.call(Call { tenant, ..call(OutputFormat::Text) })).expect("a reply").usage.cached_tokens;
    assert_eq!([TenantId::LOCAL, TenantId::new(1)].map(cached), [32, 0]);
}

#[test]
fn replies_have_the_form_that_was_asked_for() {
    let choice = || OutputFormat::Choice(vec!["yes".into(), "no".into()]);
    let form = || OutputFormat::Json(schema::object([("sure", schema::boolean())]));
    let check = |output_format: OutputFormat, text: &str, reason: &str, want: Result<(&str, Finish), &str>| match (
        asked(output_format, vec![says(&[text], reason)]),
        want,
    ) {
        (Ok(reply), Ok(want)) => assert_eq!((reply.text.as_str(), reply.finish), want),
        (Err(CallError::OutOfForm { step: "gam.reflect", reason }), Err(want)) => assert_eq!(reason, want),
        (found, want) => panic!("{found:?} instead of {want:?}"),
    };
    check(OutputFormat::Text, "Well", "length", Ok(("Well", Finish::Length)));
    check(choice(), "\"no\"", "stop", Ok(("no", Finish::Stop)));
    check(choice(), "\"maybe\"", "stop", Err("it is none of the 2 choices"));
    check(form(), "{\"sure\":true}", "stop", Ok(("{\"sure\":true}", Finish::Stop)));
    check(form(), "{\"sure\":true}", "length", Ok(("{\"sure\":true}", Finish::ClosedEarly)));
    check(form(), "{\"sure\":", "stop", Err("it is no JSON (Eof)"));
    check(form(), "{\"sure\":1}", "stop", Err("`/sure` is not what the schema allows there"));
    let cut_off = asked(form(), vec![says(&["{\"sure\":"], "length")]).expect_err("it has not its form");
    assert_eq!(cut_off, CallError::CutOff { step: "gam.reflect", max_output_tokens: 16 });
}

#[test]
fn replies_that_repeat_themselves_are_marked_as_in_the_engine() {
    let text = "and then ".repeat(40);
    let json = format!("{{\"why\":\"{text}\"}}");
    let form = || OutputFormat::Json(schema::object([("why", schema::string(1000))]));
    let check = |output_format: OutputFormat, said: &str, stop_loops, want| {
        let call = call(output_format);
        let call = Call { limits: Limits { stop_loops, ..call.limits }, ..call };
        let reply = wait(Endpoint::new(vec![says(&[said], "stop")]).remote().call(call)).expect("a reply");
        assert_eq!((reply.text.as_str(), reply.finish), (said, want));
    };
    check(OutputFormat::Text, &text, true, Finish::Repetition);
    check(OutputFormat::Text, &text, false, Finish::Stop);
    check(form(), &json, true, Finish::LoopClosed);
    check(form(), "{\"why\":\"so\"}", true, Finish::Stop);
}

#[test]
fn a_thought_gets_room_and_is_kept_apart() {
    let thinks = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"It was dark.\"}}]}\n\n";
    let answers = |before: &str| {
        let (head, body) = says(&["{\"sure\":true}"], "stop");
        let length = format!("content-length: {}", body.len());
        let longer = format!("content-length: {}", before.len() + body.len());
        (head.replace(&length, &longer), format!("{before}{body}"))
    };
    let call = call(OutputFormat::Json(schema::object([("sure", schema::boolean())])));
    let call = Call { limits: Limits { thinking_tokens: 100, ..call.limits }, ..call };
    let endpoint = Endpoint::new(vec![answers(thinks), answers("")]);
    let remote = endpoint.remote();
    let reply = wait(remote.call(call.clone())).expect("a reply");
    assert_eq!((reply.thought.as_deref(), reply.text.as_str()), (Some("It was dark."), "{\"sure\":true}"));
    let body: Value = serde_json::from_str(&endpoint.seen.recv().expect("a request").body).expect("a body is JSON");
    assert_eq!(body["max_tokens"], 116, "room for both");
    assert_eq!(wait(remote.call(call)).expect("a reply").thought, None, "an endpoint that does not think");
}

#[test]
fn refusals_keep_their_meaning() {
    let check = |output_format: OutputFormat, answer: Answer, want: &str| {
        let error = asked(output_format, vec![answer]).expect_err("it is refused").to_string();
        let said = error.split_once("http://127.0.0.1:").map_or(error.clone(), |(before, rest)| {
            let after = rest.split_once("/v1").map_or(rest, |(_, after)| after);
            format!("{before}URL{after}")
        });
        assert_eq!(said, want);
    };
    let json = || OutputFormat::Json(schema::boolean());
    let error = |message: &str| {
        format!("{{\"error\":{{\"message\":\"{message}\",\"code\":400,\"type\":\"BadRequestError\"}}}}")
    };
    check(
        json(),
        status("400 Bad Request", "", &error("the provided JSON schema contains features not supported by xgrammar")),
        "the output format of step gam.reflect cannot be enforced: URL says: the provided JSON schema contains features not \
         supported by xgrammar",
    );
    check(
        OutputFormat::Text,
        status("404 Not Found", "", &error("no such model")),
        "URL refuses step gam.reflect with status 404: no such model",
    );
    check(
        OutputFormat::Text,
        status("500 Internal Server Error", "", "out of order"),
        "URL refuses step gam.reflect with status 500: out of order",
    );
    check(
        OutputFormat::Text,
        status("307 Temporary Redirect", "location: http://elsewhere.example/\r\n", ""),
        "URL refuses step gam.reflect with status 307: ",
    );
    check(
        OutputFormat::Text,
        ok("text/event-stream", "data: {\"choices\":[]}\n\n"),
        "URL does not answer as it should: its answer breaks off",
    );
    check(
        OutputFormat::Text,
        ok("text/event-stream", "data: {\"error\":{\"message\":\"the engine died\"}}\n\n"),
        "URL does not answer as it should: the engine died",
    );
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_with_both_numbers() {
    let message = r#"{"error":{"message":"maximum context length is 64","code":"context_length_exceeded"}}"#;
    let check = |words: usize, prompt_tokens: usize| {
        let endpoint = Endpoint::new(vec![status("400 Bad Request", "", message)]);
        let remote = Remote::connect(Setup { context_tokens: Some(64), ..endpoint.setup() }).expect("it is there");
        let prompt = Prompt::new().user(Stability::Volatile, "lamp ".repeat(words));
        let error = wait(remote.call(Call::new(Agent::Judge, "gam.reflect", prompt, 16))).expect_err("it is too long");
        let (step, max_output_tokens, context_tokens) = ("gam.reflect", 16, 64);
        assert_eq!(error, CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens });
    };
    check(80, 88);
    // The estimate would fit, but the endpoint has counted.
    check(10, 49);
}

#[test]
fn an_overloaded_endpoint_is_called_again_after_the_pause_that_it_names() {
    let busy = |seconds: &str| status("429 Too Many Requests", &format!("retry-after: {seconds}\r\n"), "{}");
    let reply = asked(OutputFormat::Text, vec![busy("0"), busy("0"), says(&["Yes."], "stop")]);
    assert_eq!(reply.expect("the third attempt is answered").text, "Yes.");
    for seconds in [99, u64::MAX] {
        let answers = vec![busy(&seconds.to_string()), says(&["Yes."], "stop")];
        let error = asked(OutputFormat::Text, answers).expect_err("that is too long");
        assert!(matches!(error, CallError::Busy { pause_seconds, .. } if pause_seconds == seconds), "{error}");
    }
}

#[test]
fn endless_answers_are_aborted() {
    const BODY: usize = 16 << 20;
    let check = |error: &CallError, most: usize| {
        let CallError::Unreachable { reason, .. } = error else { panic!("{error}") };
        assert_eq!(*reason, format!("its answer is longer than {most} bytes"));
    };
    let long = "la ".repeat(7 << 20);
    let refusal = status("500 Internal Server Error", "", &long);
    check(&asked(OutputFormat::Text, vec![refusal]).expect_err("a long refusal"), BODY);
    // The call asks for 16 tokens.
    let most = BODY + 16 * 4096;
    check(&asked(OutputFormat::Text, vec![says(&[&long], "stop")]).expect_err("one long line"), most);
    let pieces = vec!["la la la "; 400_000];
    check(&asked(OutputFormat::Text, vec![says(&pieces, "stop")]).expect_err("many short lines"), most);
    let comments = ok("text/event-stream", &": still here\n\n".repeat(2 << 20));
    check(&asked(OutputFormat::Text, vec![comments]).expect_err("nothing but comments"), most);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        read(&stream);
        write(&stream, &ok("application/json", &MODELS.replacen("large", &long, 1)));
    });
    let setup = Setup { address: address.parse().expect("an address"), ..Endpoint::new(Vec::new()).setup() };
    let Some(RemoteError::Call(error)) = Remote::connect(setup).err() else { panic!("the list is too long") };
    check(&error, BODY);
}

#[test]
fn a_call_that_is_dropped_closes_its_request() {
    let endpoint = Endpoint::new(vec![(String::new(), String::new())]);
    let remote = endpoint.remote();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let open = runtime.block_on(async {
        let waiting = remote.call(call(OutputFormat::Text));
        let arrived = std::future::poll_fn(|_| match endpoint.seen.try_recv() {
            Ok(seen) => std::task::Poll::Ready(seen),
            Err(_) => std::task::Poll::Pending,
        });
        // Both are polled in a loop, since the endpoint calls no waker here.
        let (mut waiting, mut arrived) = (waiting, Box::pin(arrived));
        std::future::poll_fn(move |context| {
            assert!(waiting.as_mut().poll(context).is_pending(), "nothing is answered");
            let seen = arrived.as_mut().poll(context);
            context.waker().wake_by_ref();
            seen
        })
        .await
    });
    let stream = open.open.expect("the socket is open");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket can have a time limit");
    assert_eq!((&stream).read(&mut [0]).expect("it is closed, not left open"), 0);
}

#[test]
fn setups_that_do_not_work_are_refused_with_the_reason() {
    let endpoint = Endpoint::new(Vec::new());
    let check = |setup: Setup, want: &str| {
        let error = Remote::connect(setup).err().expect("it does not work").to_string();
        assert_eq!(error.replace(&endpoint.url, "URL"), want);
    };
    let named = |model: &str| Setup { model: Some(model.into()), ..endpoint.setup() };
    check(named("none"), "URL has no model `none`; it has large, small");
    check(named("small"), "URL does not say how many tokens the context of small holds");
}

#[test]
fn an_endpoint_without_a_connection_and_one_with_a_wrong_answer_are_different_errors() {
    let endpoint = Endpoint::new(Vec::new());
    let error = |url: &str| {
        let setup = Setup { address: url.parse().expect("an address"), ..endpoint.setup() };
        let Some(RemoteError::Call(error)) = Remote::connect(setup).err() else { panic!("{url} is no endpoint") };
        error
    };
    // Nothing listens on port 1, and no system chooses it. A label of a name has at most 63 letters, so no name server is asked.
    let name = format!("{}.example", "a".repeat(70));
    let without = [
        ("http://127.0.0.1:1/v1".to_owned(), "127.0.0.1 refused the connection on port 1".to_owned()),
        (format!("http://{name}:8000/v1"), format!("the host name {name} was not found")),
    ];
    for (url, reason) in without {
        assert_eq!(error(&url), CallError::NoConnection { endpoint: url, reason });
    }
    let answered = |answer: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
        let answering = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            read(&stream);
            stream.write_all(answer.as_bytes()).expect("the client reads");
        });
        let error = error(&url);
        answering.join().expect("it answers");
        (url, error)
    };
    let wrong = [
        ("SSH-2.0-OpenSSH_9.6\r\n", "its answer is not HTTP (invalid HTTP version parsed)"),
        ("", "it closed the connection before its answer was complete"),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone",
            "asked for its models, it says 404 Not Found: none",
        ),
    ];
    for (answer, reason) in wrong {
        let (endpoint, error) = answered(answer);
        assert_eq!(error, CallError::Unreachable { endpoint, reason: reason.to_owned() });
    }
    let (endpoint, error) = answered("HTTP/1.1 401 Unauthorized\r\ncontent-length: 6\r\n\r\nno key");
    assert_eq!(error, CallError::Refused { step: "models", endpoint, status: 401, reason: "no key".to_owned() });
}

/// A remote can be dropped on another asynchronous runtime.
#[test]
fn a_remote_can_be_dropped_inside_a_runtime() {
    let remote = Endpoint::new(Vec::new()).remote();
    wait(async move { drop(remote) });
}
