//! The handle to an engine: prepares calls and awaits their replies.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Embedder, Embedding, Heads, Kept, ModelDetails, ModelState, Priority,
    Reply, Scorer, TenantId, WorkflowId,
};
use models::{
    ChatOptions, ChatTemplate, DecoderNetwork, EmbeddingModel, EncoderTokenizer, KvCache, KvPrecision, LanguageModel,
    ModelError, PAGE_TOKENS, Tokenizer,
};
use scheduler::{Scheduler, SequenceId};
use tokio::sync::{mpsc, oneshot};

use crate::adapters::{AdapterFront, Adapters, NamedAdapter};
use crate::adjustments::Adjustments;
use crate::admission::Admission;
use crate::contents;
use crate::details::Origin;
use crate::embedding::{EmbeddingJob, EmbeddingQueue, EncoderParts};
use crate::generation::{Submission, Vocabulary};
use crate::grammar::{Grammar, Grammars};
use crate::language::{Language, StepLimits};
use crate::message::Message;
use crate::namespace::namespace;
use crate::prefixes::Checked;
use crate::repetition::RepetitionGuard;
use crate::sample::Sampler;
use crate::segments::Segments;
use crate::snapshot::Identity;
use crate::state::PublishedState;
use crate::stop::Stops;
use crate::thought::{Markers, OPEN, Thought};
use crate::tools::{self, ToolSyntax, Written};
use crate::worker::Worker;

/// The models of an engine.
pub struct Models {
    /// Language models with their names; the first serves every agent that `agents` does not list.
    pub language: Vec<(String, LanguageModel)>,
    /// The index of the model that serves an agent.
    pub agents: HashMap<Agent, usize>,
    pub embedder: Option<(String, EmbeddingModel)>,
}

/// Capacities and limits of an engine.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// KV cache size in tokens for each language model; rounded up to whole pages.
    pub kv_tokens: usize,
    pub kv_precision: KvPrecision,
    /// Maximum rows of one step.
    pub step_tokens: usize,
    /// Maximum draft tokens per step over all running calls; 0 disables drafts. Replies do not depend on it.
    pub max_draft_tokens: usize,
    /// If a grammar allows at most this many tokens, only their rows of the output matrix are computed; 0 always
    /// computes all. Replies do not depend on it.
    pub masked_outputs: usize,
    /// Maximum running calls.
    pub max_running: usize,
    /// Maximum waiting calls beyond those.
    pub max_waiting: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            kv_tokens: 16_384,
            kv_precision: KvPrecision::F16,
            step_tokens: 512,
            max_draft_tokens: 8,
            masked_outputs: 512,
            max_running: 32,
            max_waiting: 1024,
        }
    }
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no language model and no embedder.
    #[error("an engine needs a model")]
    NoModel,
    /// An agent is assigned to a model that does not exist.
    #[error("the {agent} is to be served by model {index} of {models}")]
    Agent { agent: Agent, index: usize, models: usize },
    /// An adapter names a model that does not exist, or an agent names an adapter that does not exist or belongs to another model.
    #[error("the adapter {name} cannot be used: {reason}")]
    Adapter { name: String, reason: String },
    /// The KV cache cannot be allocated, an adapter does not fit, or the device fails.
    #[error("model {name} cannot be set up")]
    Model { name: String, source: ModelError },
    /// The tokenizer does not support constrained output.
    #[error("the tokenizer of {name} cannot be used for constrained output: {reason}")]
    Grammar { name: String, reason: String },
    /// The thread cannot be started.
    #[error("no thread for the engine")]
    Thread(#[source] std::io::Error),
}

/// A priority as the scheduler's number.
pub(crate) fn level(priority: Priority) -> u8 {
    match priority {
        Priority::Interactive => 0,
        Priority::Workflow => 1,
        Priority::Bulk => 2,
    }
}

/// Maximum white-space characters in a row in constrained output while loops are detected.
const MAX_WHITESPACE: usize = 16;

/// A handle to a running engine; clones are cheap, and dropping the last one stops the engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    fronts: Vec<Front>,
    agents: HashMap<Agent, usize>,
    /// Which of its model's adapters an agent is served with.
    agent_adapters: HashMap<Agent, usize>,
    embedder: Option<EmbedderFront>,
    mailbox: mpsc::UnboundedSender<Message>,
    ids: AtomicU64,
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

/// The part of a language model that callers' threads use.
pub(crate) struct Front {
    pub name: String,
    pub adapters: Vec<AdapterFront>,
    pub tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    pub tool_syntax: ToolSyntax,
    pub grammars: Grammars,
    markers: Arc<Markers>,
    /// End-of-reply tokens.
    pub eos: Vec<u32>,
    pub context_tokens: usize,
    pub parameters: u64,
    pub page_bytes: usize,
    pub identity: Identity,
    origin: Origin,
    pub checked: Checked,
    watch: Arc<PublishedState>,
    pub admission: Admission,
}

impl Front {
    /// # Errors
    /// [`CallError::TooLong`] if prompt and reply exceed the context.
    pub fn fits(&self, step: &'static str, prompt_tokens: usize, max_output_tokens: usize) -> Result<(), CallError> {
        let context_tokens = self.context_tokens;
        if prompt_tokens.saturating_add(max_output_tokens) > context_tokens {
            return Err(CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens });
        }
        Ok(())
    }
}

struct EmbedderFront {
    admission: Admission,
    name: String,
    origin: Origin,
    tokenizer: EncoderTokenizer,
    dims: usize,
    window: usize,
}

impl Engine {
    /// Starts the engine's thread.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn start(models: Models, config: Config) -> Result<Engine, StartError> {
        Engine::start_with(models, Adapters::default(), config)
    }

    /// Starts the engine's thread, with adapters of its language models.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn start_with(models: Models, adapters: Adapters, config: Config) -> Result<Engine, StartError> {
        if models.language.is_empty() && models.embedder.is_none() {
            return Err(StartError::NoModel);
        }
        for (agent, index) in &models.agents {
            if *index >= models.language.len() {
                return Err(StartError::Agent { agent: *agent, index: *index, models: models.language.len() });
            }
        }
        let agent_adapters = adapters_of_agents(&models, &adapters)?;
        let mut fronts = Vec::new();
        let mut workers = Vec::new();
        for (index, (name, model)) in models.language.into_iter().enumerate() {
            let own = adapters.loaded.iter().filter(|adapter| adapter.model == index);
            let (front, worker) = split(name, model, own, config)?;
            fronts.push(front);
            workers.push(worker);
        }
        let (embedder, queue) = models.embedder.map(|model| split_embedder(model, config)).unzip();
        let (sender, mailbox) = mpsc::unbounded_channel();
        let worker = Worker { models: workers, embedder: queue, mailbox };
        let thread = thread::Builder::new().name("engine".into()).spawn(|| worker.run()).map_err(StartError::Thread)?;
        let shared = Shared {
            fronts,
            agents: models.agents,
            agent_adapters,
            embedder,
            mailbox: sender,
            ids: AtomicU64::new(0),
            thread: Some(thread),
        };
        Ok(Engine { shared: Arc::new(shared) })
    }

    /// The prompt of a call as rendered and tokenised for the model.
    pub(crate) fn prompt(front: &Front, call: &Call) -> Result<Rendered, CallError> {
        Self::prompt_after(front, call, &Written::default())
    }

    /// The same with the part of the reply that is written already.
    fn prompt_after(front: &Front, call: &Call, written: &Written) -> Result<Rendered, CallError> {
        let failed = |error: ModelError| CallError::Failed { step: call.step, reason: error.to_string() };
        if let Some(text) = call.prompt.as_bare() {
            let whole = 0..text.len();
            let thinks = call.limits.thinking_tokens > 0;
            let text = if thinks { with_open_thought(text.to_owned()) } else { text.to_owned() };
            let tokens = front.tokenizer.encode_prompt(&text, std::slice::from_ref(&whole)).map_err(failed)?;
            let segments = Segments::find(&call.prompt, &[Some(whole)], &tokens, &front.tokenizer);
            return Ok(Rendered { text, tokens, segments });
        }
        let prompt = front.tool_syntax.prompt(&call.prompt);
        let turns = prompt.messages();
        let refused = |error: ModelError| {
            let ModelError::Template { reason } = error else { return failed(error) };
            CallError::Template { step: call.step, model: front.name.clone(), reason }
        };
        let thinks = call.limits.thinking_tokens > 0 || written.thinks;
        let definitions = tools::definitions(&prompt);
        let options = ChatOptions {
            tools: definitions.as_ref(),
            thinks: Some(thinks),
            opens_turn: true,
            variables: Some(prompt.variables()),
        };
        let messages: Vec<_> = turns.iter().map(calls::Message::for_template).collect();
        let text = front.template.render_chat(&messages, options).map_err(refused)?;
        let contents = contents::find(&front.template, &text, &turns, options);
        let mut plain: Vec<Range<usize>> = contents.iter().flatten().cloned().collect();
        plain.extend(tools::quoted_specials(&prompt, &text, &front.tokenizer));
        let text = if thinks { with_open_thought(text) } else { text };
        plain.extend(written.plain_after(text.len()));
        plain.sort_by_key(|range| range.start);
        let text = text + &written.text;
        let tokens = front.tokenizer.encode_prompt(&text, &plain).map_err(failed)?;
        let segments = Segments::find(&prompt, &contents, &tokens, &front.tokenizer);
        Ok(Rendered { text, tokens, segments })
    }

    /// The prompt tokens of a call.
    ///
    /// # Errors
    /// [`CallError::NoModel`], or [`CallError::Template`] if the chat template refuses the prompt.
    pub fn prompt_ids(&self, call: &Call) -> Result<Vec<u32>, CallError> {
        let (_, front) = self.front(call.agent)?;
        Ok(Self::prompt(front, call)?.tokens)
    }

    /// Sends a message to the engine's thread; `None` if the engine has stopped.
    pub(crate) fn post(&self, message: Message) -> Option<()> {
        self.shared.mailbox.send(message).ok()
    }

    /// The sender of messages to the engine's thread.
    pub(crate) fn mailbox(&self) -> &mpsc::UnboundedSender<Message> {
        &self.shared.mailbox
    }

    /// A unique id for a sequence or pin.
    pub(crate) fn next_id(&self) -> u64 {
        self.shared.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn submission(
        front: &Front,
        call: Call,
        written: &Written,
        adapter: Option<usize>,
        reply: oneshot::Sender<Result<Reply, CallError>>,
    ) -> Result<Submission, CallError> {
        let submitted = Instant::now();
        let Rendered { text: rendered, tokens: prompt, segments } = Self::prompt_after(front, &call, written)?;
        let (step, limits) = (call.step, call.limits);
        front.fits(step, prompt.len(), limits.reply_tokens())?;
        let max_output_tokens = limits.max_output_tokens;
        let refused = |reason: String| CallError::OutputFormat { step, reason };
        let (budget, least) = (limits.thinking_tokens, front.markers.least_tokens());
        if (1..least).contains(&budget) {
            return Err(refused(format!("a thought needs {least} tokens at least, but {budget} are allowed")));
        }
        let thought = (budget > 0).then(|| Thought::new(Arc::clone(&front.markers), budget, limits.stop_loops));
        let grammar = front.grammars.grammar(call.tenant, &call.output_format).map_err(refused)?;
        if let Some(shortest) = grammar.as_ref().map(Grammar::shortest).filter(|n| *n > max_output_tokens) {
            return Err(refused(format!(
                "its shortest answer has {shortest} tokens, but {max_output_tokens} are allowed"
            )));
        }
        let grammar =
            grammar.map(|grammar| grammar.with_max_whitespace(if limits.stop_loops { MAX_WHITESPACE } else { 0 }));
        let priority = level(call.priority);
        let repetition = RepetitionGuard::new(limits.stop_loops, &call.output_format);
        let invalid = |reason: String| CallError::Sampling { step, reason };
        let sampler = Sampler::new(&call.sampling, front.tokenizer.len()).map_err(invalid)?;
        let adjustments = Adjustments::new(&call.sampling, &prompt);
        let (on_text, workflow) = (call.on_text, call.workflow);
        // Constrained output is never truncated.
        let stops = Stops::new(if grammar.is_none() { call.stop } else { Vec::new() });
        Ok(Submission {
            step,
            prompt,
            segments,
            workflow,
            limits,
            priority,
            grammar,
            sampler,
            adjustments,
            on_text,
            stops,
            repetition,
            thought,
            logprobs: call.logprobs,
            rendered,
            submitted,
            adapter,
            reply,
        })
    }

    async fn answer(&self, mut call: Call) -> Result<Reply, CallError> {
        let (model, front) = self.front(call.agent)?;
        let _place = front.admission.acquire()?;
        match call.tools.take() {
            Some(tools) => self.call_tools(model, front, call, &tools).await,
            None => self.submit(model, front, call, &Written::default()).await,
        }
    }

    pub(crate) async fn submit(
        &self,
        model: usize,
        front: &Front,
        call: Call,
        written: &Written,
    ) -> Result<Reply, CallError> {
        let (sender, receiver) = oneshot::channel();
        let adapter = front.adapter(&call.adapter, self.adapter_of_agent(call.agent))?;
        let namespace = namespace(call.tenant, front.digest_of(adapter));
        let submission = Box::new(Self::submission(front, call, written, adapter, sender)?);
        let id = SequenceId(self.next_id());
        let mailbox = &self.shared.mailbox;
        mailbox.send(Message::Submit { model, id, namespace, submission }).map_err(|_| CallError::Closed)?;
        // Dropping the future cancels the call.
        let mut cancel = CancelOnDrop { mailbox, message: Some(Message::Cancel { model, id }) };
        let reply = receiver.await.map_err(|_| CallError::Closed);
        cancel.message = None;
        reply?
    }

    async fn embeddings(&self, texts: Vec<String>, heads: Heads) -> Result<Vec<Embedding>, CallError> {
        let front = self.embedder().ok_or_else(|| CallError::NoModel { what: "embedding".into() })?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let _place = front.admission.acquire()?;
        let encode = |text: &String| {
            let failed = |error: ModelError| CallError::Failed { step: "embed", reason: error.to_string() };
            let tokens = front.tokenizer.encode(text).map_err(failed)?;
            if tokens.len() > front.window {
                let (embedder, window_tokens) = (front.name.clone(), self.window_tokens());
                let tokens = tokens.len() - front.tokenizer.special_tokens();
                return Err(CallError::TooLongToEmbed { embedder, tokens, window_tokens });
            }
            Ok(tokens)
        };
        let sequences = texts.iter().map(encode).collect::<Result<_, _>>()?;
        let (reply, receiver) = oneshot::channel();
        let job = EmbeddingJob { sequences, heads, reply };
        self.shared.mailbox.send(Message::Embed(job)).map_err(|_| CallError::Closed)?;
        receiver.await.map_err(|_| CallError::Closed)?
    }

    pub(crate) fn front(&self, agent: Agent) -> Result<(usize, &Front), CallError> {
        let index = self.shared.agents.get(&agent).copied().unwrap_or(0);
        let front = self.shared.fronts.get(index).ok_or_else(|| CallError::NoModel { what: format!("the {agent}") })?;
        Ok((index, front))
    }

    /// The index of the adapter that an agent is served with, among those of its model.
    pub(crate) fn adapter_of_agent(&self, agent: Agent) -> Option<usize> {
        self.shared.agent_adapters.get(&agent).copied()
    }

    pub(crate) fn fronts(&self) -> &[Front] {
        &self.shared.fronts
    }

    fn embedder(&self) -> Option<&EmbedderFront> {
        self.shared.embedder.as_ref()
    }
}

impl Caller for Engine {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(self.answer(call))
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        self.post(Message::CloseWorkflow(workflow));
    }

    fn keep_prefixes<'a>(&'a self, tenant: TenantId, workflow: WorkflowId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(self.keep(tenant, workflow, folder))
    }

    fn bring_prefixes<'a>(&'a self, tenant: TenantId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(self.bring(tenant, folder))
    }

    fn is_alive(&self) -> bool {
        !self.shared.mailbox.is_closed()
    }

    fn context_tokens(&self, agent: Agent) -> usize {
        self.front(agent).map_or(0, |(_, front)| front.context_tokens)
    }

    fn parameters(&self, agent: Agent) -> Option<u64> {
        self.front(agent).ok().map(|(_, front)| front.parameters)
    }

    fn details(&self, agent: Agent) -> Option<ModelDetails> {
        self.front(agent).ok().map(|(_, front)| front.origin.details())
    }

    fn digest(&self, agent: Agent) -> Option<String> {
        self.front(agent).ok().and_then(|(_, front)| front.origin.digest())
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        self.front(agent).map_or_else(|_| Vec::new(), |(_, front)| front.tokenizer.spans(text).unwrap_or_default())
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        self.prompt_ids(call).map_or(usize::MAX, |tokens| tokens.len())
    }

    fn model(&self, agent: Agent) -> &str {
        let Ok((_, front)) = self.front(agent) else { return "none" };
        self.adapter_of_agent(agent).map_or(&front.name, |adapter| &front.adapters[adapter].served_name)
    }

    fn base_model(&self, agent: Agent) -> &str {
        self.front(agent).map_or("none", |(_, front)| &front.name)
    }

    fn adapters(&self, agent: Agent) -> Vec<String> {
        let names = |(_, front): (usize, &Front)| front.adapters.iter().map(|adapter| adapter.name.clone()).collect();
        self.front(agent).map(names).unwrap_or_default()
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    fn state(&self) -> Vec<ModelState> {
        let now = Instant::now();
        self.shared.fronts.iter().map(|front| front.watch.get(now)).collect()
    }
}

impl Embedder for Engine {
    fn encode(&self, texts: Vec<String>, heads: Heads) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        Box::pin(self.embeddings(texts, heads))
    }

    fn dims(&self) -> usize {
        self.embedder().map_or(0, |front| front.dims)
    }

    fn window_tokens(&self) -> usize {
        self.embedder().map_or(0, |front| front.window - front.tokenizer.special_tokens())
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        self.embedder().map_or_else(Vec::new, |front| front.tokenizer.spans(text).unwrap_or_default())
    }

    fn name(&self) -> &str {
        self.embedder().map_or("none", |front| &front.name)
    }

    fn details(&self) -> Option<ModelDetails> {
        self.embedder().map(|front| front.origin.details())
    }

    fn digest(&self) -> Option<String> {
        self.embedder().and_then(|front| front.origin.digest())
    }
}

/// A rendered and tokenised prompt.
pub(crate) struct Rendered {
    pub text: String,
    pub tokens: Vec<u32>,
    pub segments: Segments,
}

/// The rendered prompt of a model that is to think, inside its thought. Some templates open the thought themselves.
fn with_open_thought(text: String) -> String {
    if text.trim_end().ends_with(OPEN.trim_end()) { text } else { text + OPEN }
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

/// For each agent with an adapter its index among those of the agent's model.
fn adapters_of_agents(models: &Models, adapters: &Adapters) -> Result<HashMap<Agent, usize>, StartError> {
    let unusable = |adapter: &NamedAdapter, reason: String| StartError::Adapter { name: adapter.name.clone(), reason };
    for (index, adapter) in adapters.loaded.iter().enumerate() {
        let same = |other: &&NamedAdapter| (other.model, &other.name) == (adapter.model, &adapter.name);
        if adapter.model >= models.language.len() {
            return Err(unusable(adapter, format!("there is no model {}", adapter.model)));
        }
        if adapters.loaded[..index].iter().any(|other| same(&other)) {
            return Err(unusable(adapter, "its model has another of this name".into()));
        }
    }
    let of_agent = |(agent, index): (&Agent, &usize)| {
        let (model, unknown) = (models.agents.get(agent).copied().unwrap_or(0), index.to_string());
        let missing = || StartError::Adapter { name: unknown, reason: format!("the {agent} names it") };
        let adapter = adapters.loaded.get(*index).ok_or_else(missing)?;
        if adapter.model != model {
            return Err(unusable(adapter, format!("the {agent} has another model")));
        }
        let before = adapters.loaded[..*index].iter().filter(|other| other.model == model);
        Ok((*agent, before.count()))
    };
    adapters.agents.iter().map(of_agent).collect()
}

/// Loads an adapter of the model `base`.
fn load_adapter(
    base: &str,
    network: &mut dyn DecoderNetwork,
    NamedAdapter { name, adapter, .. }: &NamedAdapter,
) -> Result<AdapterFront, StartError> {
    let served_name = format!("{base}:{name}");
    network.adapt(adapter).map_err(|source| StartError::Model { name: served_name.clone(), source })?;
    Ok(AdapterFront { name: name.clone(), served_name, digest: adapter.digest() })
}

fn split<'a>(
    name: String,
    model: LanguageModel,
    adapters: impl Iterator<Item = &'a NamedAdapter>,
    config: Config,
) -> Result<(Front, Language), StartError> {
    let page_bytes = KvCache::page_bytes(model.spec(), config.kv_precision);
    let (spec, on_gpu) = (model.spec().clone(), !model.network.device().is_cpu());
    let LanguageModel { mut network, tokenizer, template, eos, source } = model;
    let tokenizer = Arc::new(tokenizer);
    let pages = config.kv_tokens.div_ceil(PAGE_TOKENS);
    let parameters = network.spec().parameters();
    let context_tokens = network.spec().context.min(pages * PAGE_TOKENS);
    let cache = KvCache::new(network.spec(), pages, config.kv_precision, network.device())
        .map_err(|source| StartError::Model { name: name.clone(), source })?;
    let unfit = |reason| StartError::Grammar { name: name.clone(), reason };
    let end = *eos.first().ok_or_else(|| unfit("it has no end token".into()))?;
    if let Some(token) = eos.iter().find(|token| **token as usize >= network.spec().vocab) {
        return Err(unfit(format!("its end token {token} is beyond its vocabulary of {}", network.spec().vocab)));
    }
    let grammars = Grammars::new(Arc::clone(&tokenizer), network.spec().vocab, end);
    let markers = Markers::new(&tokenizer).map_err(|source| StartError::Model { name: name.clone(), source })?;
    let markers = Arc::new(markers);
    let vocabulary = Vocabulary::new(Arc::clone(&tokenizer), network.spec().vocab, eos.clone(), &markers);
    let scheduler = Scheduler::new(scheduler::Config {
        pages,
        step_tokens: config.step_tokens,
        max_running: config.max_running,
        // `Admission` bounds them; before a step all may be waiting.
        max_waiting: config.max_running.saturating_add(config.max_waiting),
    });
    let limits = StepLimits { draft_tokens: config.max_draft_tokens, masked_outputs: config.masked_outputs };
    let watch = Arc::new(PublishedState::new(&name));
    let adapters =
        adapters.map(|adapter| load_adapter(&name, &mut *network, adapter)).collect::<Result<Vec<_>, _>>()?;
    let served = adapters.iter().map(|adapter| adapter.served_name.clone()).collect();
    let arithmetic = network.arithmetic();
    let worker = Language::new(name.clone(), network, served, cache, scheduler, vocabulary, limits, Arc::clone(&watch));
    worker.publish(Instant::now());
    let origin = Origin::new(source.clone(), spec.architecture.clone(), parameters, markers.close.is_some(), on_gpu);
    let tool_syntax = ToolSyntax::of(&template, &tokenizer);
    let identity = Identity { source, spec, kv_precision: config.kv_precision, arithmetic, known: OnceLock::new() };
    let admission = Admission::new(config);
    let checked = Checked::default();
    let front = Front {
        name,
        adapters,
        tokenizer,
        template,
        tool_syntax,
        grammars,
        markers,
        eos,
        context_tokens,
        parameters,
        page_bytes,
        identity,
        origin,
        checked,
        watch,
        admission,
    };
    Ok((front, worker))
}

fn split_embedder((name, model): (String, EmbeddingModel), config: Config) -> (EmbedderFront, EmbeddingQueue) {
    let EmbeddingModel { network, tokenizer, pooling, heads, window, source } = model;
    let (dims, spec) = (network.spec().hidden, network.spec());
    let origin = Origin::new(source, spec.architecture.clone(), spec.parameters(), false, network.on_gpu());
    let queue = EmbeddingQueue::new(EncoderParts { network, pooling, heads, specials: tokenizer.specials().to_vec() });
    (EmbedderFront { admission: Admission::new(config), name, origin, tokenizer, dims, window }, queue)
}
