//! A caller and an embedder that count calls, tokens and times.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Embedder, Embedding, Heads, Kept, ModelDetails, ModelInfo, OnText,
    Prefixes, Reply, ScoreRequest, Scored, Scorer, Status, TenantId, Tokens, Usage, WorkflowId,
};

use crate::delivery;
use crate::loading::{Residents, Use};
use crate::metrics::{Latency, Metrics, Quantity};

/// A caller or embedder with the metrics of its use.
pub(crate) struct Metered<T: ?Sized> {
    pub inner: Arc<T>,
    pub metrics: Arc<Metrics>,
    /// True if prompts are written to the log.
    pub log_prompts: bool,
    /// Loads the models of the start again that have left, if this is their caller.
    pub preloaded: Option<Arc<Residents>>,
    /// The use of a model while this caller lives; it ends after the handle to the model is gone.
    pub _in_use: Option<Use>,
}

impl Metered<dyn Caller> {
    /// Uses the model of an agent, which is loaded again if it was unloaded.
    async fn enter(&self, agent: Agent, step: &'static str) -> Result<Option<Use>, CallError> {
        let Some(residents) = &self.preloaded else { return Ok(None) };
        let entered = residents.enter(self.inner.models().base_model(agent), None).await;
        entered.map_err(|error| CallError::Failed { step, reason: error.to_string() })
    }
}

impl Caller for Metered<dyn Caller> {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let labels = format!("role=\"{}\"", call.agent);
            let (metrics, tenant) = (&self.metrics, call.tenant);
            if self.log_prompts {
                let turns = call.prompt.messages();
                let turns = turns.iter().flat_map(|turn| ["<", turn.role.as_str(), ">", &turn.content]);
                let prompt: String = turns.chain([call.prompt.reply_start()]).collect();
                tracing::info!(step = call.step, prompt = call.prompt.as_bare().unwrap_or(&prompt), "call");
            }
            call.on_text =
                call.on_text.map(|on_text| with_latencies(on_text, Arc::clone(metrics), tenant, labels.clone()));
            let reply = match self.enter(call.agent, call.step).await {
                Ok(_in_use) => delivery::call(&*self.inner, call).await,
                Err(error) => Err(error),
            };
            count(metrics, tenant, labels, reply.as_ref().ok().map(|reply| reply.usage));
            reply
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.inner.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.inner.models()
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        self.inner.close_workflow(workflow);
    }

    fn prefixes(&self) -> Option<&dyn Prefixes> {
        self.inner.prefixes().is_some().then_some(self as &dyn Prefixes)
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        self.inner.scorer().is_some().then_some(self as &dyn Scorer)
    }

    fn status(&self) -> Option<&dyn Status> {
        self.inner.status()
    }
}

impl Prefixes for Metered<dyn Caller> {
    fn keep_prefixes<'a>(&'a self, tenant: TenantId, workflow: WorkflowId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(async move {
            let Some(prefixes) = self.inner.prefixes() else { return Kept::default() };
            with_log(prefixes.keep_prefixes(tenant, workflow, folder).await, "not saved")
        })
    }

    fn bring_prefixes<'a>(&'a self, tenant: TenantId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(async move {
            let Some(prefixes) = self.inner.prefixes() else { return Kept::default() };
            with_log(prefixes.bring_prefixes(tenant, folder).await, "not used")
        })
    }
}

impl Scorer for Metered<dyn Caller> {
    fn score(&self, request: ScoreRequest) -> BoxFuture<'_, Result<Scored, CallError>> {
        Box::pin(async move {
            let (step, tenant, labels) = (request.step, request.tenant, format!("role=\"{}\"", request.agent));
            let _in_use = self.enter(request.agent, step).await?;
            let missing = || CallError::Failed { step, reason: "this model does not score texts".into() };
            let scored = match self.inner.scorer() {
                Some(scorer) => scorer.score(request).await,
                None => Err(missing()),
            };
            count(&self.metrics, tenant, labels, scored.as_ref().ok().map(|scored| scored.usage));
            scored
        })
    }
}

/// Counts a call with its usage, or a failed call.
fn count(metrics: &Metrics, tenant: TenantId, labels: String, usage: Option<Usage>) {
    let Some(usage) = usage else { return metrics.add(tenant, Quantity::FailedCalls, labels, 1.0) };
    metrics.add(tenant, Quantity::Calls, labels.clone(), 1.0);
    metrics.add(tenant, Quantity::PromptTokens, labels.clone(), usage.prompt_tokens as f64);
    metrics.add(tenant, Quantity::CachedTokens, labels.clone(), usage.cached_tokens as f64);
    metrics.add(tenant, Quantity::OutputTokens, labels.clone(), usage.output_tokens as f64);
    metrics.add(tenant, Quantity::CallSeconds, labels, usage.seconds);
}

/// Logs failures of saving or restoring prefixes, which cost time but change no reply.
fn with_log(kept: Kept, outcome: &'static str) -> Kept {
    kept.refused.iter().for_each(|reason| tracing::warn!(reason, outcome, "prefix snapshots"));
    kept
}

/// Records the times at which pieces of text arrive.
fn with_latencies(on_text: OnText, metrics: Arc<Metrics>, tenant: TenantId, labels: String) -> OnText {
    let last = Mutex::new((Latency::FirstToken, Instant::now()));
    OnText::pieces(move |piece| {
        let now = Instant::now();
        let (latency, since) =
            std::mem::replace(&mut *last.lock().unwrap_or_else(PoisonError::into_inner), (Latency::InterToken, now));
        metrics.record_latency(tenant, latency, &labels, now - since);
        on_text.send_piece(piece);
    })
}

impl Embedder for Metered<dyn Embedder> {
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        self.metrics.add(tenant, Quantity::EmbeddedTexts, String::new(), texts.len() as f64);
        self.inner.encode_for(tenant, texts, heads)
    }

    fn dims(&self) -> usize {
        self.inner.dims()
    }

    fn window_tokens(&self) -> usize {
        self.inner.window_tokens()
    }

    fn special_tokens(&self) -> usize {
        self.inner.special_tokens()
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        self.inner.token_spans(text)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn details(&self) -> Option<ModelDetails> {
        self.inner.details()
    }

    fn digest(&self) -> Option<String> {
        self.inner.digest()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use calls::{Agent, Call, Caller, Prompt, Scripted, Stability};
    use futures_util::FutureExt;

    use super::{Metered, Metrics};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn prompts_are_logged_only_if_logging_of_prompts_is_enabled() {
        let check = |log_prompts: bool| {
            let (lines, metrics) = (Lines::default(), Arc::<Metrics>::default());
            let writer = lines.clone();
            let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
            let inner: Arc<dyn Caller> = Arc::new(Scripted::new(100).answer("chat", "Yes."));
            let caller = Metered { inner, metrics, log_prompts, preloaded: None, _in_use: None };
            let prompt = Prompt::new().system("Be brief.").user(Stability::Volatile, "Is it secret?");
            let reply = tracing::subscriber::with_default(log, || {
                caller.call(Call::new(Agent::Responder, "chat", prompt, 5)).now_or_never()
            });
            assert!(reply.is_some_and(|reply| reply.is_ok()));
            let lines = String::from_utf8(lines.0.lock().expect("no thread panics").clone()).expect("logs are text");
            assert_eq!(lines.contains("<system>Be brief.<user>Is it secret?"), log_prompts, "{lines}");
            assert_eq!(lines.contains("secret"), log_prompts, "{lines}");
        };
        check(true);
        check(false);
    }
}
