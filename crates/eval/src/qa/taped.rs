//! A caller and embedder that look up the tape first, and record on it what a backend returns; without a backend they
//! only replay.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, Embedder, Embedding, Heads, Message, ModelInfo, Reply, ScoreRequest,
    Scored, Scorer, TenantId, Tokens, Usage, WorkflowId,
};

use super::sampled::Sampled;
use super::tape::{CallRecord, Facts, LikelyToken, Scope, Tape};
use super::tape_key::{instructions, key, score_key};
use crate::{Error, Result, StepEndings};

/// The backend that computes what is not on the tape.
#[derive(Clone, Copy)]
pub struct Backend<'a> {
    /// The model as typed.
    pub model: &'a str,
    pub caller: &'a dyn Caller,
    pub embedder: &'a dyn Embedder,
}

/// The tape within one scope.
pub(crate) struct Taped<'a> {
    tape: &'a Tape,
    machine: Option<Backend<'a>>,
    facts: Facts,
    scope: Scope,
    /// Whether tokens and log-probabilities are recorded.
    with_tokens: bool,
    /// Calls of the responder so far.
    asked: AtomicUsize,
    /// The number of the responder's first call with a reply, and the tokens of its prompt. Calls may end in another order than
    /// they are made.
    answer_prompt: Mutex<Option<(usize, usize)>>,
    /// Endings of the replies in this scope, from a backend or from the tape.
    endings: Mutex<StepEndings>,
}

impl<'a> Taped<'a> {
    /// # Errors
    /// [`Error::NotOnTape`] for a model that the tape does not have, if there is no backend.
    pub fn new(tape: &'a Tape, machine: Option<Backend<'a>>, scope: Scope) -> Result<Taped<'a>> {
        let known = match machine {
            Some(machine) => {
                let facts = facts(machine);
                tape.put_machine(facts.clone())?;
                Some(facts)
            }
            None => tape.machine(&scope.model),
        };
        let facts = known.ok_or_else(|| Error::NotOnTape { what: format!("the model {}", scope.model) })?;
        let with_tokens = false;
        Ok(Taped {
            tape,
            machine,
            facts,
            scope,
            with_tokens,
            asked: AtomicUsize::new(0),
            answer_prompt: Mutex::default(),
            endings: Mutex::default(),
        })
    }

    /// Records tokens and log-probabilities of replies too. The replies are the same.
    pub fn recording_tokens(self, with_tokens: bool) -> Taped<'a> {
        Taped { with_tokens, ..self }
    }

    /// Tokens of the responder's first prompt.
    pub fn answer_prompt_tokens(&self) -> Option<usize> {
        self.answer_prompt.lock().unwrap_or_else(PoisonError::into_inner).map(|(_, tokens)| tokens)
    }

    /// Endings of the replies so far.
    pub fn endings(&self) -> StepEndings {
        self.endings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn answer(&self, call: Call) -> std::result::Result<Reply, CallError> {
        let key = key(&call, ModelInfo::model(self, call.agent));
        let (agent, step, fixed) = (call.agent, call.step, instructions(&call));
        let number = if agent == Agent::Responder { self.asked.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let reply = match self.tape.reply(&key) {
            Some(reply) => reply,
            None => self.compute(call, key, fixed).await?,
        };
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        endings.entry(step.to_owned()).or_default().count(reply.finish);
        drop(endings);
        if agent == Agent::Responder {
            let mut first = self.answer_prompt.lock().unwrap_or_else(PoisonError::into_inner);
            let this = (number, reply.usage.prompt_tokens);
            *first = Some(first.map_or(this, |first| first.min(this)));
        }
        Ok(reply)
    }

    async fn compute(
        &self,
        mut call: Call,
        key: String,
        instructions: String,
    ) -> std::result::Result<Reply, CallError> {
        let (agent, step, temperature) = (call.agent, call.step, call.sampling.temperature);
        let failed = |reason: String| CallError::Failed { step, reason };
        let known = key.clone();
        let machine = self.machine.ok_or_else(|| failed("it is not on the tape".into()))?;
        let messages = self.with_tokens.then(|| messages(&call));
        let with_logprobs = call.logprobs.is_some();
        if self.with_tokens {
            call.logprobs.get_or_insert(0);
        }
        let mut reply = machine.caller.call(call).await?;
        let without_ids = || failed("the model does not say which tokens it wrote".into());
        let sampled = messages.map(|messages| sampled(messages, temperature, &reply).ok_or_else(without_ids));
        let sampled = sampled.transpose()?;
        reply.usage = rounded(reply.usage);
        let record = CallRecord {
            scope: self.scope.clone(),
            step: step.to_owned(),
            agent,
            answered_by: reply.model.clone(),
            key,
            instructions,
            prompt: reply.rendered.clone(),
            output: reply.text.clone(),
            thought: reply.thought.clone(),
            finish: reply.finish,
            usage: reply.usage,
            sampled,
            logprobs: if with_logprobs { reply.logprobs.iter().map(LikelyToken::from).collect() } else { Vec::new() },
        };
        // A reply that is not on the tape must not be used: it would be computed again.
        self.tape.put_reply(record).map_err(|_| CallError::Closed)?;
        // Of equal concurrent calls the first on the tape counts, here as in a replay.
        Ok(self.tape.reply(&known).unwrap_or(reply))
    }

    async fn scores(&self, request: ScoreRequest) -> std::result::Result<Scored, CallError> {
        let key = score_key(&request, ModelInfo::model(self, request.agent));
        if let Some(scores) = self.tape.scores(&key) {
            return Ok(scores);
        }
        let what = CallError::Failed { step: request.step, reason: "its scores are not on the tape".into() };
        let scorer = self.machine.and_then(|machine| machine.caller.scorer()).ok_or(what)?;
        let mut scores = scorer.score(request).await?;
        scores.usage = rounded(scores.usage);
        // A reply that is not on the tape must not be used: it would be computed again.
        self.tape.put_scores(&key, &scores).map_err(|_| CallError::Closed)?;
        Ok(scores)
    }

    async fn vectors(&self, texts: Vec<String>) -> std::result::Result<Vec<Vec<f32>>, CallError> {
        let name = self.facts.embedder.as_str();
        let mut known: Vec<Option<Vec<f32>>> = texts.iter().map(|text| self.tape.vector(&[name, text])).collect();
        let missing: Vec<String> =
            texts.iter().zip(&known).filter(|(_, vector)| vector.is_none()).map(|(text, _)| text.clone()).collect();
        if !missing.is_empty() {
            let what = || CallError::Failed { step: "embed", reason: "it is not on the tape".into() };
            let machine = self.machine.ok_or_else(what)?;
            let vectors = machine.embedder.embed(missing.clone()).await?;
            for (text, vector) in missing.iter().zip(&vectors) {
                self.tape.put_vector(&[name, text], vector).map_err(|_| CallError::Closed)?;
            }
            let mut computed = vectors.into_iter();
            known.iter_mut().filter(|vector| vector.is_none()).for_each(|vector| *vector = computed.next());
        }
        Ok(known.into_iter().flatten().collect())
    }
}

/// The chat of a prompt; nothing for one without a chat.
fn messages(call: &Call) -> Vec<Message> {
    if call.prompt.as_bare().is_some() { Vec::new() } else { call.prompt.messages() }
}

/// The tokens of a reply; `None` if its model does not number them.
fn sampled(messages: Vec<Message>, temperature: f32, reply: &Reply) -> Option<Sampled> {
    let ids = reply.logprobs.iter().map(|token| token.id).collect::<Option<Vec<u32>>>()?;
    let logprobs = reply.logprobs.iter().map(|token| token.logprob).collect();
    let drawn = Some(reply.logprobs.iter().map(|token| token.drawn).collect());
    let is_known = reply.text.is_empty() || !ids.is_empty();
    let (temperature, end) = (Some(temperature), reply.end_token);
    is_known.then_some(Sampled { messages, ids, logprobs, drawn, temperature, end })
}

/// Rounded to whole microseconds, so that the number is unchanged after a round trip through JSON.
pub(super) fn rounded(usage: Usage) -> Usage {
    Usage { seconds: (usage.seconds * 1e6).round() / 1e6, ..usage }
}

fn facts(machine: Backend<'_>) -> Facts {
    let Backend { model, caller, embedder } = machine;
    let (tokens, models) = (caller.tokens(), caller.models());
    let of_agents = |agent: &Agent| (*agent, models.model(*agent).to_owned());
    let with_adapter = Agent::ALL.iter().filter(|agent| models.base_model(**agent) != models.model(**agent));
    let adapters = Agent::ALL.iter().map(|agent| (*agent, models.adapters(*agent)));
    Facts {
        model: model.to_owned(),
        context_tokens: Agent::ALL.iter().map(|agent| (*agent, tokens.context_tokens(*agent))).collect(),
        models: Agent::ALL.iter().map(of_agents).collect::<HashMap<_, _>>(),
        embedder: embedder.name().to_owned(),
        dims: embedder.dims(),
        window_tokens: embedder.window_tokens(),
        scores: caller.scorer().is_some(),
        parameters: Agent::ALL.iter().filter_map(|agent| Some((*agent, models.parameters(*agent)?))).collect(),
        base_models: with_adapter.map(|agent| (*agent, models.base_model(*agent).to_owned())).collect(),
        adapters: adapters.filter(|(_, names)| !names.is_empty()).collect(),
    }
}

impl Caller for Taped<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, std::result::Result<Reply, CallError>> {
        Box::pin(self.answer(call))
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        if let Some(machine) = self.machine {
            machine.caller.close_workflow(workflow);
        }
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        self.facts.scores.then_some(self as &dyn Scorer)
    }
}

impl Tokens for Taped<'_> {
    fn context_tokens(&self, agent: Agent) -> usize {
        self.facts.context_tokens.get(&agent).copied().unwrap_or_default()
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        let ask = || self.machine.map_or_else(Vec::new, |machine| machine.caller.tokens().token_spans(agent, text));
        self.tape.spans(&[ModelInfo::model(self, agent), text], ask)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        let key = key(call, ModelInfo::model(self, call.agent));
        self.tape
            .count(&["prompt", &key], || self.machine.map_or(0, |machine| machine.caller.tokens().prompt_tokens(call)))
    }

    fn count_tokens(&self, agent: Agent, text: &str) -> usize {
        let ask = || self.machine.map_or(0, |machine| machine.caller.tokens().count_tokens(agent, text));
        self.tape.count(&["text", ModelInfo::model(self, agent), text], ask)
    }
}

impl ModelInfo for Taped<'_> {
    fn model(&self, agent: Agent) -> &str {
        self.facts.models.get(&agent).map_or("", String::as_str)
    }

    fn base_model(&self, agent: Agent) -> &str {
        self.facts.base_models.get(&agent).map_or_else(|| ModelInfo::model(self, agent), String::as_str)
    }

    fn adapters(&self, agent: Agent) -> Vec<String> {
        self.facts.adapters.get(&agent).cloned().unwrap_or_default()
    }

    fn parameters(&self, agent: Agent) -> Option<u64> {
        self.facts.parameters.get(&agent).copied()
    }
}

impl Scorer for Taped<'_> {
    fn score(&self, request: ScoreRequest) -> BoxFuture<'_, std::result::Result<Scored, CallError>> {
        Box::pin(self.scores(request))
    }
}

impl Embedder for Taped<'_> {
    /// Vectors are on the tape; other heads of a model are not, and are not replayed.
    fn encode_for(
        &self,
        tenant: TenantId,
        texts: Vec<String>,
        heads: Heads,
    ) -> BoxFuture<'_, std::result::Result<Vec<Embedding>, CallError>> {
        Box::pin(async move {
            if let (Heads::All, Some(machine)) = (heads, self.machine) {
                return machine.embedder.encode_for(tenant, texts, heads).await;
            }
            let vectors = self.vectors(texts).await?;
            Ok(vectors.into_iter().map(|dense| Embedding { dense, sparse: None, colbert: None }).collect())
        })
    }

    fn dims(&self) -> usize {
        self.facts.dims
    }

    fn window_tokens(&self) -> usize {
        self.facts.window_tokens
    }

    /// Not on the tape: no method reads it.
    fn special_tokens(&self) -> usize {
        self.machine.map_or(0, |machine| machine.embedder.special_tokens())
    }

    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        let ask = || self.machine.map_or_else(Vec::new, |machine| machine.embedder.token_spans(text));
        self.tape.spans(&["embedder", &self.facts.embedder, text], ask)
    }

    fn name(&self) -> &str {
        &self.facts.embedder
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use calls::{Priority, Prompt, Score, Scripted, ScriptedEmbedder, ScriptedScorer, Stability};

    use super::*;

    fn request(continuation: &str) -> ScoreRequest {
        ScoreRequest {
            agent: Agent::Responder,
            step: "spans",
            workflow: WorkflowId::default(),
            tenant: TenantId::LOCAL,
            priority: Priority::default(),
            prompt: Prompt::new().user(Stability::Volatile, "What?"),
            continuations: vec![continuation.to_owned(), "no".to_owned()],
            end: true,
        }
    }

    fn scores(taped: &Taped<'_>, continuation: &str) -> std::result::Result<Scored, CallError> {
        let scorer = Caller::scorer(taped).expect("the machine scores");
        match pin!(scorer.score(request(continuation))).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(scores) => scores,
            Poll::Pending => panic!("a script waits for nothing"),
        }
    }

    #[test]
    fn scores_are_replayed_to_the_bit_and_others_are_not_on_the_tape() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let scope = Scope { model: "m".into(), method: "rag".into(), case: "c".into(), question: None };
        let caller = Scripted::new(100).scored(ScriptedScorer::new(|_, text| -(text.len() as f64) / 3.0));
        let machine = Backend { model: "m", caller: &caller, embedder: &ScriptedEmbedder };
        let live = Tape::open(folder.path()).expect("a new tape");
        let first = Taped::new(&live, Some(machine), scope.clone()).and_then(|taped| Ok(scores(&taped, "platinum")?));
        let first = first.expect("the machine scores");
        let read = Tape::read(folder.path()).expect("the tape is whole");
        let replay = Taped::new(&read, None, scope).expect("the model is on the tape");
        let bits = |scores: &[Score]| scores.iter().map(|score| score.logprob.to_bits()).collect::<Vec<_>>();
        let again = scores(&replay, "platinum").expect("it is on the tape");
        assert_eq!((bits(&again.scores), again.usage), (bits(&first.scores), first.usage));
        assert_eq!(
            (first.usage.calls, first.usage.prompt_tokens),
            (1, 3),
            "the prompt and two continuations of a word"
        );
        assert!(scores(&replay, "gold").is_err_and(|error| error.to_string().contains("not on the tape")));
    }
}
