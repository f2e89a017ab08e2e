//! A call as it is submitted to the engine's thread: prompt, grammar and sampler are ready.

use std::sync::Arc;
use std::time::Instant;

use calls::{Call, CallError, Limits, OnText, OutputFormat, Priority, Reply, TenantId, WorkflowId};
use tokio::sync::oneshot;

use crate::adjustments::Adjustments;
use crate::frontend::ModelFrontend;
use crate::grammar::Grammar;
use crate::rendered::Rendered;
use crate::repetition::RepetitionGuard;
use crate::sample::Sampler;
use crate::stop::Stops;
use crate::thought::Thought;
use crate::written::Written;

/// A submitted call.
pub(crate) struct Submission {
    pub step: &'static str,
    pub rendered: Arc<Rendered>,
    pub tenant: TenantId,
    pub workflow: WorkflowId,
    pub limits: Limits,
    pub priority: Priority,
    pub grammar: Option<Grammar>,
    pub sampler: Sampler,
    pub adjustments: Adjustments,
    pub on_text: Option<OnText>,
    pub stops: Stops,
    pub repetition: RepetitionGuard,
    /// The thought before the answer, if the model is to think.
    pub thought: Option<Thought>,
    pub logprobs: Option<usize>,
    pub submitted: Instant,
    /// The index of the adapter that it runs with.
    pub adapter: Option<usize>,
    pub reply: oneshot::Sender<Result<Reply, CallError>>,
}

/// Maximum white-space characters in a row in constrained output while loops are detected.
const MAX_WHITESPACE: usize = 16;

impl ModelFrontend {
    /// Prepares a call: prompt, grammar, sampler. `written` is the part of the reply that is written already.
    ///
    /// # Errors
    /// [`CallError::TooLong`], [`CallError::Template`], [`CallError::OutputFormat`] or [`CallError::Sampling`].
    pub fn submission(
        &self,
        call: Call,
        written: &Written,
        adapter: Option<usize>,
        reply: oneshot::Sender<Result<Reply, CallError>>,
    ) -> Result<Submission, CallError> {
        let submitted = Instant::now();
        let rendered = match written.is_empty() {
            true => self.prompt(&call)?,
            false => Arc::new(self.prompt_after(&call, written)?),
        };
        let (step, limits) = (call.step, call.limits);
        self.fits(step, rendered.tokens.len(), limits.reply_tokens())?;
        let max_output_tokens = limits.max_output_tokens;
        let refused = |reason: String| CallError::OutputFormat { step, reason };
        let invalid = |reason: String| CallError::Sampling { step, reason };
        if max_output_tokens == 0 && call.output_format == OutputFormat::Text {
            return Err(invalid("a reply needs one token at least, but 0 are allowed".into()));
        }
        let (budget, least) = (limits.thinking_tokens, self.markers.least_tokens());
        if (1..least).contains(&budget) {
            return Err(invalid(format!("a thought needs {least} tokens at least, but {budget} are allowed")));
        }
        let thought = (budget > 0).then(|| Thought::new(Arc::clone(&self.markers), budget, limits.stop_loops));
        let grammar = self.grammars.grammar(call.tenant, &call.output_format).map_err(refused)?;
        if let Some(shortest) = grammar.as_ref().map(Grammar::shortest).filter(|n| *n > max_output_tokens) {
            return Err(refused(format!(
                "its shortest answer has {shortest} tokens, but {max_output_tokens} are allowed"
            )));
        }
        let mut grammar =
            grammar.map(|grammar| grammar.with_max_whitespace(if limits.stop_loops { MAX_WHITESPACE } else { 0 }));
        // The mask of the first token is then known, and the engine's thread computes none.
        grammar.as_mut().map(Grammar::mask).transpose().map_err(refused)?;
        let repetition = RepetitionGuard::new(limits.stop_loops, &call.output_format);
        // Some tokenizers have tokens beyond the network's vocabulary, and most networks a padded one.
        let vocabulary = self.tokenizer.len().min(self.identity.spec.vocab);
        let sampler = Sampler::new(&call.sampling, vocabulary).map_err(invalid)?;
        let mut adjustments = Adjustments::new(&call.sampling, &rendered.tokens);
        if adjustments.counts_reply() {
            self.written_tokens(step, written)?.into_iter().for_each(|token| adjustments.push(token));
        }
        let (on_text, workflow) = (call.on_text, call.workflow);
        // Constrained output is never truncated.
        let stops = Stops::new(if grammar.is_none() { call.stop } else { Vec::new() });
        Ok(Submission {
            step,
            tenant: call.tenant,
            workflow,
            limits,
            priority: call.priority,
            grammar,
            sampler,
            adjustments,
            on_text,
            stops,
            repetition,
            thought,
            logprobs: call.logprobs,
            rendered,
            submitted,
            adapter,
            reply,
        })
    }
}
