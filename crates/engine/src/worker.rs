//! The engine's thread.

use std::time::{Duration, Instant};

use calls::CallError;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::embedding::EmbeddingQueue;
use crate::format_threads::{Advanced, FormatThreads};
use crate::message::Message;
use crate::model_runner::ModelRunner;

/// Pause while nothing can run.
const A_MOMENT: Duration = Duration::from_millis(2);

/// Everything that the engine's thread owns.
pub(crate) struct Worker {
    /// By index; none where a model was unloaded.
    pub models: Vec<Option<ModelRunner>>,
    pub embedder: Option<EmbeddingQueue>,
    pub format_threads: FormatThreads,
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
            let (started, writing) = (Instant::now(), !self.models.iter().flatten().all(ModelRunner::is_idle));
            let streams = self.models.iter().flatten().any(ModelRunner::is_streaming);
            let worked = self.step(streams);
            let (ended, took) = (Instant::now(), started.elapsed());
            self.send_jobs(took);
            if let Some(embedder) = &mut self.embedder {
                // While replies are generated, they get the larger part of the time.
                embedder.step(writing.then(|| ended + took / 4));
            }
            let mut continues = worked;
            while let Some(back) = self.format_threads.next(ended, took) {
                self.take_back(back);
                continues = true;
            }
            let now = Instant::now();
            self.models.iter().flatten().for_each(|model| model.publish(now));
            if writing && !continues && self.embedder.as_ref().is_none_or(EmbeddingQueue::is_idle) {
                // All replies are on threads for output formats, or KV pages are short, and callers that use cached ones may
                // submit follow-up calls.
                let back = self.format_threads.within(A_MOMENT);
                back.into_iter().for_each(|back| self.take_back(back));
            }
        }
    }

    /// Runs a step of every model; false if there was nothing to run.
    fn step(&mut self, streams: bool) -> bool {
        self.models.iter_mut().flatten().fold(false, |worked, model| model.step(streams) | worked)
    }

    /// Sends the replies that have an output format to threads, after a step of this duration.
    fn send_jobs(&mut self, step: Duration) {
        for (index, model) in self.models.iter_mut().enumerate() {
            let jobs = model.as_mut().map(ModelRunner::take_jobs).unwrap_or_default();
            jobs.into_iter().for_each(|job| self.format_threads.send(index, job, step));
        }
    }

    fn take_back(&mut self, (model, advanced): (usize, Advanced)) {
        if let Some(model) = &mut self.models[model] {
            model.take_back(advanced);
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
                None => drop(submission.reply.send(Err(unloaded()))),
            },
            Message::Score { model, id, job } => match &mut self.models[model] {
                Some(model) => model.submit_score(id, *job),
                None => drop(job.reply.send(Err(unloaded()))),
            },
            Message::Cancel { model, id } => {
                if let Some(model) = &mut self.models[model] {
                    model.cancel(id);
                }
            }
            Message::CloseWorkflow(workflow) => {
                self.models.iter_mut().flatten().for_each(|model| model.close_workflow(workflow));
            }
            // An unloaded model has no prefixes to save, and no pages for saved ones.
            Message::CopyPages { model, namespace, workflow, from, reply } => {
                let copy = |model: &ModelRunner| model.copy_prefixes(namespace, workflow, from);
                let _ = reply.send(self.models[model].as_ref().map_or(Ok(None), copy));
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
fn unloaded() -> CallError {
    CallError::NoModel { what: "this call: its model was unloaded".into() }
}
