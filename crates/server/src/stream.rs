//! Streamed responses: server-sent events, or lines of JSON.
//!
//! The work runs as a task that ends when the client disconnects, which cancels its calls. An early refusal gets its
//! own status code; a later error is the last event of the stream.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use crate::anthropic::error::in_anthropics_form;
use crate::error::{Result, ServerError};

/// How messages are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// Server-sent events of Anthropic's API, whose errors have another form.
    AnthropicEvents,
    /// One JSON object per line, as by Ollama.
    Lines,
}

/// Receives the output of the work, which never waits for the client.
#[derive(Clone)]
pub(crate) struct Sink {
    sender: Sender<Piece>,
    framing: Framing,
    /// Notified when the queue was full.
    overflow: Arc<Notify>,
}

/// Maximum pieces queued for a slow client; beyond it the response is aborted.
const MAX_PIECES: usize = 1 << 16;

/// Maximum queued pieces where the work can wait for the client.
const MAX_LEADING_PIECES: usize = 16;

enum Piece {
    Bytes(Bytes),
    Failed(ServerError),
    /// The work has ended, even if clones of its sink exist.
    End,
}

/// Refusals precede all computation, so they arrive within this time.
const REFUSAL_WINDOW: Duration = Duration::from_secs(1);

/// Interval of keep-alive messages, so that no proxy closes an idle connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

impl Sink {
    /// Sends a JSON value. After a disconnect it is dropped; the work is cancelled elsewhere.
    pub fn json(&self, value: &impl Serialize) {
        self.event("", value);
    }

    /// Sends a JSON value as an event with this name.
    pub fn event(&self, name: &str, value: &impl Serialize) {
        let json = serde_json::to_string(value).unwrap_or_default();
        let text = match (self.framing, name) {
            (Framing::Lines, _) => format!("{json}\n"),
            (_, "") => format!("data: {json}\n\n"),
            (_, name) => format!("event: {name}\ndata: {json}\n\n"),
        };
        self.send(text);
    }

    /// Waits until the client has read most of the queue.
    pub async fn wait_for_capacity(&self) {
        // A disconnect is detected elsewhere.
        drop(self.sender.reserve_many(MAX_PIECES - MAX_LEADING_PIECES).await);
    }

    /// Sends OpenAI's end-of-stream marker.
    pub fn done(&self) {
        self.send("data: [DONE]\n\n".to_owned());
    }

    fn send(&self, text: String) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Piece::Bytes(text.into())) {
            self.overflow.notify_one();
        }
    }
}

/// Runs work and streams its output.
pub(crate) async fn respond<F>(framing: Framing, work: impl FnOnce(Sink) -> F) -> Result<Response>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (sender, mut receiver) = channel(MAX_PIECES);
    let overflow = Arc::new(Notify::new());
    let work = work(Sink { sender: sender.clone(), framing, overflow: Arc::clone(&overflow) });
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            () = overflow.notified() => tracing::warn!("aborted a response: its client does not read it"),
            outcome = work => {
                if let Err(error) = outcome {
                    let _ = sender.send(Piece::Failed(error)).await;
                }
                let _ = sender.send(Piece::End).await;
            }
        }
    });
    let first = match timeout(REFUSAL_WINDOW, receiver.recv()).await {
        Ok(Some(Piece::Failed(error))) => return Err(error),
        Ok(Some(Piece::Bytes(bytes))) => Some(bytes),
        Ok(None) => return Err(ServerError::Worker("the response was aborted".into())),
        Ok(Some(Piece::End)) => return Ok(response(framing, Body::empty())),
        Err(_) => None,
    };
    let pieces = stream::iter(first).map(Ok).chain(pieces(receiver, framing));
    Ok(response(framing, Body::from_stream(pieces)))
}

fn response(framing: Framing, body: Body) -> Response {
    let kind = match framing {
        Framing::Events | Framing::AnthropicEvents => "text/event-stream",
        Framing::Lines => "application/x-ndjson",
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}

/// An aborted response ends with an error, so that no client takes it for complete. Lines are not kept alive: Ollama's clients
/// parse each as JSON, blank ones too.
fn pieces(receiver: Receiver<Piece>, framing: Framing) -> impl futures_util::Stream<Item = Result<Bytes>> {
    stream::unfold(receiver, move |mut receiver| async move {
        let piece = match framing {
            Framing::Events | Framing::AnthropicEvents => timeout(KEEP_ALIVE_INTERVAL, receiver.recv()).await,
            Framing::Lines => Ok(receiver.recv().await),
        };
        let bytes = match piece {
            Ok(Some(piece)) => to_bytes(piece, framing)?,
            Ok(None) => return Some((Err(ServerError::Worker("the response was aborted".into())), receiver)),
            Err(_) => Bytes::from_static(b": keep-alive\n\n"),
        };
        Some((Ok(bytes), receiver))
    })
}

fn to_bytes(piece: Piece, framing: Framing) -> Option<Bytes> {
    let error = match piece {
        Piece::Bytes(bytes) => return Some(bytes),
        Piece::End => return None,
        Piece::Failed(error) => error,
    };
    error.log();
    let text = match framing {
        Framing::Events => format!("event: error\ndata: {}\n\n", error.body()),
        Framing::AnthropicEvents => {
            format!("event: error\ndata: {}\n\n", in_anthropics_form(error.status().0, error.body()))
        }
        Framing::Lines => format!("{}\n", json!({ "error": error.ollama_text() })),
    };
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_failure_in_the_middle_of_a_stream_is_logged_and_has_its_hint() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let log = folder.path().join("log");
        let lines = Arc::new(File::create(&log).expect("a file"));
        let logger = tracing_subscriber::fmt().with_ansi(false).with_writer(lines).finish();
        let failed = |framing| {
            let error = ServerError::DeadlineExceeded(Duration::from_secs(9));
            let bytes = to_bytes(Piece::Failed(error), framing).expect("a failure is sent");
            String::from_utf8(bytes.to_vec()).expect("a text")
        };
        let framings = [Framing::Events, Framing::AnthropicEvents, Framing::Lines];
        let [event, of_anthropic, line] = tracing::subscriber::with_default(logger, || framings.map(failed));
        assert!(event.starts_with("event: error\ndata: ") && event.contains("longer --deadline"), "{event}");
        let data = of_anthropic.strip_prefix("event: error\ndata: ").expect("an event");
        let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
        assert_eq!((&data["type"], &data["error"]["type"]), (&json!("error"), &json!("timeout_error")));
        assert!(line.contains("was cancelled\\nhint: start the server with a longer --deadline"), "{line}");
        let said = fs::read_to_string(&log).expect("it is there");
        assert_eq!(
            said.lines().filter(|line| line.contains("ERROR") && line.contains("took longer than 9 s")).count(),
            3
        );
    }
}
