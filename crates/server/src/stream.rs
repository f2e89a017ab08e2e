//! Answers that are sent while they are written: server-sent events, or lines of JSON.
//!
//! The work runs as a task that ends when the client goes away, which gives up its calls. What is refused at once gets its
//! own status code; whatever fails later is the last event of the stream.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::error::{Result, ServerError};

/// How pieces are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON object a line, as Ollama sends them.
    Lines,
}

/// Where the work sends what it has; any number of pieces may wait, since an answer is bounded.
#[derive(Clone)]
pub(crate) struct Sink {
    sender: UnboundedSender<Piece>,
    framing: Framing,
}

enum Piece {
    Bytes(Bytes),
    Failed(ServerError),
    /// Whoever still holds a sink has nothing more to send.
    End,
}

/// Refusals come before anything is computed, so within this time.
const MOMENT: Duration = Duration::from_secs(1);

/// Something is sent this often, so that nobody on the way takes the connection for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

impl Sink {
    /// Sends a JSON value. Where nobody listens any more the work is ended from outside.
    pub fn json(&self, value: &impl Serialize) {
        self.event("", value);
    }

    /// Sends a JSON value as an event of this name.
    pub fn event(&self, name: &str, value: &impl Serialize) {
        let json = serde_json::to_string(value).unwrap_or_default();
        let text = match (self.framing, name) {
            (Framing::Lines, _) => format!("{json}\n"),
            (Framing::Events, "") => format!("data: {json}\n\n"),
            (Framing::Events, name) => format!("event: {name}\ndata: {json}\n\n"),
        };
        self.send(text);
    }

    /// Sends OpenAI's mark of a stream's end.
    pub fn done(&self) {
        self.send("data: [DONE]\n\n".to_owned());
    }

    fn send(&self, text: String) {
        let _ = self.sender.send(Piece::Bytes(text.into()));
    }
}

/// Runs work whose pieces are sent as they come.
pub(crate) async fn respond<F>(framing: Framing, work: impl FnOnce(Sink) -> F) -> Result<Response>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (sender, mut receiver) = unbounded_channel();
    let work = work(Sink { sender: sender.clone(), framing });
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            outcome = work => {
                if let Err(error) = outcome {
                    let _ = sender.send(Piece::Failed(error));
                }
                let _ = sender.send(Piece::End);
            }
        }
    });
    let first = match timeout(MOMENT, receiver.recv()).await {
        Ok(Some(Piece::Failed(error))) => return Err(error),
        Ok(Some(Piece::Bytes(bytes))) => Some(bytes),
        Ok(Some(Piece::End) | None) => return Ok(head(framing, Body::empty())),
        Err(_) => None,
    };
    let pieces = stream::iter(first).chain(pieces(receiver, framing)).map(Ok::<_, Infallible>);
    Ok(head(framing, Body::from_stream(pieces)))
}

fn head(framing: Framing, body: Body) -> Response {
    let kind = match framing {
        Framing::Events => "text/event-stream",
        Framing::Lines => "application/x-ndjson",
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}

fn pieces(receiver: UnboundedReceiver<Piece>, framing: Framing) -> impl futures_util::Stream<Item = Bytes> {
    stream::unfold(receiver, move |mut receiver| async move {
        let bytes = match (timeout(SIGN_OF_LIFE, receiver.recv()).await, framing) {
            (Ok(piece), _) => framed(piece?, framing)?,
            (Err(_), Framing::Events) => Bytes::from_static(b": still here\n\n"),
            (Err(_), Framing::Lines) => Bytes::from_static(b"\n"),
        };
        Some((bytes, receiver))
    })
}

fn framed(piece: Piece, framing: Framing) -> Option<Bytes> {
    match (piece, framing) {
        (Piece::Bytes(bytes), _) => Some(bytes),
        (Piece::Failed(error), Framing::Events) => Some(format!("event: error\ndata: {}\n\n", error.body()).into()),
        (Piece::Failed(error), Framing::Lines) => Some(format!("{}\n", json!({ "error": error.to_string() })).into()),
        (Piece::End, _) => None,
    }
}
