//! What an engine is started with: models, capacities and limits.

use std::collections::HashMap;

use calls::Agent;
use models::{EmbeddingModel, KvPrecision, LanguageModel, ModelError};

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
    /// Maximum draft tokens per step over all running calls, beside known tokens whose log-probabilities are returned; 0
    /// disables both. Replies do not depend on it.
    pub max_draft_tokens: usize,
    /// If a grammar allows at most this many tokens, only their rows of the output matrix are computed; 0 always
    /// computes all. Replies do not depend on it.
    pub masked_outputs: usize,
    /// Maximum tokens of one pass of the embedding model; a quarter of them while replies are streamed, since a pass yields
    /// between half layers, which must then be short.
    pub embedding_tokens: usize,
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
            embedding_tokens: 1024,
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
    /// The shared prompt cannot be pinned.
    #[error("{name} cannot share the prompt: {reason}")]
    SharedPrompt { name: String, reason: String },
    /// A model that is loaded again is not what it was.
    #[error("the {what} of {name} have changed since the engine was started")]
    Changed { name: String, what: &'static str },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Closed,
    /// A thread cannot be started.
    #[error("no thread for the engine")]
    Thread(#[source] std::io::Error),
}
