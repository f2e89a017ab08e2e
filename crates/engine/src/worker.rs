//! The engine's thread.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::embedding::EmbeddingQueue;
use crate::message::Message;
use crate::model_runner::ModelRunner;

/// Pause while calls wait for KV pages: their owners may submit follow-up calls.
const A_MOMENT: Duration = Duration::from_millis(2);

/// Everything that the engine's thread owns.
pub(crate) struct Worker {
    pub models: Vec<ModelRunner>,
    pub embedder: Option<EmbeddingQueue>,
    pub mailbox: UnboundedReceiver<Message>,
}

impl Worker {
    /// The main loop: handle messages, run a step of every model; ends on shutdown or when every handle is dropped.
    pub fn run(mut self) {
        let mut stopping = false;
        loop {
            if self.is_idle() {
                if stopping {
                    return;
                }
                match self.mailbox.blocking_recv() {
                    Some(message) => stopping |= self.take(message),
                    None => return,
                }
            }
            loop {
                match self.mailbox.try_recv() {
                    Ok(message) => stopping |= self.take(message),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let now = Instant::now();
            self.models.iter_mut().for_each(|model| model.end_pins(now));
            let (started, writing) = (Instant::now(), !self.models.iter().all(ModelRunner::is_idle));
            let streams = self.models.iter().any(ModelRunner::is_streaming);
            let worked = self.models.iter_mut().fold(false, |worked, model| model.step(streams) | worked);
            if let Some(embedder) = &mut self.embedder {
                // While replies are generated, they get the larger part of the time.
                let now = Instant::now();
                embedder.step(writing.then(|| now + (now - started) / 4));
            }
            let now = Instant::now();
            self.models.iter().for_each(|model| model.publish(now));
            if writing && !worked && self.embedder.as_ref().is_none_or(EmbeddingQueue::is_idle) {
                // KV pages are short, and callers that hold pinned or cached ones may submit follow-up calls.
                thread::sleep(A_MOMENT);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.models.iter().all(ModelRunner::is_idle) && self.embedder.as_ref().is_none_or(EmbeddingQueue::is_idle)
    }

    /// Handles a message; true on shutdown.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Submit { model, id, namespace, submission } => {
                self.models[model].submit(id, namespace, *submission);
            }
            Message::Score { model, id, job } => self.models[model].submit_score(id, *job),
            Message::Cancel { model, id } => self.models[model].cancel(id),
            Message::CloseWorkflow(workflow) => self.models.iter_mut().for_each(|model| model.close_workflow(workflow)),
            Message::Pin { model, id, namespace, prefix, until, reply } => {
                let _ = reply.send(self.models[model].pin(id, namespace, &prefix, until));
            }
            Message::Unpin { model, id } => self.models[model].unpin(id),
            Message::Save { model, namespace, workflow, identity, path, reply } => {
                let _ = reply.send(self.models[model].save_prefixes(namespace, workflow, &identity, &path));
            }
            Message::Load { model, namespace, saved, reply } => {
                let _ = reply.send(self.models[model].load_prefixes(namespace, &saved));
            }
            Message::Embed(job) => {
                if let Some(embedder) = &mut self.embedder {
                    embedder.push(job);
                }
            }
            Message::Shutdown => return true,
        }
        false
    }
}
