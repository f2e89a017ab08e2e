//! The traits of inference: replies to calls, what belongs to them, vectors of texts.

use std::ops::Range;
use std::path::Path;

use crate::future::BoxFuture;
use crate::{Agent, Call, CallError, ModelDetails, ModelState, Reply, Scorer, TenantId, WorkflowId};

/// Answers calls. Many may be outstanding at once; dropping the future cancels the call.
///
/// Its other abilities are traits of their own, so that a function takes what it needs, and a wrapper or a test implements
/// what it changes and hands on the rest.
pub trait Caller: Send + Sync {
    /// Answers one call.
    ///
    /// # Errors
    /// Any [`CallError`]; a prompt that does not fit is refused before anything is computed.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>>;

    /// Counts the tokens of its models.
    fn tokens(&self) -> &dyn Tokens;

    /// Names and describes its models.
    fn models(&self) -> &dyn ModelInfo;

    /// Says that a workflow has made its last call: what was kept for it may go. Forgetting to say so costs room for a
    /// while and nothing else.
    fn close_workflow(&self, _workflow: WorkflowId) {}

    /// Saves and restores prefixes; nothing where they cannot be saved.
    fn prefixes(&self) -> Option<&dyn Prefixes> {
        None
    }

    /// What scores texts with the same models; nothing where log-probabilities of given texts cannot be had.
    fn scorer(&self) -> Option<&dyn Scorer> {
        None
    }

    /// How it is doing; nothing where that is not known.
    fn status(&self) -> Option<&dyn Status> {
        None
    }
}

/// Counts tokens as the models of a [`Caller`] do.
pub trait Tokens: Send + Sync {
    /// Tokens that prompt and answer of this agent's model may have together.
    fn context_tokens(&self, agent: Agent) -> usize;

    /// Byte ranges of the tokens of `text`, in order, under this agent's tokenizer.
    /// Ranges lie on character boundaries; several tokens of one character share its range.
    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>>;

    /// Number of tokens of a whole prompt as the model will read it, chat template included.
    fn prompt_tokens(&self, call: &Call) -> usize;

    /// Number of tokens of `text` alone.
    fn count_tokens(&self, agent: Agent, text: &str) -> usize {
        self.token_spans(agent, text).len()
    }
}

/// Names and describes the models of a [`Caller`].
pub trait ModelInfo: Send + Sync {
    /// Name of the model that serves this agent; `BASE:ADAPTER` if it does so with an adapter.
    fn model(&self, agent: Agent) -> &str;

    /// Name of that model without an adapter.
    fn base_model(&self, agent: Agent) -> &str {
        self.model(agent)
    }

    /// Names of the adapters that a call of this agent may choose.
    fn adapters(&self, _agent: Agent) -> Vec<String> {
        Vec::new()
    }

    /// Number of weights of the model that serves this agent, where it is known.
    fn parameters(&self, _agent: Agent) -> Option<u64> {
        None
    }

    /// What the model that serves this agent was loaded from, where it is known.
    fn details(&self, _agent: Agent) -> Option<ModelDetails> {
        None
    }

    /// A digest of the files of that model, as 64 hexadecimal digits, where it is known. They are read when it is first asked
    /// for, which takes seconds.
    fn digest(&self, _agent: Agent) -> Option<String> {
        None
    }
}

/// Saves computed prefixes of prompts in folders.
pub trait Prefixes: Send + Sync {
    /// Keeps in a folder what the prompts of a tenant's workflow under way have begun with, if any of it had to be computed,
    /// in place of what was kept there before.
    fn keep_prefixes<'a>(&'a self, tenant: TenantId, workflow: WorkflowId, folder: &'a Path) -> BoxFuture<'a, Kept>;

    /// Brings back what was kept in a folder for the same tenant, as far as there is room. What is refused is computed when
    /// it is asked about.
    fn bring_prefixes<'a>(&'a self, tenant: TenantId, folder: &'a Path) -> BoxFuture<'a, Kept>;
}

/// How a [`Caller`] is doing.
pub trait Status: Send + Sync {
    /// Its models at this moment, the first serving most agents.
    fn state(&self) -> Vec<ModelState>;

    /// False once nothing will be answered any more.
    fn is_alive(&self) -> bool;
}

/// Prefixes that were kept, or brought back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// Tokens of all of them, common ones once.
    pub tokens: usize,
    /// Why files could not be written or used, a sentence each.
    pub refused: Vec<String>,
}

/// The outputs of an embedder for a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The vector of the text, L2-normalised.
    pub dense: Vec<f32>,
    /// Weights of token ids, by id; only from models with a sparse head.
    pub sparse: Option<Vec<(u32, f32)>>,
    /// A normalised vector for each token; only from models with a ColBERT head.
    pub colbert: Option<Vec<Vec<f32>>>,
}

/// Which outputs of an embedder are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heads {
    /// The dense vector alone.
    Dense,
    /// Everything that the model has heads for.
    All,
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// The embedding of each text, in order, for a tenant.
    ///
    /// # Errors
    /// [`CallError::TooLongToEmbed`] for a text longer than the window: it is never cut silently.
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>>;

    /// As [`Embedder::encode_for`], for [`TenantId::LOCAL`].
    ///
    /// # Errors
    /// As [`Embedder::encode_for`].
    fn encode(&self, texts: Vec<String>, heads: Heads) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        self.encode_for(TenantId::LOCAL, texts, heads)
    }

    /// One vector for each text, in order.
    ///
    /// # Errors
    /// As [`Embedder::encode_for`].
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, CallError>> {
        self.embed_for(TenantId::LOCAL, texts)
    }

    /// As [`Embedder::embed`], for a tenant.
    ///
    /// # Errors
    /// As [`Embedder::encode_for`].
    fn embed_for(&self, tenant: TenantId, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, CallError>> {
        Box::pin(async move {
            let embeddings = self.encode_for(tenant, texts, Heads::Dense).await?;
            Ok(embeddings.into_iter().map(|embedding| embedding.dense).collect())
        })
    }

    /// Length of a vector.
    fn dims(&self) -> usize;

    /// Tokens of one text that the model reads, special tokens not counted.
    fn window_tokens(&self) -> usize;

    /// Special tokens that the model reads with each text.
    fn special_tokens(&self) -> usize;

    /// Byte ranges of the tokens of `text`, special tokens not counted.
    fn token_spans(&self, text: &str) -> Vec<Range<usize>>;

    /// Name of the model; vectors of different names are never compared.
    fn name(&self) -> &str;

    /// As [`ModelInfo::details`].
    fn details(&self) -> Option<ModelDetails> {
        None
    }

    /// As [`ModelInfo::digest`].
    fn digest(&self) -> Option<String> {
        None
    }
}
