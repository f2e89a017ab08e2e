//! The Hugging Face Hub, played by a listener on this machine, with one repository: its description, and its files with
//! ranges, redirects and every kind of failure.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

/// The commit of every revision.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How the hub answers requests for the bytes of one file. All but the last promise its length and digest first.
#[derive(Debug, Clone)]
pub enum Answer {
    /// With the bytes.
    Content(Vec<u8>),
    /// With other bytes of the same length.
    Forged { promised: Vec<u8>, sent: Vec<u8> },
    /// With this status.
    Failed { promised: Vec<u8>, status: u16 },
    /// By redirecting to another host.
    Moved(Vec<u8>),
    /// With at most this number of bytes, and then the connection breaks.
    Broken(Vec<u8>, usize),
    /// With all bytes whatever the range; the first answer breaks off after this number of bytes.
    WithoutRanges(Vec<u8>, usize),
    /// Not at all, not even with a promise.
    Silence,
}

impl Answer {
    fn promised(&self) -> &[u8] {
        match self {
            Answer::Content(bytes)
            | Answer::Moved(bytes)
            | Answer::Broken(bytes, _)
            | Answer::WithoutRanges(bytes, _) => bytes,
            Answer::Forged { promised, .. } | Answer::Failed { promised, .. } => promised,
            Answer::Silence => &[],
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// The path with its query.
    pub path: String,
    /// The headers, in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Request {
    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Whether bytes were asked for, and not only their number.
    fn wants_bytes(&self) -> bool {
        self.header("range") != "bytes=0-0"
    }
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Answer>,
    requests: Vec<Request>,
    token: Option<String>,
    licence: Option<String>,
}

/// A hub with one repository, whatever it is called.
#[derive(Debug)]
pub struct Hub {
    /// Its address, for `HF_ENDPOINT`.
    pub endpoint: String,
    state: Arc<Mutex<State>>,
}

impl Hub {
    /// Starts a hub, which answers until the test ends.
    pub fn start() -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hub = Hub { endpoint: format!("http://{address}"), state: Arc::default() };
        let state = Arc::clone(&hub.state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&state);
                thread::spawn(move || serve(stream.unwrap(), address.port(), &state));
            }
        });
        hub
    }

    /// Puts a file into the repository, or replaces how it is answered.
    pub fn put(&self, name: &str, answer: Answer) {
        self.state.lock().unwrap().files.insert(name.to_owned(), answer);
    }

    /// Requires this token from now on.
    pub fn close(&self, token: &str) {
        self.state.lock().unwrap().token = Some(token.to_owned());
    }

    /// States a licence.
    pub fn license(&self, licence: &str) {
        self.state.lock().unwrap().licence = Some(licence.to_owned());
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    /// The ranges that were asked for of a file.
    pub fn ranges_of(&self, file: &str) -> Vec<String> {
        let requests = self.requests().into_iter();
        let of_file = requests.filter(|request| request.path.ends_with(&format!("/{file}")) && request.wants_bytes());
        of_file.map(|request| request.header("range").to_owned()).collect()
    }
}

/// A file's SHA-256 digest in hexadecimal digits.
pub fn sha256_of(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    });
    Some(Request { path, headers: headers.collect() })
}

/// Answers one request and closes the connection.
fn serve(stream: TcpStream, port: u16, state: &Mutex<State>) {
    let Some(request) = read(&stream) else { return };
    let mut state = state.lock().unwrap();
    state.requests.push(request.clone());
    let is_elsewhere = request.path.starts_with("/elsewhere/");
    if !is_elsewhere
        && state.token.as_ref().is_some_and(|token| request.header("authorization") != format!("Bearer {token}"))
    {
        return send(stream, "401 Unauthorized", "", b"{\"error\":\"no\"}", usize::MAX);
    }
    if request.path.starts_with("/api/models/") {
        let description = describe(&state).to_string();
        return send(stream, "200 OK", "", description.as_bytes(), usize::MAX);
    }
    let name = match request.path.split_once("/resolve/").and_then(|(_, rest)| rest.split_once('/')) {
        Some((_, name)) => name,
        None => request.path.trim_start_matches("/elsewhere/"),
    };
    let is_first = state.requests.iter().filter(|seen| seen.path == request.path && seen.wants_bytes()).count() == 1;
    let answer = state.files.get(name).cloned();
    drop(state);
    let Some(answer) = answer else { return send(stream, "404 Not Found", "", b"Entry not found", usize::MAX) };
    let promised = answer.promised();
    let promise = format!("ETag: \"{}\"\r\nX-Repo-Commit: {COMMIT}\r\n", sha256_of(promised));
    let range = request.header("range").trim_start_matches("bytes=").split_once('-');
    let start: usize = range.and_then(|(start, _)| start.parse().ok()).unwrap_or(0);
    if start >= promised.len() && !matches!(answer, Answer::Silence) {
        return send(stream, "416 Range Not Satisfiable", &promise, b"", usize::MAX);
    }
    let end = range.and_then(|(_, end)| end.parse::<usize>().ok()).map_or(promised.len(), |last| last + 1);
    let ranged = format!("{promise}Content-Range: bytes {start}-{}/{}\r\n", end - 1, promised.len());
    let partial = "206 Partial Content";
    match &answer {
        Answer::Silence => thread::sleep(Duration::from_secs(30)),
        Answer::Moved(_) if !is_elsewhere => {
            let there = format!("Location: http://localhost:{port}/elsewhere/{name}\r\n");
            send(stream, "302 Found", &format!("{promise}{there}"), b"", usize::MAX);
        }
        Answer::Failed { status, .. } if request.wants_bytes() => {
            send(stream, &format!("{status} No"), "", b"<html>no</html>", usize::MAX);
        }
        Answer::Forged { sent, .. } if request.wants_bytes() => {
            send(stream, partial, &ranged, &sent[start..end], usize::MAX);
        }
        Answer::Broken(_, bytes) => send(stream, partial, &ranged, &promised[start..end], *bytes),
        Answer::WithoutRanges(bytes, first) if request.wants_bytes() => {
            send(stream, "200 OK", &promise, bytes, if is_first { *first } else { usize::MAX });
        }
        _ => send(stream, partial, &ranged, &promised[start..end], usize::MAX),
    }
}

fn describe(state: &State) -> serde_json::Value {
    let file = |(name, answer): (&String, &Answer)| {
        let promised = answer.promised();
        json!({ "rfilename": name, "size": promised.len(), "lfs": { "sha256": sha256_of(promised) } })
    };
    let files: Vec<_> = state.files.iter().map(file).collect();
    json!({ "sha": COMMIT, "siblings": files, "cardData": { "license": state.licence } })
}

/// Sends an answer, with at most `most` bytes of its body.
fn send(mut stream: TcpStream, status: &str, headers: &str, body: &[u8], most: usize) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    // The other side may have given up already.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..length.min(most)]));
}
