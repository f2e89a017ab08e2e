//! A [`Remote`]: answers calls with models of an endpoint.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Finish, ModelInfo, OutputFormat, Reply, TenantId, Tokens, Usage,
};
use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

use crate::answer::Answer;
use crate::endpoint::Endpoint;
use crate::request::{Request, rendered};
use crate::{Address, RemoteError, form, repetition, tokens};

/// Configuration of an endpoint.
#[derive(Debug, Clone)]
pub struct Setup {
    pub address: Address,
    /// The model that serves all agents; if none is named, the first that the endpoint lists.
    pub model: Option<String>,
    /// The context length in tokens, prompt and answer together; if none is given, the endpoint's value.
    pub context_tokens: Option<usize>,
    /// An API key, if the endpoint requires one.
    pub key: Option<String>,
    /// How long an overloaded endpoint is retried before a call fails.
    pub patience: Duration,
}

/// Answers calls by sending them to an endpoint. Every agent has the same model.
pub struct Remote {
    shared: Arc<Shared>,
    sockets: Sockets,
}

struct Shared {
    endpoint: Endpoint,
    model: String,
    context_tokens: usize,
}

/// The runtime on which requests run: a caller may wait on a runtime without I/O support.
struct Sockets(Option<Runtime>);

impl Drop for Sockets {
    /// Does not block, since the last caller may drop this on its own asynchronous runtime.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Sockets {
    fn start() -> Result<Sockets, RemoteError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("remote").enable_all().build();
        Ok(Sockets(Some(runtime.map_err(|error| RemoteError::System(error.to_string()))?)))
    }

    fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

/// Aborts a request when its caller stops waiting for it.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Fields in which endpoints report the context length: vLLM, SGLang and memlocal use the first.
const CONTEXT_FIELDS: [&str; 2] = ["max_model_len", "context_length"];

impl Remote {
    /// Requests the endpoint's list of models and chooses one. Must be called outside of any asynchronous runtime.
    ///
    /// # Errors
    /// A [`RemoteError`].
    pub fn connect(setup: Setup) -> Result<Remote, RemoteError> {
        let sockets = Sockets::start()?;
        let endpoint = Endpoint::new(setup.address, setup.key.as_deref(), setup.patience)?;
        let models = match sockets.handle() {
            Some(handle) => handle.block_on(endpoint.models())?,
            None => Vec::new(),
        };
        let (model, listed) = chosen(&models, setup.model, &endpoint.address)?;
        let said = CONTEXT_FIELDS.iter().find_map(|field| listed[*field].as_u64());
        let said = said.and_then(|tokens| usize::try_from(tokens).ok());
        let unknown = || RemoteError::UnknownContext { url: endpoint.address.to_string(), model: model.clone() };
        let context_tokens = setup.context_tokens.or(said).ok_or_else(unknown)?;
        Ok(Remote { shared: Arc::new(Shared { endpoint, model, context_tokens }), sockets })
    }

    /// The endpoint.
    pub fn address(&self) -> &Address {
        &self.shared.endpoint.address
    }
}

/// The model of this name, or the first.
fn chosen<'a>(
    models: &'a [Value],
    asked: Option<String>,
    address: &Address,
) -> Result<(String, &'a Value), RemoteError> {
    let mut named = models.iter().filter_map(|model| Some((model["id"].as_str()?, model)));
    let found = match &asked {
        None => named.next(),
        Some(asked) => named.find(|(name, _)| name == asked),
    };
    let known = || models.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect();
    found.map(|(name, model)| (name.to_owned(), model)).ok_or_else(|| RemoteError::UnknownModel {
        url: address.to_string(),
        model: asked.clone().unwrap_or_default(),
        known: known(),
    })
}

impl Shared {
    async fn answer(self: Arc<Self>, call: Call) -> Result<Reply, CallError> {
        let started = Instant::now();
        let request = Request::of(&call, &self.model)?;
        let answer = self.endpoint.ask(&request, &call, self.context_tokens).await?;
        let Answer { text, thought, tool_calls, finish_reason, cost, .. } = answer;
        let (step, max_output_tokens) = (call.step, call.limits.max_output_tokens);
        let at_limit = finish_reason.as_deref() == Some("length");
        let bad = |reason| match at_limit {
            true => CallError::CutOff { step, max_output_tokens },
            false => CallError::OutOfForm { step, reason },
        };
        form::checked_calls(&call, &tool_calls).map_err(bad)?;
        // A reply that calls tools is text, whatever format its answer would have.
        let output_format = if tool_calls.is_empty() { &call.output_format } else { &OutputFormat::Text };
        let text = form::checked(output_format, text).map_err(bad)?;
        let loops = call.limits.stop_loops && repetition::loops(output_format, &text);
        if let (OutputFormat::Choice(_), Some(on_text)) = (&call.output_format, &call.on_text) {
            on_text.send(&text);
        }
        let usage = Usage {
            calls: 1,
            prompt_tokens: cost.prompt_tokens,
            cached_tokens: visible_cached_tokens(call.tenant, cost.cached_tokens()),
            output_tokens: cost.completion_tokens,
            seconds: started.elapsed().as_secs_f64(),
        };
        Ok(Reply {
            text,
            thought: Some(thought).filter(|thought| !thought.is_empty()),
            tool_calls,
            finish: finish(output_format, at_limit, loops),
            stopped_by: None,
            end_token: None,
            usage,
            diverged: None,
            logprobs: Vec::new(),
            rendered: rendered(&call),
            model: self.model.clone(),
        })
    }
}

/// The cached tokens that a tenant may see. A remote endpoint has one cache for all tenants, so its counts depend on the
/// prompts of others; only the local user sees them.
fn visible_cached_tokens(tenant: TenantId, cached_tokens: usize) -> usize {
    if tenant == TenantId::LOCAL { cached_tokens } else { 0 }
}

/// The finish reason of an answer. Complete JSON counts as closed even if the limit was reached.
fn finish(output_format: &OutputFormat, at_limit: bool, loops: bool) -> Finish {
    match (output_format, loops, at_limit) {
        (OutputFormat::Text, true, _) => Finish::Repetition,
        (_, true, _) => Finish::LoopClosed,
        (OutputFormat::Text, _, true) => Finish::Length,
        (_, _, true) => Finish::ClosedEarly,
        _ => Finish::Stop,
    }
}

impl Caller for Remote {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let handle = self.sockets.handle().ok_or(CallError::Closed)?;
            let task = handle.spawn(Arc::clone(&self.shared).answer(call));
            let _given_up = AbortOnDrop(task.abort_handle());
            task.await.map_err(|_| CallError::Closed)?
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }
}

impl Tokens for Remote {
    fn context_tokens(&self, _: Agent) -> usize {
        self.shared.context_tokens
    }

    fn token_spans(&self, _: Agent, text: &str) -> Vec<Range<usize>> {
        tokens::spans(text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        tokens::of_prompt(call)
    }
}

impl ModelInfo for Remote {
    fn model(&self, _: Agent) -> &str {
        &self.shared.model
    }
}
