//! The embedding model of this machine, which a command without retrieval does not load.

use std::ops::Range;

use calls::{BoxFuture, CallError, Embedder, Embedding, Heads, ModelDetails, TenantId};
use engine::Engine;

/// The engine with the embedding model. Without an engine, or without that model in it, texts are refused.
pub struct LocalEmbedder(pub(crate) Option<Engine>);

impl Embedder for LocalEmbedder {
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        match &self.0 {
            Some(engine) => engine.encode_for(tenant, texts, heads),
            None => Box::pin(async { Err(CallError::NoModel { what: "embedding".into() }) }),
        }
    }

    fn dims(&self) -> usize {
        self.0.as_ref().map_or(0, Embedder::dims)
    }

    fn window_tokens(&self) -> usize {
        self.0.as_ref().map_or(0, Embedder::window_tokens)
    }

    fn special_tokens(&self) -> usize {
        self.0.as_ref().map_or(0, Embedder::special_tokens)
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        self.0.as_ref().map_or_else(Vec::new, |engine| Embedder::token_spans(engine, text))
    }

    fn name(&self) -> &str {
        self.0.as_ref().map_or("none", Embedder::name)
    }

    fn details(&self) -> Option<ModelDetails> {
        self.0.as_ref().and_then(Embedder::details)
    }

    fn digest(&self) -> Option<String> {
        self.0.as_ref().and_then(Embedder::digest)
    }
}
