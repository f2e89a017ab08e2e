//! The engine's thread.

use std::thread;
use std::time::{Duration, Instant};

use calls::CallError;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::embedding::EmbeddingQueue;
use crate::message::Message;
use crate::model_runner::ModelRunner;

/// Pause while calls wait for KV pages: their owners may submit follow-up calls.
const A_MOMENT: Duration = Duration::from_millis(2);

/// Everything that the engine's thread owns.
pub(crate) struct Worker {
    /// By index; none where a model was unloaded.
    pub models: Vec<Option<ModelRunner>>,
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
            self.models.iter_mut().flatten().for_each(|model| model.end_pins(now));
            let (started, writing) = (Instant::now(), !self.models.iter().flatten().all(ModelRunner::is_idle));
            let streams = self.models.iter().flatten().any(ModelRunner::is_streaming);
            let worked = self.models.iter_mut().flatten().fold(false, |worked, model| model.step(streams) | worked);
            if let Some(embedder) = &mut self.embedder {
                // While replies are generated, they get the larger part of the time.
                let now = Instant::now();
                embedder.step(writing.then(|| now + (now - started) / 4));
            }
            let now = Instant::now();
            self.models.iter().flatten().for_each(|model| model.publish(now));
            if writing && !worked && self.embedder.as_ref().is_none_or(EmbeddingQueue::is_idle) {
                // KV pages are short, and callers that hold pinned or cached ones may submit follow-up calls.
                thread::sleep(A_MOMENT);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.models.iter().flatten().all(ModelRunner::is_idle)
            && self.embedder.as_ref().is_none_or(EmbeddingQueue::is_idle)
    }

    /// Handles a message; true on shutdown.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Submit { model, id, namespace, submission } => match &mut self.models[model] {
                Some(model) => model.submit(id, namespace, *submission),
                None => drop(submission.reply.send(Err(unloaded(submission.step)))),
            },
            Message::Score { model, id, job } => match &mut self.models[model] {
                Some(model) => model.submit_score(id, *job),
                None => drop(job.reply.send(Err(unloaded(job.step)))),
            },
            Message::Cancel { model, id } => {
                if let Some(model) = &mut self.models[model] {
                    model.cancel(id);
                }
            }
            Message::CloseWorkflow(workflow) => {
                self.models.iter_mut().flatten().for_each(|model| model.close_workflow(workflow));
            }
            Message::Pin { model, id, namespace, prefix, until, reply } => {
                let model = self.models[model].as_mut();
                let _ = reply.send(model.map_or(0, |model| model.pin(id, namespace, &prefix, until)));
            }
            Message::Unpin { model, id } => {
                if let Some(model) = &mut self.models[model] {
                    model.unpin(id);
                }
            }
            // An unloaded model has no prefixes to save, and no pages for saved ones.
            Message::Save { model, namespace, workflow, identity, path, reply } => {
                let model = self.models[model].as_mut();
                let save = |model: &mut ModelRunner| model.save_prefixes(namespace, workflow, &identity, &path);
                let _ = reply.send(model.map_or(Ok(0), save));
            }
            Message::Load { model, namespace, saved, reply } => {
                let model = self.models[model].as_mut();
                let _ = reply.send(model.map_or(Ok(0), |model| model.load_prefixes(namespace, &saved)));
            }
            Message::Unload { model, reply } => {
                let model = &mut self.models[model];
                let is_idle = model.as_ref().is_none_or(ModelRunner::is_idle);
                if let Some(idle) = model.take_if(|_| is_idle) {
                    idle.retire(Instant::now());
                }
                let _ = reply.send(is_idle);
            }
            Message::LoadAgain { model, runner, reply } => {
                self.models[model].get_or_insert(*runner).publish(Instant::now());
                let _ = reply.send(());
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

/// Why a call of an unloaded model is refused.
fn unloaded(step: &str) -> CallError {
    CallError::NoModel { what: format!("step {step}: it was unloaded") }
}
