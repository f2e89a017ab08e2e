//! The engine as `calls` knows it: replies, tokens, models, status and vectors.

use std::ops::Range;
use std::time::Instant;

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Embedder, Embedding, Heads, ModelDetails, ModelInfo, ModelState,
    Prefixes, Reply, Scorer, Status, TenantId, Tokens, WorkflowId,
};

use crate::engine::Engine;
use crate::frontend::ModelFrontend;
use crate::message::Message;

impl Caller for Engine {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(self.answer(call))
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        self.post(Message::CloseWorkflow(workflow));
    }

    fn prefixes(&self) -> Option<&dyn Prefixes> {
        Some(self)
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        Some(self)
    }

    fn status(&self) -> Option<&dyn Status> {
        Some(self)
    }
}

impl Tokens for Engine {
    fn context_tokens(&self, agent: Agent) -> usize {
        self.frontend(agent).map_or(0, |(_, frontend)| frontend.context_tokens)
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        self.frontend(agent)
            .map_or_else(|_| Vec::new(), |(_, frontend)| frontend.tokenizer.spans(text).unwrap_or_default())
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        let rendered = self.frontend(call.agent).and_then(|(_, frontend)| frontend.prompt(call));
        rendered.map_or(usize::MAX, |rendered| rendered.tokens.len())
    }
}

impl ModelInfo for Engine {
    fn model(&self, agent: Agent) -> &str {
        let Ok((_, frontend)) = self.frontend(agent) else { return "none" };
        self.adapter_of_agent(agent).map_or(&frontend.name, |adapter| &frontend.adapters[adapter].served_name)
    }

    fn base_model(&self, agent: Agent) -> &str {
        self.frontend(agent).map_or("none", |(_, frontend)| &frontend.name)
    }

    fn adapters(&self, agent: Agent) -> Vec<String> {
        let names = |(_, frontend): (usize, &ModelFrontend)| {
            frontend.adapters.iter().map(|adapter| adapter.name.clone()).collect()
        };
        self.frontend(agent).map(names).unwrap_or_default()
    }

    fn parameters(&self, agent: Agent) -> Option<u64> {
        self.frontend(agent).ok().map(|(_, frontend)| frontend.parameters)
    }

    fn details(&self, agent: Agent) -> Option<ModelDetails> {
        self.frontend(agent).ok().map(|(_, frontend)| frontend.origin.details())
    }

    fn digest(&self, agent: Agent) -> Option<String> {
        self.frontend(agent).ok().and_then(|(_, frontend)| frontend.origin.digest())
    }
}

impl Status for Engine {
    fn state(&self) -> Vec<ModelState> {
        let now = Instant::now();
        let state =
            |frontend: &ModelFrontend| ModelState { page_bytes: frontend.page_bytes, ..frontend.published.get(now) };
        self.frontends().iter().map(state).collect()
    }

    fn is_alive(&self) -> bool {
        self.is_running()
    }
}

impl Embedder for Engine {
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, Result<Vec<Embedding>, CallError>> {
        Box::pin(self.embeddings(tenant, texts, heads))
    }

    fn dims(&self) -> usize {
        self.embedder().map_or(0, |frontend| frontend.dims)
    }

    fn window_tokens(&self) -> usize {
        self.embedder().map_or(0, |frontend| frontend.window - frontend.tokenizer.special_tokens())
    }

    fn special_tokens(&self) -> usize {
        self.embedder().map_or(0, |frontend| frontend.tokenizer.special_tokens())
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        self.embedder().map_or_else(Vec::new, |frontend| frontend.tokenizer.spans(text).unwrap_or_default())
    }

    fn name(&self) -> &str {
        self.embedder().map_or("none", |frontend| &frontend.name)
    }

    fn details(&self) -> Option<ModelDetails> {
        self.embedder().map(|frontend| frontend.origin.details())
    }

    fn digest(&self) -> Option<String> {
        self.embedder().and_then(|frontend| frontend.origin.digest())
    }
}
