//! Messages of MCP as lines of standard input and output. rmcp's own transport ignores a line that is no JSON; here it
//! is answered, as JSON-RPC 2.0 asks for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ErrorCode;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::json::in_words_of_json;

/// Maximum bytes of a line, its end included.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Clients on some systems begin with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

type Message = RxJsonRpcMessage<RoleServer>;
type Writing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A connection over lines. The future of `receive` may be dropped and made again: what has arrived of a line and what
/// is left to write of an answer are kept here.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The line exceeds the maximum; its rest is skipped.
    is_too_long: bool,
    write: Arc<Mutex<W>>,
    answering: Option<Writing>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub fn new(read: R, write: W) -> Lines<R, W> {
        let (read, write) = (BufReader::new(read), Arc::new(Mutex::new(write)));
        Lines { read, line: Vec::new(), is_too_long: false, write, answering: None }
    }

    /// The next message, or the answer to a line that is none; nothing if the line needs no answer. The last line may have no
    /// end.
    ///
    /// # Errors
    /// If the input cannot be read, or ends.
    async fn read_line(&mut self) -> io::Result<Option<Result<Message, Value>>> {
        loop {
            let left = MAX_LINE_BYTES - self.line.len();
            let read = (&mut self.read).take(left as u64).read_until(b'\n', &mut self.line).await?;
            let has_ended = read == 0;
            if has_ended && self.line.is_empty() && !self.is_too_long {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if has_ended || self.line.ends_with(b"\n") {
                let read = if self.is_too_long { Some(Err(too_long())) } else { parse(&self.line) };
                self.line.clear();
                self.is_too_long = false;
                return Ok(read);
            }
            if self.line.len() == MAX_LINE_BYTES {
                self.line.clear();
                self.is_too_long = true;
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move { write_line(&write, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(answering) = &mut self.answering {
                let written = answering.await;
                self.answering = None;
                written.ok()?;
            }
            match self.read_line().await.ok()? {
                Some(Ok(message)) => return Some(message),
                Some(Err(answer)) => {
                    let write = Arc::clone(&self.write);
                    let answer = answer.to_string().into_bytes();
                    self.answering = Some(Box::pin(async move { write_line(&write, answer).await }));
                }
                None => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn write_line(write: &Mutex<impl AsyncWrite + Unpin>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut write = write.lock().await;
    write.write_all(&line).await?;
    write.flush().await
}

/// The message of a line, or the answer to one that is none. An empty line and an unknown notification need none.
fn parse(line: &[u8]) -> Option<Result<Message, Value>> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(Ok(message));
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            let why = in_words_of_json(&error.to_string());
            return Some(Err(refusal(&Value::Null, ErrorCode::PARSE_ERROR, &format!("the line is not JSON: {why}"))));
        }
    };
    if value["method"].is_string() && value.get("id").is_none() {
        return None;
    }
    let message = "it is no request, notification or response of JSON-RPC 2.0";
    Some(Err(refusal(&value["id"], ErrorCode::INVALID_REQUEST, message)))
}

fn too_long() -> Value {
    let message = format!("a message has at most {MAX_LINE_BYTES} bytes, and this one has more");
    refusal(&Value::Null, ErrorCode::INVALID_REQUEST, &message)
}

/// An error as JSON-RPC writes it: its id is null where that of the request cannot be read. rmcp would leave it out.
fn refusal(id: &Value, code: ErrorCode, message: &str) -> Value {
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } })
}

#[cfg(test)]
mod tests {
    use rmcp::ServiceExt;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};

    use super::{Lines, MAX_LINE_BYTES};
    use crate::app::Shared;
    use crate::mcp::Mcp;

    #[tokio::test]
    async fn a_line_that_is_no_message_is_answered_and_the_next_one_is_read() {
        let (app, _folder) = Shared::scripted();
        let (client, server) = duplex(1 << 16);
        let (read, write) = split(server);
        let serving = tokio::spawn(Mcp { app }.serve(Lines::new(read, write)));
        let (read, mut write) = split(client);
        let mut answers = BufReader::new(read).lines();
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }).to_string();
        for (line, id, code) in [
            ("{\"jsonrpc\": \"2.0\", \"id\": 7", Value::Null, json!(-32700)),
            ("hello", Value::Null, json!(-32700)),
            ("[]", Value::Null, json!(-32600)),
            ("{\"id\": 7}", json!(7), json!(-32600)),
            ("x".repeat(MAX_LINE_BYTES).as_str(), Value::Null, json!(-32600)),
            // A notification is not answered.
            (format!("\r\n{{\"method\": \"none\"}}\n{hello}").as_str(), json!(1), Value::Null),
        ] {
            write.write_all(format!("{line}\n").as_bytes()).await.expect("it is read");
            let answer = answers.next_line().await.expect("it is written").expect("an answer");
            let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
            assert_eq!(answer.get("id"), Some(&id), "{answer}");
            assert_eq!(answer["error"]["code"], code, "{answer}");
        }
        drop((write, answers));
        serving.abort();
    }

    #[tokio::test]
    async fn the_last_line_needs_no_end() {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        for (input, is_message) in [(ping.as_str(), true), ("hello", false)] {
            let mut lines = Lines::new(input.as_bytes(), tokio::io::sink());
            let read = lines.read_line().await.expect("a line").expect("it needs an answer");
            assert_eq!(read.is_ok(), is_message, "{input}");
            assert!(lines.read_line().await.is_err(), "the input has ended");
        }
    }
}
