//! A server on a free port of this machine, and a client for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use calls::{Caller, Scripted, ScriptedEmbedder};
use serde_json::{Value, json};
use server::{Config, Server};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::documented;

/// A context that gives pages of 512 tokens.
pub const CONTEXT_TOKENS: usize = 8192;

pub struct Host {
    pub address: SocketAddr,
    pub folder: Arc<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<server::Result<()>>>,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Checks that it is an error with this status and code in OpenAI's format, and returns its message without the hint.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["type"].is_string() && error.get("param").is_some(), "{error}");
        let message = error["message"].as_str().expect("an error has a message");
        match error["hint"].as_str() {
            None => message.to_owned(),
            Some(hint) => message.strip_suffix(&format!("\nhint: {hint}")).expect("it ends with the hint").to_owned(),
        }
    }

    /// Checks that it is an error with this status in Ollama's format, and returns its text.
    #[track_caller]
    pub fn refused_plainly(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()["error"].as_str().unwrap_or_else(|| panic!("{}", self.text)).to_owned()
    }

    /// The text of the warning header, without its code.
    #[track_caller]
    pub fn warning(&self) -> &str {
        let warning = self.header("warning").unwrap_or_else(|| panic!("no warning: {}", self.text));
        warning.strip_prefix("299 memlocal ").unwrap_or(warning).trim_matches('"')
    }

    /// The JSON values of server-sent events with their names, without the end-of-stream marker.
    pub fn events(&self) -> Vec<(String, Value)> {
        let event = |block: &str| {
            let name = block.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default();
            let data = block.lines().find_map(|line| line.strip_prefix("data: "))?;
            (data != "[DONE]").then(|| (name.to_owned(), serde_json::from_str(data).expect("an event is JSON")))
        };
        self.text.split("\n\n").filter_map(event).collect()
    }
}

/// A script with one answer to a chat.
pub fn says(text: &str) -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("chat", text)
}

impl Host {
    pub fn new(caller: impl Caller + 'static) -> Host {
        Host::with(Arc::new(caller), |_| {})
    }

    /// A server whose configuration is changed before it starts.
    pub fn with(caller: Arc<dyn Caller>, change: impl FnOnce(&mut Config)) -> Host {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        Host::on(Arc::new(folder), caller, change)
    }

    /// A server on the data of another.
    pub fn on(folder: Arc<TempDir>, caller: Arc<dyn Caller>, change: impl FnOnce(&mut Config)) -> Host {
        let mut config = Config::new(folder.path());
        change(&mut config);
        let server = Server::new(caller, Arc::new(ScriptedEmbedder), config);
        let (stop, stopped) = oneshot::channel();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
                sender.send(listener.local_addr().expect("it is bound")).expect("the test waits");
                let stop = async { drop(stopped.await) };
                server.serve(listener, stop).await
            })
        });
        let address = receiver.recv().expect("the server starts");
        Host { address, folder, stop: Some(stop), thread: Some(thread) }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], &body.to_string())
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_bytes(method, path, headers, body.as_bytes())
    }

    /// Sends any request, including malformed ones.
    pub fn send_bytes(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = self.open(method, path, headers, body);
        let mut bytes = Vec::new();
        // A server that refuses a large body may close before all of it is sent.
        let _ = stream.read_to_end(&mut bytes);
        let answer = parse(&bytes);
        documented::check(method, path, headers, &answer);
        answer
    }

    /// A request whose response the test reads itself.
    pub fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a socket can have a time limit");
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.extend(["host: ", &self.address.to_string(), "\r\n"]);
        }
        headers.iter().for_each(|(name, value)| head.extend([name, ": ", value, "\r\n"]));
        stream.write_all(format!("{head}\r\n").as_bytes()).expect("the server reads");
        let _ = stream.write_all(body);
        stream
    }

    /// Posts files as a browser does.
    pub fn upload(&self, corpus: &str, files: &[(&str, &[u8])], method: &str) -> Answer {
        let mut body =
            format!("--frontier\r\ncontent-disposition: form-data; name=\"method\"\r\n\r\n{method}\r\n").into_bytes();
        for (name, content) in files {
            let head =
                format!("--frontier\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--frontier--\r\n");
        let kind = [("content-type", "multipart/form-data; boundary=frontier")];
        self.send_bytes("POST", &format!("/v1/corpora/{corpus}/documents"), &kind, &body)
    }

    /// Waits until the server has ended by itself, and returns its result.
    pub fn outcome(mut self) -> server::Result<()> {
        self.thread.take().expect("it runs").join().expect("it does not panic")
    }

    /// Waits for the end of a job and returns it.
    pub fn ended(&self, job: &Value) -> Value {
        let id = job["id"].as_str().expect("a job has an id");
        let events = self.get(&format!("/v1/jobs/{id}/events")).events();
        events.last().expect("a job has a state").1.clone()
    }

    /// A corpus with these texts, ready for `rag`.
    pub fn corpus(&self, name: &str, texts: &[(&str, &str)]) {
        assert_eq!(self.post("/v1/corpora", &json!({ "name": name })).status, 201);
        for (document, text) in texts {
            let body = json!({ "name": document, "text": text, "method": "rag" });
            let accepted = self.post(&format!("/v1/corpora/{name}/documents"), &body);
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            assert_eq!(self.ended(&accepted.json())["status"], "done");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(matches!(ended, Ok(Ok(()))) || thread::panicking(), "the server failed");
        }
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok()).unwrap_or(0);
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let text = if chunked { unchunk(body) } else { body.to_owned() };
    Answer { status, headers, text }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let Ok(length @ 1..) = usize::from_str_radix(length, 16) else { break };
        let Some(chunk) = rest.get(..length) else { break };
        text.push_str(chunk);
        body = rest.get(length + 2..).unwrap_or_default();
    }
    text
}

/// Reads lines of a response until one contains this.
pub fn read_until(stream: &TcpStream, wanted: &str) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(wanted)), "the answer ends without {wanted}");
}

/// Waits for a condition; a test that would wait forever fails.
#[track_caller]
pub fn eventually(what: &str, so: impl Fn() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_mins(2), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}
