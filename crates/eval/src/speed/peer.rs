//! The same workload on a peer server.

use std::thread;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;

use super::decoding;
use super::http::{Usage, address};
use super::outcome::Outcome;
use super::workload::Piece;
use crate::{Error, Result};

/// A batch of vectors as text exceeds the client's default limit.
const MAX_ANSWER_BYTES: u64 = 1 << 28;

/// A server that speaks OpenAI's completions, takes prompts as token ids, honours `ignore_eos` and takes
/// JSON schemas (llama-server, vLLM).
#[derive(Debug)]
pub struct Peer {
    agent: Agent,
    url: String,
}

#[derive(Deserialize)]
struct Completion {
    usage: Usage,
}

impl Peer {
    /// Checks whether a server is reachable; `url` ends before `/v1`.
    ///
    /// # Errors
    /// [`Error::Peer`] if it does not answer.
    pub fn connect(url: &str) -> Result<Peer> {
        let agent = Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        let peer = Peer { agent, url: address(url) };
        let url = format!("{}/v1/models", peer.url);
        let answer = peer.agent.get(&url).call().map_err(|error| peer.error(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(peer.error(format!("{} to a question for its models", answer.status())));
        }
        Ok(peer)
    }

    /// Runs the workload; every chain has a connection of its own.
    pub(super) fn run(&self, chains: &[Vec<Piece>]) -> Result<Outcome> {
        let started = Instant::now();
        let outcomes: Vec<Result<Vec<Outcome>>> = thread::scope(|scope| {
            let chain = |pieces: &Vec<Piece>| pieces.iter().map(|piece| self.complete(piece)).collect();
            let threads: Vec<_> = chains.iter().map(|pieces| scope.spawn(move || chain(pieces))).collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|outcome| outcome.unwrap_or_else(|_| Err(self.error("a thread panicked".into())))).collect()
        });
        let mut sum = Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() };
        for outcome in outcomes.into_iter().collect::<Result<Vec<_>>>()?.iter().flatten() {
            sum.prompt_tokens += outcome.prompt_tokens;
            sum.cached_tokens += outcome.cached_tokens;
            sum.output_tokens += outcome.output_tokens;
        }
        Ok(sum)
    }

    fn complete(&self, piece: &Piece) -> Result<Outcome> {
        let mut body = json!({
            "prompt": piece.prompt,
            "max_tokens": piece.output_tokens,
            "cache_prompt": true,
        });
        match &piece.schema {
            // The name of llama-server, and that of others.
            Some(schema) => {
                body["json_schema"] = schema.clone();
                body["response_format"] =
                    json!({ "type": "json_schema", "json_schema": { "name": "records", "schema": schema } });
            }
            None => body["ignore_eos"] = json!(true),
        }
        decoding::put(&piece.sampling, &mut body);
        let failed = |error: ureq::Error| self.error(error.to_string());
        let mut answer = self.agent.post(format!("{}/v1/completions", self.url)).send_json(&body).map_err(failed)?;
        let status = answer.status();
        let answer: Value = answer.body_mut().read_json().map_err(failed)?;
        if !status.is_success() {
            return Err(self.error(format!("{status}: {answer}")));
        }
        let Completion { usage } = serde_json::from_value(answer).map_err(|error| self.error(error.to_string()))?;
        let asked = (piece.prompt.len(), piece.output_tokens);
        let done = (usage.prompt_tokens, usage.completion_tokens);
        // An answer in a schema ends by itself.
        if asked.0 != done.0 || done.1 > asked.1 || piece.schema.is_none() && done.1 < asked.1 {
            return Err(self.error(format!("it read and wrote {done:?} tokens where {asked:?} were asked for")));
        }
        Ok(Outcome { seconds: 0.0, prompt_tokens: done.0, cached_tokens: usage.cached_tokens(), output_tokens: done.1 })
    }

    /// Embeds texts and returns the seconds.
    pub(super) fn embed(&self, texts: &[String]) -> Result<f64> {
        let body = json!({ "input": texts, "model": "peer", "encoding_format": "float" });
        let failed = |error: ureq::Error| self.error(error.to_string());
        let started = Instant::now();
        let mut answer = self.agent.post(format!("{}/v1/embeddings", self.url)).send_json(&body).map_err(failed)?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_json();
        let answer: Value = read.map_err(failed)?;
        let seconds = started.elapsed().as_secs_f64();
        match answer["data"].as_array().map(Vec::len) {
            Some(vectors) if vectors == texts.len() => Ok(seconds),
            vectors => Err(self.error(format!("{status}: {vectors:?} vectors for {} texts", texts.len()))),
        }
    }

    fn error(&self, problem: String) -> Error {
        Error::Peer { url: self.url.clone(), problem }
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::Command;

    use super::*;

    const URL: &str = "MEMLOCAL_TEST_PEER";

    /// Runs itself in a process whose environment names a proxy that does not exist.
    #[test]
    fn a_peer_is_reached_without_a_proxy() {
        if let Ok(url) = env::var(URL) {
            Peer::connect(&url).unwrap();
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(std::result::Result::ok) {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}");
            }
        });
        let run = Command::new(env::current_exe().unwrap())
            .args(["--exact", "speed::peer::tests::a_peer_is_reached_without_a_proxy"])
            .env(URL, url)
            .env("ALL_PROXY", "http://127.0.0.1:1")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
    }
}
