//! The handle to an engine: submits calls and awaits their replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use calls::{Agent, Call, CallError, Embedder, Embedding, Heads, OutputFormat, Reply, TenantId};
use models::ModelError;
use scheduler::SequenceId;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::adapters::Adapters;
use crate::config::{Config, Models, StartError};
use crate::embedding::EmbeddingJob;
use crate::frontend::{EmbedderFrontend, ModelFrontend};
use crate::message::Message;
use crate::namespace::namespace;
use crate::render::BYTES_PER_TOKEN;
use crate::start::{Frontends, split_all};
use crate::written::Written;

/// A handle to a running engine; clones are cheap, and dropping the last one stops the engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    frontends: Frontends,
    mailbox: mpsc::UnboundedSender<Message>,
    ids: AtomicU64,
    config: Config,
    /// Held while a snapshot is saved.
    snapshots: Mutex<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.mailbox.send(Message::Shutdown);
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Engine {
    /// Starts the engine's thread.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn start(models: Models, config: Config) -> Result<Engine, StartError> {
        Engine::start_with(models, Adapters::default(), config, None)
    }

    /// Starts the engine's thread, with adapters of its language models, and with the system message whose keys and values calls of
    /// all tenants share: they are computed first and stay in the KV cache.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn start_with(
        models: Models,
        adapters: Adapters,
        config: Config,
        shared_prompt: Option<String>,
    ) -> Result<Engine, StartError> {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let (frontends, worker) = split_all(models, &adapters, config, shared_prompt, mailbox)?;
        let thread = thread::Builder::new().name("engine".into()).spawn(|| worker.run()).map_err(StartError::Thread)?;
        let (ids, snapshots) = (AtomicU64::new(0), Mutex::default());
        let shared = Shared { frontends, mailbox: sender, ids, config, snapshots, thread: Some(thread) };
        Ok(Engine { shared: Arc::new(shared) })
    }

    /// The prompt tokens of a call.
    ///
    /// # Errors
    /// [`CallError::NoModel`], or [`CallError::Template`] if the chat template refuses the prompt.
    pub fn prompt_ids(&self, call: &Call) -> Result<Vec<u32>, CallError> {
        let (_, frontend) = self.frontend(call.agent)?;
        Ok(frontend.prompt(call)?.tokens.clone())
    }

    /// Sends a message to the engine's thread; `None` if the engine has stopped.
    pub(crate) fn post(&self, message: Message) -> Option<()> {
        self.shared.mailbox.send(message).ok()
    }

    /// False once the engine's thread has ended.
    pub(crate) fn is_running(&self) -> bool {
        !self.shared.mailbox.is_closed()
    }

    /// The sender of messages to the engine's thread.
    pub(crate) fn mailbox(&self) -> &mpsc::UnboundedSender<Message> {
        &self.shared.mailbox
    }

    /// Locked while a snapshot is saved.
    pub(crate) fn snapshots(&self) -> &Mutex<()> {
        &self.shared.snapshots
    }

    /// A unique id for a sequence.
    pub(crate) fn next_id(&self) -> u64 {
        self.shared.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn answer(&self, mut call: Call) -> Result<Reply, CallError> {
        let (model, frontend) = self.frontend(call.agent)?;
        let is_text = call.output_format == OutputFormat::Text && call.limits.thinking_tokens == 0;
        if !is_text && !call.prompt.reply_start().is_empty() {
            let reason = "a reply that continues a text is free text without a thought".to_owned();
            return Err(CallError::OutputFormat { step: call.step, reason });
        }
        let _place = frontend.admission.acquire(call.tenant)?;
        match call.tools.take() {
            Some(tools) => self.call_tools(model, frontend, call, &tools).await,
            None => self.submit(model, frontend, call, &Written::default()).await,
        }
    }

    pub(crate) async fn submit(
        &self,
        model: usize,
        frontend: &ModelFrontend,
        call: Call,
        written: &Written,
    ) -> Result<Reply, CallError> {
        let (sender, receiver) = oneshot::channel();
        let adapter = frontend.adapter(&call.adapter, self.adapter_of_agent(call.agent))?;
        let namespace = namespace(call.tenant, frontend.digest_of(adapter));
        let submission = Box::new(frontend.submission(call, written, adapter, sender)?);
        let id = SequenceId(self.next_id());
        let mailbox = &self.shared.mailbox;
        mailbox.send(Message::Submit { model, id, namespace, submission }).map_err(|_| CallError::Closed)?;
        // Dropping the future cancels the call.
        let mut cancel = CancelOnDrop { mailbox, message: Some(Message::Cancel { model, id }) };
        let reply = receiver.await.map_err(|_| CallError::Closed);
        cancel.message = None;
        reply?
    }

    pub(crate) async fn embeddings(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> Result<Vec<Embedding>, CallError> {
        let frontend = self.embedder().ok_or_else(|| CallError::NoModel { what: "embedding".into() })?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let _place = frontend.admission.acquire(tenant)?;
        let encode = |text: &String| {
            let failed = |error: ModelError| CallError::Failed { step: "embed", reason: error.to_string() };
            let too_long = |tokens| {
                let (embedder, window_tokens) = (frontend.name.clone(), self.window_tokens());
                Err(CallError::TooLongToEmbed { embedder, tokens, window_tokens })
            };
            if text.len() > frontend.window.saturating_mul(BYTES_PER_TOKEN) {
                // The tokens themselves would take hundreds of bytes each.
                let tokens = frontend.tokenizer.count(text).map_err(failed)?;
                if tokens / 2 > frontend.window {
                    return too_long(tokens);
                }
            }
            let tokens = frontend.tokenizer.encode(text).map_err(failed)?;
            if tokens.len() > frontend.window {
                return too_long(tokens.len() - frontend.tokenizer.special_tokens());
            }
            Ok(tokens)
        };
        let sequences = texts.iter().map(encode).collect::<Result<_, _>>()?;
        let (reply, receiver) = oneshot::channel();
        let job = EmbeddingJob { tenant, sequences, heads, reply };
        self.shared.mailbox.send(Message::Embed(job)).map_err(|_| CallError::Closed)?;
        receiver.await.map_err(|_| CallError::Closed)?
    }

    pub(crate) fn frontend(&self, agent: Agent) -> Result<(usize, &ModelFrontend), CallError> {
        let frontends = &self.shared.frontends;
        let index = frontends.agents.get(&agent).copied().unwrap_or(0);
        let frontend =
            frontends.models.get(index).ok_or_else(|| CallError::NoModel { what: format!("the {agent}") })?;
        Ok((index, frontend))
    }

    /// The index of the adapter that an agent is served with, among those of its model.
    pub(crate) fn adapter_of_agent(&self, agent: Agent) -> Option<usize> {
        self.shared.frontends.agent_adapters.get(&agent).copied()
    }

    pub(crate) fn frontends(&self) -> &[ModelFrontend] {
        &self.shared.frontends.models
    }

    /// The capacities and limits that it was started with.
    pub fn config(&self) -> Config {
        self.shared.config
    }

    /// The system message that language models have pinned.
    pub(crate) fn shared_prompt(&self) -> Option<&str> {
        self.shared.frontends.shared_prompt.as_deref()
    }

    pub(crate) fn embedder(&self) -> Option<&EmbedderFrontend> {
        self.shared.frontends.embedder.as_ref()
    }
}

/// Cancels a call when dropped before its reply has arrived.
pub(crate) struct CancelOnDrop<'a> {
    pub mailbox: &'a mpsc::UnboundedSender<Message>,
    pub message: Option<Message>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let _ = self.mailbox.send(message);
        }
    }
}
