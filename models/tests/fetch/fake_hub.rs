//! The Hugging Face Hub, played by a listener on this machine: listings, redirects, ranges, refusals, broken transfers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::toy::{COMMIT, World, sha256_of};

/// How the hub answers for one file.
#[derive(Clone, Copy)]
pub enum Answer {
    /// With this content, as promised.
    Content(&'static [u8]),
    /// With this content, under an etag of the server's choice.
    Tagged { etag: &'static str, content: &'static [u8] },
    /// With this content, but promising the digest of another.
    Promised { digest_of: &'static [u8], content: &'static [u8] },
    /// With a promise, and then an error page.
    Failed(&'static [u8]),
    /// As many bytes as this of the content in each answer, then the connection ends.
    Broken { content: &'static [u8], bytes: usize },
    /// The first bytes, and then nothing more for a while.
    Stalled { content: &'static [u8], bytes: usize },
    /// The whole content, even if a range was requested; the first answer ends early.
    WithoutRanges { content: &'static [u8], bytes: usize },
    /// A range that was not requested.
    WrongRange(&'static [u8]),
    /// With a refusal: status and error code.
    Refused(&'static str, &'static str),
    /// Not at all.
    Silence,
}

/// A request as it came: method, path, and the headers that matter.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub range: Option<String>,
    pub token: Option<String>,
}

/// A hub with one repository.
pub struct Hub {
    pub endpoint: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    files: Mutex<HashMap<&'static str, Answer>>,
    requests: Mutex<Vec<Request>>,
    /// Another hub that has the contents.
    storage: Option<String>,
    /// The body of a listing.
    listing: Mutex<String>,
}

impl Hub {
    pub fn start(files: &[(&'static str, Answer)]) -> Hub {
        Hub::start_before(files, None)
    }

    /// A hub that redirects every content to a storage at another port.
    pub fn start_before(files: &[(&'static str, Answer)], storage: Option<&Hub>) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            files: Mutex::new(files.iter().copied().collect()),
            storage: storage.map(|hub| hub.endpoint.clone()),
            ..Shared::default()
        });
        let hub = Hub { endpoint, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(stream.unwrap()));
            }
        });
        hub
    }

    pub fn world(&self) -> World {
        let mut world = World::new();
        world.options.hub_endpoint = Some(self.endpoint.clone());
        world
    }

    pub fn answer(&self, file: &'static str, answer: Answer) {
        self.shared.files.lock().unwrap().insert(file, answer);
    }

    /// Lists files with the digests of large file storage, under a licence.
    pub fn list(&self, licence: &str, files: &[(&str, &[u8])]) {
        let siblings = files.iter().map(|(name, content)| {
            let (bytes, sha256) = (content.len(), sha256_of(content));
            format!(r#"{{"rfilename":"{name}","size":{bytes},"lfs":{{"sha256":"{sha256}","size":{bytes}}}}}"#)
        });
        let siblings = siblings.collect::<Vec<_>>().join(",");
        *self.shared.listing.lock().unwrap() =
            format!(r#"{{"sha":"{COMMIT}","cardData":{{"license":"{licence}"}},"siblings":[{siblings}]}}"#);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The ranges of all requests for a file's content.
    pub fn downloads_of(&self, file: &str) -> Vec<Option<String>> {
        let of_file = |request: &Request| request.method == "GET" && request.path.ends_with(&format!("/{file}"));
        self.requests().into_iter().filter(of_file).map(|request| request.range).collect()
    }
}

impl Shared {
    /// Answers one request and closes the connection.
    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let Some(Ok(first)) = lines.next() else { return };
        let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            let found = headers
                .iter()
                .find_map(|line| line.split_once(": ").filter(|(known, _)| known.eq_ignore_ascii_case(name)));
            found.map(|(_, value)| value.to_owned())
        };
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (range, token) = (header("range"), header("authorization"));
        self.requests.lock().unwrap().push(Request {
            method: method.clone(),
            path: path.clone(),
            range: range.clone(),
            token,
        });
        let (head, body) = self.answer_to(&method, &path, range.as_deref());
        // The other side may have given up already.
        let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes());
        if method != "HEAD" {
            let (content, pause) = body;
            let _ = stream.write_all(&content);
            thread::sleep(pause);
        }
    }

    /// The head, and the body with the time for which the connection stays open behind it.
    fn answer_to(&self, method: &str, path: &str, range: Option<&str>) -> (String, (Vec<u8>, Duration)) {
        let at_once = |head: String, body: &[u8]| (head, (body.to_vec(), Duration::ZERO));
        if path.starts_with("/api/models/") {
            if let Some(Answer::Refused(status, code)) = self.files.lock().unwrap().get("api") {
                return at_once(format!("{status}\r\nX-Error-Code: {code}\r\nContent-Length: 0"), b"");
            }
            let listing = self.listing.lock().unwrap().clone();
            return at_once(format!("200 OK\r\nContent-Length: {}", listing.len()), listing.as_bytes());
        }
        let file = path.split(&format!("/{COMMIT}/")).nth(1).or_else(|| path.split("/main/").nth(1)).unwrap_or(path);
        let answer = self.files.lock().unwrap().get(file).copied();
        let from: usize =
            range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()).unwrap_or(0);
        let (content, etag) = match answer {
            None => {
                let head = "404 Not Found\r\nX-Error-Code: EntryNotFound\r\nContent-Length: 15".to_owned();
                return at_once(head, b"Entry not found");
            }
            Some(Answer::Silence) => {
                thread::sleep(Duration::from_secs(30));
                return at_once("500 Late".to_owned(), b"");
            }
            Some(Answer::Refused(status, code)) => {
                return at_once(format!("{status}\r\nX-Error-Code: {code}\r\nContent-Length: 2"), b"no");
            }
            Some(Answer::Failed(_)) if method == "GET" => {
                return at_once("403 Forbidden\r\nContent-Length: 15".to_owned(), b"<html>no</html>");
            }
            Some(Answer::Promised { digest_of, content }) => (content, sha256_of(digest_of)),
            Some(Answer::Tagged { etag, content }) => (content, etag.to_owned()),
            Some(
                Answer::Content(content)
                | Answer::Failed(content)
                | Answer::Broken { content, .. }
                | Answer::Stalled { content, .. }
                | Answer::WithoutRanges { content, .. }
                | Answer::WrongRange(content),
            ) => (content, sha256_of(content)),
        };
        let promise = format!("ETag: \"{etag}\"\r\nX-Repo-Commit: {COMMIT}");
        if let Some(storage) = &self.storage {
            let linked = format!("X-Linked-Etag: \"{etag}\"\r\nX-Linked-Size: {}\r\n{promise}", content.len());
            return at_once(format!("302 Found\r\nLocation: {storage}{path}\r\n{linked}\r\nContent-Length: 0"), b"");
        }
        let whole = |content: &[u8]| format!("200 OK\r\n{promise}\r\nContent-Length: {}", content.len());
        let rest = || {
            let (end, bytes) = (content.len() - 1, content.len());
            format!(
                "206 Partial Content\r\n{promise}\r\nContent-Range: bytes {from}-{end}/{bytes}\r\nContent-Length: {}",
                bytes - from
            )
        };
        let head = if from == 0 { whole(content) } else { rest() };
        let cut = |bytes: usize| &content[from..(from + bytes).min(content.len())];
        match answer {
            Some(Answer::Broken { bytes, .. }) => at_once(head, cut(bytes)),
            Some(Answer::Stalled { bytes, .. }) => (head, (cut(bytes).to_vec(), Duration::from_secs(30))),
            Some(Answer::WithoutRanges { .. }) if from > 0 => at_once(whole(content), content),
            Some(Answer::WithoutRanges { bytes, .. }) => at_once(whole(content), &content[..bytes]),
            Some(Answer::WrongRange(_)) if from > 0 => {
                let bytes = content.len();
                let range = format!("Content-Range: bytes 0-{}/{bytes}\r\nContent-Length: {bytes}", bytes - 1);
                at_once(format!("206 Partial Content\r\n{promise}\r\n{range}"), content)
            }
            Some(Answer::WrongRange(_)) if self.downloads() < 2 => at_once(head, &content[..4]),
            _ => at_once(head, &content[from..]),
        }
    }

    fn downloads(&self) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.method == "GET").count()
    }
}
