//! Pieces of replies, taken from the engine's thread to the task that awaits the reply.
//!
//! The engine hands over a copy of each piece and continues. The receiver of the call, which formats and queues it for a
//! client, runs in the task.

use calls::{Call, CallError, Caller, OnText, Piece, Reply, TokenLogprob};
use tokio::sync::mpsc::unbounded_channel;

/// A copy of a [`Piece`].
enum OwnedPiece {
    Thought(String),
    Text(String, Vec<TokenLogprob>),
    ToolCall(String),
    Arguments(String),
}

impl OwnedPiece {
    fn of(piece: Piece<'_>) -> OwnedPiece {
        match piece {
            Piece::Thought(text) => OwnedPiece::Thought(text.to_owned()),
            Piece::Text(text, tokens) => OwnedPiece::Text(text.to_owned(), tokens.to_vec()),
            Piece::ToolCall(name) => OwnedPiece::ToolCall(name.to_owned()),
            Piece::Arguments(text) => OwnedPiece::Arguments(text.to_owned()),
        }
    }

    fn send_to(&self, receiver: &OnText) {
        receiver.send_piece(match self {
            OwnedPiece::Thought(text) => Piece::Thought(text),
            OwnedPiece::Text(text, tokens) => Piece::Text(text, tokens),
            OwnedPiece::ToolCall(name) => Piece::ToolCall(name),
            OwnedPiece::Arguments(text) => Piece::Arguments(text),
        });
    }
}

/// Makes a call; its receiver of text runs in this future, and has had every piece when the reply is returned.
///
/// # Errors
/// As [`Caller::call`].
pub(crate) async fn call(caller: &dyn Caller, mut call: Call) -> Result<Reply, CallError> {
    let Some(receiver) = call.on_text.take() else { return caller.call(call).await };
    // Bounded by the length of the reply.
    let (sender, mut pieces) = unbounded_channel();
    // The pieces of a call that is cancelled are lost.
    call.on_text = Some(OnText::pieces(move |piece| drop(sender.send(OwnedPiece::of(piece)))));
    let mut reply = caller.call(call);
    let reply = loop {
        tokio::select! {
            biased;
            Some(piece) = pieces.recv() => piece.send_to(&receiver),
            reply = &mut reply => break reply,
        }
    };
    while let Ok(piece) = pieces.try_recv() {
        piece.send_to(&receiver);
    }
    reply
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread::{self, ThreadId};

    use calls::{Agent, Prompt, Scripted};
    use test_support::double::Double;

    use super::*;

    /// Writes a reply on a thread of its own, as the engine does.
    fn engine() -> Double {
        Double::new(Scripted::new(100).answer("chat", "a")).answering(|script, mut call| {
            let on_text = call.on_text.take().expect("the call is streamed");
            let (sender, receiver) = tokio::sync::oneshot::channel();
            thread::spawn(move || {
                let pieces =
                    [Piece::Thought("So"), Piece::Text("a", &[]), Piece::ToolCall("look"), Piece::Arguments("{}")];
                pieces.into_iter().for_each(|piece| on_text.send_piece(piece));
                sender.send(()).expect("the reply is awaited");
            });
            Box::pin(async move {
                receiver.await.map_err(|_| CallError::Closed)?;
                script.call(call).await
            })
        })
    }

    #[tokio::test]
    async fn pieces_are_received_in_order_by_the_task_that_awaits_the_reply() {
        let received = Arc::<Mutex<Vec<(ThreadId, String)>>>::default();
        let kept = Arc::clone(&received);
        let on_text = OnText::pieces(move |piece| {
            kept.lock().expect("no thread panics").push((thread::current().id(), format!("{piece:?}")));
        });
        let request = Call::new(Agent::Responder, "chat", Prompt::new(), 5);
        let reply = call(&engine(), Call { on_text: Some(on_text), ..request }).await.expect("the call is answered");
        let received = received.lock().expect("no thread panics").clone();
        let pieces: Vec<&str> = received.iter().map(|(_, piece)| piece.as_str()).collect();
        assert_eq!(pieces, ["Thought(\"So\")", "Text(\"a\", [])", "ToolCall(\"look\")", "Arguments(\"{}\")"]);
        assert!(received.iter().all(|(thread, _)| *thread == thread::current().id()), "{received:?}");
        assert_eq!(reply.text, "a");
    }
}
