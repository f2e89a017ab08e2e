//! How likely given texts are: log-probabilities of whole continuations of a prompt, instead of a text that is drawn.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::{Agent, BoxFuture, CallError, Priority, Prompt, TenantId, Usage, WorkflowId};

/// Asks how likely each of several texts is as the beginning of the answer to a prompt.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    /// On whose behalf; decides the model.
    pub agent: Agent,
    /// Which step of which method; named in errors and traces.
    pub step: &'static str,
    /// Which run of the method.
    pub workflow: WorkflowId,
    /// On whose behalf the prefix cache is used.
    pub tenant: TenantId,
    /// How urgent it is.
    pub priority: Priority,
    /// What is asked. It is computed once for all continuations.
    pub prompt: Prompt,
    /// The texts to score, each by itself; none influences another.
    pub continuations: Vec<String>,
    /// Score also that the answer ends behind the continuation. Without it the beginning of a likely text is at least as
    /// likely as the whole.
    pub end: bool,
}

/// How likely one continuation is. Natural logarithms, from the whole distribution of the model: no temperature, no mask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Sum over the tokens of the continuation, and over its end if that was asked for.
    pub logprob: f64,
    /// Tokens of the continuation, its end not counted. Where prompt and continuation share a token, the last tokens of the
    /// prompt count to every continuation alike.
    pub tokens: usize,
    /// That the answer ends behind it, if that was asked for; part of `logprob`.
    pub end_logprob: Option<f64>,
}

/// The result of a [`ScoreRequest`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scored {
    /// One for each continuation, in order.
    pub scores: Vec<Score>,
    /// One call; `prompt_tokens` are those of the prompt, once, and of all continuations. Nothing is generated.
    pub usage: Usage,
}

/// A machine that scores.
pub trait Scorer: Send + Sync {
    /// One score for each continuation, in order. It does not depend on what else is scored or runs, nor on the order.
    ///
    /// # Errors
    /// As [`crate::Caller::call`]: [`CallError::TooLong`] if prompt and longest continuation exceed the context.
    fn score(&self, request: ScoreRequest) -> BoxFuture<'_, Result<Scored, CallError>>;
}

/// The score of a continuation of a prompt.
type Rule = dyn Fn(&ScoreRequest, &str) -> f64 + Send + Sync;

/// Scores by a rule and records what it was asked, so that methods are tested without a model. The end of an answer is
/// certain, and a token is a word.
pub struct ScriptedScorer {
    rule: Box<Rule>,
    seen: Mutex<Vec<ScoreRequest>>,
}

impl ScriptedScorer {
    /// `rule` gives the log-probability of a continuation.
    pub fn new(rule: impl Fn(&ScoreRequest, &str) -> f64 + Send + Sync + 'static) -> ScriptedScorer {
        ScriptedScorer { rule: Box::new(rule), seen: Mutex::default() }
    }

    /// Every request so far, in order of arrival.
    pub fn seen(&self) -> Vec<ScoreRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ScriptedScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedScorer")
    }
}

impl Scorer for ScriptedScorer {
    fn score(&self, request: ScoreRequest) -> BoxFuture<'_, Result<Scored, CallError>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let score = |text: &String| Score {
            logprob: (self.rule)(&request, text),
            tokens: text.split_whitespace().count(),
            end_logprob: request.end.then_some(0.0),
        };
        let scores: Vec<Score> = request.continuations.iter().map(score).collect();
        let words = |text: &str| text.split_whitespace().count();
        let prompt: usize = request.prompt.segments().iter().map(|segment| words(&segment.text)).sum();
        let continuations: usize = scores.iter().map(|score| score.tokens).sum();
        let usage = Usage { calls: 1, prompt_tokens: prompt + continuations, ..Usage::default() };
        Box::pin(async move { Ok(Scored { scores, usage }) })
    }
}
