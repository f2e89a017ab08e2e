//! From loaded models to the two halves of an engine: what callers' threads use, and what the engine's thread owns.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use calls::{Agent, ModelDetails};
use models::{DecoderNetwork, EmbeddingModel, KvCache, LanguageModel, ModelError, PAGE_TOKENS};
use scheduler::Scheduler;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::adapters::{AdapterFrontend, Adapters, NamedAdapter};
use crate::admission::Admission;
use crate::config::{Config, Models, StartError};
use crate::details::Origin;
use crate::embedding::{EmbeddingQueue, EncoderParts};
use crate::format_threads::FormatThreads;
use crate::frontend::{EmbedderFrontend, ModelFrontend};
use crate::grammars::Grammars;
use crate::message::Message;
use crate::model_runner::ModelRunner;
use crate::rendered::RenderedPrompts;
use crate::shared_prompt;
use crate::snapshot::{CheckedSnapshots, Identity};
use crate::state::PublishedState;
use crate::step_limits::StepLimits;
use crate::thought::Markers;
use crate::tool_syntax::ToolSyntax;
use crate::vocabulary::Vocabulary;
use crate::worker::Worker;

/// What callers' threads use of all models.
pub(crate) struct Frontends {
    pub models: Vec<ModelFrontend>,
    /// The index of the model that serves an agent; 0 for the others.
    pub agents: HashMap<Agent, usize>,
    /// Which of its model's adapters an agent is served with.
    pub agent_adapters: HashMap<Agent, usize>,
    pub embedder: Option<EmbedderFrontend>,
    /// The system message that language models have pinned.
    pub shared_prompt: Option<String>,
}

/// Splits models into frontends and the worker that receives messages from `mailbox`.
///
/// # Errors
/// A [`StartError`].
pub(crate) fn split_all(
    models: Models,
    adapters: &Adapters,
    config: Config,
    shared_prompt: Option<String>,
    mailbox: UnboundedReceiver<Message>,
) -> Result<(Frontends, Worker), StartError> {
    if models.language.is_empty() && models.embedder.is_none() {
        return Err(StartError::NoModel);
    }
    for (agent, index) in &models.agents {
        if *index >= models.language.len() {
            return Err(StartError::Agent { agent: *agent, index: *index, models: models.language.len() });
        }
    }
    let agent_adapters = adapters_of_agents(&models, adapters)?;
    let (mut frontends, mut runners) = (Vec::new(), Vec::new());
    for (index, (name, model)) in models.language.into_iter().enumerate() {
        let own = adapters.loaded.iter().filter(|adapter| adapter.model == index);
        let (frontend, runner) = split(name, model, own, config, shared_prompt.as_deref())?;
        frontends.push(frontend);
        runners.push(Some(runner));
    }
    let (embedder, queue) = models.embedder.map(|model| split_embedder(model, config)).unzip();
    let frontends = Frontends { models: frontends, agents: models.agents, agent_adapters, embedder, shared_prompt };
    let format_threads = FormatThreads::start().map_err(StartError::Thread)?;
    Ok((frontends, Worker { models: runners, embedder: queue, format_threads, mailbox }))
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
) -> Result<AdapterFrontend, StartError> {
    let served_name = format!("{base}:{name}");
    network.adapt(adapter).map_err(|source| StartError::Model { name: served_name.clone(), source })?;
    Ok(AdapterFrontend { name: name.clone(), served_name, digest: adapter.digest() })
}

/// Splits one language model, with the system message that it is to pin.
pub(crate) fn split<'a>(
    name: String,
    model: LanguageModel,
    adapters: impl Iterator<Item = &'a NamedAdapter>,
    config: Config,
    shared_prompt: Option<&str>,
) -> Result<(ModelFrontend, ModelRunner), StartError> {
    let (spec, on_gpu) = (model.spec().clone(), model.network.on_gpu());
    let LanguageModel { mut network, tokenizer, template, eos, source } = model;
    let tokenizer = Arc::new(tokenizer);
    let pages = config.kv_tokens.div_ceil(PAGE_TOKENS);
    let parameters = network.spec().parameters();
    let context_tokens = network.spec().context.min(pages * PAGE_TOKENS);
    let unusable = |source| StartError::Model { name: name.clone(), source };
    let kv = config.kv_precision;
    if !network.takes_kv(kv) {
        let what = format!("a KV cache in {kv} with {}", network.arithmetic());
        return Err(unusable(ModelError::Unsupported { what }));
    }
    let cache = network.kv_cache(pages, kv).map_err(unusable)?;
    let page_bytes = KvCache::page_bytes(network.spec(), kv);
    let unfit = |reason| StartError::Grammar { name: name.clone(), reason };
    if eos.is_empty() {
        return Err(unfit("it has no end token".into()));
    }
    if let Some(token) = eos.iter().find(|token| **token as usize >= network.spec().vocab) {
        return Err(unfit(format!("its end token {token} is beyond its vocabulary of {}", network.spec().vocab)));
    }
    let grammars = Grammars::new(Arc::clone(&tokenizer), network.spec().vocab, eos.clone());
    let markers = Markers::new(&tokenizer).map_err(|source| StartError::Model { name: name.clone(), source })?;
    let markers = Arc::new(markers);
    let vocabulary = Vocabulary::new(Arc::clone(&tokenizer), network.spec().vocab, eos.clone(), &markers);
    let scheduler =
        Scheduler::new(scheduler::Config { pages, step_tokens: config.step_tokens, max_running: config.max_running });
    let limits = StepLimits::new(&config, network.spec().vocab);
    let published = Arc::new(PublishedState::new(&name));
    let adapters =
        adapters.map(|adapter| load_adapter(&name, &mut *network, adapter)).collect::<Result<Vec<_>, _>>()?;
    let served = adapters.iter().map(|adapter| adapter.served_name.clone()).collect();
    let arithmetic = network.arithmetic();
    let mut worker =
        ModelRunner::new(name.clone(), network, served, cache, scheduler, vocabulary, limits, Arc::clone(&published));
    let details = ModelDetails {
        family: spec.architecture.clone(),
        parameters,
        thinks: markers.close.is_some(),
        infills: ModelFrontend::missing_for_infill(&tokenizer).is_none(),
        on_gpu,
        ..ModelDetails::default()
    };
    let origin = Origin::new(source.clone(), details);
    let tool_syntax = ToolSyntax::of(&template, &tokenizer);
    let identity = Identity { source, spec, kv_precision: config.kv_precision, arithmetic, known: OnceLock::new() };
    let admission = Admission::new(config);
    let checked = CheckedSnapshots::default();
    let mut front = ModelFrontend {
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
        rendered: RenderedPrompts::default(),
        published,
        admission,
    };
    if let Some(system) = shared_prompt {
        shared_prompt::pin(&mut front, &mut worker, system, pages * PAGE_TOKENS, config.step_tokens)
            .map_err(|reason| StartError::SharedPrompt { name: front.name.clone(), reason })?;
    }
    worker.publish(Instant::now());
    Ok((front, worker))
}

fn split_embedder((name, model): (String, EmbeddingModel), config: Config) -> (EmbedderFrontend, EmbeddingQueue) {
    let EmbeddingModel { network, tokenizer, pooling, heads, window, source } = model;
    let (dims, spec) = (network.spec().hidden, network.spec());
    let (family, parameters, on_gpu) = (spec.architecture.clone(), spec.parameters(), network.on_gpu());
    let origin = Origin::new(source, ModelDetails { family, parameters, on_gpu, ..ModelDetails::default() });
    let parts = EncoderParts { network, pooling, heads, unweighted: tokenizer.unweighted().to_vec() };
    let queue = EmbeddingQueue::new(parts, config.embedding_tokens);
    (EmbedderFrontend { admission: Admission::new(config), name, origin, tokenizer, dims, window }, queue)
}
