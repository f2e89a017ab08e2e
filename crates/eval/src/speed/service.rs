//! A server as its clients see it: chats over HTTP, streamed with times, or unstreamed.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use calls::Sampling;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::decoding;
use super::http::{self, Usage};
use crate::{Error, Result};

/// A server that speaks OpenAI's chat completions; its first model is asked.
#[derive(Debug)]
pub struct Service {
    agent: Agent,
    url: String,
    model: String,
}

/// A client's measurements of one chat.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Heard {
    pub text: String,
    /// From the request to the first text.
    pub first: Duration,
    pub prompt_tokens: usize,
    pub cached_tokens: usize,
    pub output_tokens: usize,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "message")]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

impl Service {
    /// Asks a server for its models; `url` ends before `/v1`.
    ///
    /// # Errors
    /// [`Error::Peer`] if it does not answer or has none.
    pub fn find(url: &str) -> Result<Service> {
        let (agent, url) = (http::agent(http::TIMEOUT), http::address(url));
        let mut service = Service { agent, url, model: String::new() };
        let answer = service.agent.get(format!("{}/v1/models", service.url)).call();
        let models: Models = service.json(answer)?;
        let first = models.data.into_iter().next().ok_or_else(|| service.error("it has no models"))?;
        service.model = first.id;
        Ok(service)
    }

    /// The name of the model that is asked.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Sends a chat and streams the reply.
    pub(super) fn stream(&self, question: &str, tokens: usize, sampling: &Sampling) -> Result<Heard> {
        let asked = Instant::now();
        let mut answer = self.post(&self.body(question, tokens, sampling, true))?;
        let (mut heard, mut ended) = (Heard::default(), false);
        for line in BufReader::new(answer.body_mut().as_reader()).lines() {
            let line = line.map_err(|error| self.error(error))?;
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else { continue };
            let chunk = self.chunk(data)?;
            ended |= chunk.choices.iter().any(|choice| choice.finish_reason.is_some());
            let before = heard.text.len();
            heard.take(chunk);
            if before == 0 && !heard.text.is_empty() {
                heard.first = asked.elapsed();
            }
        }
        if ended { Ok(heard) } else { Err(self.error("an answer broke off")) }
    }

    /// Sends the same chat without streaming.
    pub(super) fn whole(&self, question: &str, tokens: usize, sampling: &Sampling) -> Result<Heard> {
        let asked = Instant::now();
        let mut answer = self.post(&self.body(question, tokens, sampling, false))?;
        let text = answer.body_mut().read_to_string().map_err(|error| self.error(error))?;
        let mut heard = Heard::default();
        heard.take(self.chunk(&text)?);
        heard.first = asked.elapsed();
        Ok(heard)
    }

    fn body(&self, question: &str, tokens: usize, sampling: &Sampling, stream: bool) -> Value {
        let messages =
            json!([{ "role": "system", "content": "You read closely." }, { "role": "user", "content": question }]);
        let mut body = json!({ "model": self.model, "messages": messages, "max_tokens": tokens, "stream": stream });
        decoding::put(sampling, &mut body);
        if stream {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body
    }

    fn post(&self, body: &Value) -> Result<Response<Body>> {
        let answer = self.agent.post(format!("{}/v1/chat/completions", self.url)).send_json(body);
        let mut answer = answer.map_err(|error| self.error(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let body = answer.body_mut().read_to_string().unwrap_or_default();
        Err(self.error(format!("{}: {body}", answer.status())))
    }

    fn chunk(&self, data: &str) -> Result<Chunk> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| self.error(format!("{error}: {data}")))?;
        chunk.error.as_ref().map_or(Ok(()), |error| Err(self.error(error)))?;
        Ok(chunk)
    }

    fn json<T: serde::de::DeserializeOwned>(
        &self,
        answer: std::result::Result<Response<Body>, ureq::Error>,
    ) -> Result<T> {
        let mut answer = answer.map_err(|error| self.error(error))?;
        let text = answer.body_mut().read_to_string().map_err(|error| self.error(error))?;
        serde_json::from_str(&text).map_err(|_| self.error(format!("{}: {text}", answer.status())))
    }

    fn error(&self, problem: impl ToString) -> Error {
        Error::Peer { url: self.url.clone(), problem: problem.to_string() }
    }
}

impl Heard {
    fn take(&mut self, chunk: Chunk) {
        chunk.choices.into_iter().filter_map(|choice| choice.delta.content).for_each(|text| self.text += &text);
        if let Some(usage) = chunk.usage {
            (self.prompt_tokens, self.output_tokens) = (usage.prompt_tokens, usage.completion_tokens);
            self.cached_tokens = usage.cached_tokens();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_server_that_hangs_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let mut open = Vec::new();
            for mut stream in listener.incoming().map_while(std::result::Result::ok) {
                // Only the first request, for the models, is answered.
                if open.is_empty() {
                    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 21";
                    let _ = write!(stream, "{head}\r\n\r\n{{\"data\":[{{\"id\":\"a\"}}]}}");
                }
                open.push(stream);
            }
        });
        let service = Service { agent: http::agent(Duration::from_secs(1)), ..Service::find(&url).unwrap() };
        for heard in [service.stream("Why?", 8, &Sampling::GREEDY), service.whole("Why?", 8, &Sampling::GREEDY)] {
            assert!(matches!(heard, Err(Error::Peer { .. })), "{heard:?}");
        }
    }
}
