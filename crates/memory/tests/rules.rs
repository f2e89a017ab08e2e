//! A caller and an embedder that call a function for each reply. Both yield first, as an engine would.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{
    BoxFuture, Call, CallError, Caller, Embedder, Embedding, Heads, ModelInfo, Reply, Scripted, ScriptedEmbedder,
    TenantId, Tokens,
};
use tokio::task::yield_now;

/// A caller whose replies are computed; its tokens and context are those of a script.
pub struct Rules<F> {
    context_tokens: usize,
    script: Scripted,
    reply: F,
    now: AtomicUsize,
    most: AtomicUsize,
    rounds: AtomicUsize,
}

impl<F> Rules<F> {
    pub fn new(context_tokens: usize, reply: F) -> Rules<F> {
        let script = Scripted::new(context_tokens);
        Rules {
            context_tokens,
            script,
            reply,
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
        }
    }

    /// Rounds of calls: a call belongs to the round after the last one that had ended when the call began.
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// The most calls that were outstanding at the same time.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl<F: Fn(&Call) -> String + Send + Sync> Caller for Rules<F> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(now, Ordering::Relaxed);
            let round = self.rounds() + 1;
            yield_now().await;
            self.rounds.fetch_max(round, Ordering::Relaxed);
            self.now.fetch_sub(1, Ordering::Relaxed);
            Scripted::new(self.context_tokens).answer(call.step, (self.reply)(&call)).call(call).await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

/// The scripted embedder; a function checks the texts first and may refuse them.
pub struct Embeds<F>(pub F);

impl<F: Fn(&[String]) -> Result<(), CallError> + Send + Sync> Embedder for Embeds<F> {
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        Box::pin(async move {
            yield_now().await;
            (self.0)(&texts)?;
            ScriptedEmbedder.encode_for(tenant, texts, heads).await
        })
    }

    fn dims(&self) -> usize {
        ScriptedEmbedder.dims()
    }

    fn window_tokens(&self) -> usize {
        ScriptedEmbedder.window_tokens()
    }

    fn special_tokens(&self) -> usize {
        ScriptedEmbedder.special_tokens()
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        ScriptedEmbedder.token_spans(text)
    }

    fn name(&self) -> &str {
        ScriptedEmbedder.name()
    }
}
