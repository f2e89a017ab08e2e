//! The clients of the soak test: pieces of work on a server, and how each ended.

use std::io::{BufRead, BufReader};

use serde::Serialize;
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::http;
use super::workload::words;
use crate::{Error, Result};

/// Documents of each corpus; each ingestion replaces one, so that the corpora do not grow.
pub(super) const DOCUMENTS: usize = 4;
/// Lines of a document.
const LINES: usize = 24;
/// The most tokens of a chat that is abandoned.
const TOKENS: usize = 200;

/// What a client does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Replaces a document and waits until it is searchable.
    Ingest,
    Ask,
    Embed,
    /// Begins a streamed chat and disconnects after its first text.
    Cancel,
    /// Looks at `/ready`; not limited by the number of requests.
    Ready,
}

pub(super) const WORKS: [Work; 4] = [Work::Ingest, Work::Ask, Work::Embed, Work::Cancel];

impl Work {
    pub(super) fn name(self) -> &'static str {
        match self {
            Work::Ingest => "ingest",
            Work::Ask => "ask",
            Work::Embed => "embed",
            Work::Cancel => "cancel",
            Work::Ready => "ready",
        }
    }
}

/// The end of one request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    Done,
    /// Status 429.
    Refused,
    Failed(String),
}

/// A server under test.
pub(super) struct Target {
    agent: Agent,
    url: String,
    chat: String,
    embedder: String,
}

impl Target {
    pub(super) fn find(url: &str) -> Result<Target> {
        let (agent, url) = (http::agent(http::TIMEOUT), http::address(url));
        let mut target = Target { agent, url, chat: String::new(), embedder: String::new() };
        let ready = target.expect("GET", "/ready", &Value::Null)?;
        let names: Vec<&str> = ready["models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let [chat, .., embedder] = names[..] else { return Err(target.error("it has not two models")) };
        (target.chat, target.embedder) = (chat.to_owned(), embedder.to_owned());
        Ok(target)
    }

    /// One piece of work; `turn` makes it another than the last.
    pub(super) fn work(&self, work: Work, corpus: &str, turn: usize) -> Ended {
        match work {
            Work::Ingest => self.ingest(corpus, turn / WORKS.len() % DOCUMENTS, turn),
            Work::Ask => {
                let question = format!("Which lamp of pier {} was lit?", turn % DOCUMENTS);
                let body = json!({ "question": question, "method": "rag", "temperature": 0 });
                self.ended(self.send("POST", &format!("/v1/corpora/{corpus}/ask"), &body))
            }
            Work::Embed => {
                let texts: Vec<String> = (0..8).map(|text| words(turn * 8 + text, 40)).collect();
                self.ended(self.send("POST", "/v1/embeddings", &json!({ "model": self.embedder, "input": texts })))
            }
            Work::Cancel => self.cancel(turn),
            Work::Ready => self.ready(),
        }
    }

    /// Replaces a document by another text; `turn` makes it new.
    pub(super) fn ingest(&self, corpus: &str, number: usize, turn: usize) -> Ended {
        let line = |line| format!("Message {turn}.{line} says that lamp {line} of pier {number} was lit.\n");
        let text = (0..LINES).map(line).collect::<String>();
        let body = json!({ "name": format!("{number}.txt"), "text": text, "method": "rag" });
        let job = match self.json(self.send("POST", &format!("/v1/corpora/{corpus}/documents"), &body)) {
            Ok((202, job)) => job,
            Ok((429, _)) => return Ended::Refused,
            Ok((status, body)) => return Ended::Failed(format!("ingest: {status}: {body}")),
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let events = format!("/v1/jobs/{}/events", job["id"].as_str().unwrap_or_default());
        let answer = self.send("GET", &events, &Value::Null).and_then(|mut answer| self.text(&mut answer));
        let last =
            answer.map(|text| text.lines().rev().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)));
        let state = last.map(|last| last.and_then(|last| serde_json::from_str::<Value>(&last).ok()));
        match state {
            Ok(Some(state)) if state["status"] == "done" => Ended::Done,
            Ok(state) => Ended::Failed(format!("ingest ended as {}", state.unwrap_or_default())),
            Err(error) => Ended::Failed(error.to_string()),
        }
    }

    fn cancel(&self, turn: usize) -> Ended {
        let messages = json!([{ "role": "user", "content": format!("{} Go on with this text.", words(turn, 60)) }]);
        let body = json!({ "model": self.chat, "messages": messages, "max_tokens": TOKENS, "stream": true });
        let mut answer = match self.send("POST", "/v1/chat/completions", &body) {
            Ok(answer) if answer.status().is_success() => answer,
            answer => return self.ended(answer),
        };
        let mut lines = BufReader::new(answer.body_mut().as_reader()).lines().map_while(std::result::Result::ok);
        match lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)) {
            Some(data) if is_chunk(&data) => Ended::Done,
            data => Ended::Failed(format!("cancel: the stream began with {}", data.unwrap_or_default())),
        }
    }

    pub(super) fn ready(&self) -> Ended {
        match self.json(self.send("GET", "/ready", &Value::Null)) {
            Ok((200, body)) if body["status"] == "ready" => Ended::Done,
            Ok((status, body)) => Ended::Failed(format!("ready: {status}: {body}")),
            Err(error) => Ended::Failed(error.to_string()),
        }
    }

    fn ended(&self, answer: Result<Response<Body>>) -> Ended {
        match self.json(answer) {
            Ok((200, _)) => Ended::Done,
            Ok((429, _)) => Ended::Refused,
            Ok((status, body)) => Ended::Failed(format!("{status}: {body}")),
            Err(error) => Ended::Failed(error.to_string()),
        }
    }

    /// The JSON response to a request that must succeed.
    pub(super) fn expect(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, body) = self.json(self.send(method, path, body))?;
        if (200..300).contains(&status) { Ok(body) } else { Err(self.error(format!("{path}: {status}: {body}"))) }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Response<Body>> {
        let url = format!("{}{path}", self.url);
        let sent = match method {
            "POST" => self.agent.post(url).send_json(body),
            "DELETE" => self.agent.delete(url).call(),
            _ => self.agent.get(url).call(),
        };
        sent.map_err(|error| self.error(error))
    }

    fn json(&self, answer: Result<Response<Body>>) -> Result<(u16, Value)> {
        let mut answer = answer?;
        let text = self.text(&mut answer)?;
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(text.into()) };
        Ok((answer.status().as_u16(), body))
    }

    fn text(&self, answer: &mut Response<Body>) -> Result<String> {
        answer.body_mut().read_to_string().map_err(|error| self.error(error))
    }

    pub(super) fn error(&self, problem: impl ToString) -> Error {
        Error::Peer { url: self.url.clone(), problem: problem.to_string() }
    }
}

/// Whether an event of a stream has no error; the text of a model may be the word.
fn is_chunk(data: &str) -> bool {
    serde_json::from_str::<Value>(data).is_ok_and(|chunk| chunk["error"].is_null() && chunk["choices"].is_array())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_that_hangs_has_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let mut open = Vec::new();
            for mut stream in listener.incoming().map_while(std::result::Result::ok) {
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
                // The answer to the first request is whole, that to the second breaks off, the others have none.
                let _ = match open.len() {
                    0 => write!(stream, "{head} 20\r\n\r\n{{\"models\":[\"a\",\"b\"]}}"),
                    1 => write!(stream, "{head} 99\r\n\r\ndata: "),
                    _ => Ok(()),
                };
                open.push(stream);
            }
        });
        let target = Target { agent: http::agent(Duration::from_secs(1)), ..Target::find(&url).unwrap() };
        for work in [Work::Cancel, Work::Ask, Work::Ready, Work::Ingest] {
            let ended = target.work(work, "corpus", 0);
            assert!(matches!(ended, Ended::Failed(_)), "{work:?}: {ended:?}");
        }
    }

    #[test]
    fn the_word_error_in_a_reply_is_no_error() {
        assert!(is_chunk(r#"{"choices":[{"index":0,"delta":{"content":"error","role":"assistant"}}]}"#));
        assert!(!is_chunk(r#"{"error":{"message":"the engine has ended"}}"#));
        assert!(!is_chunk("[DONE]"));
    }
}
