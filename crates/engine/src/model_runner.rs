//! Runs one language model: its KV cache, scheduler and running sequences.

mod forward;
mod pinned;
mod results;
mod saved;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use calls::{CallError, ModelState, Priority};
use models::{DecoderNetwork, KvCache, PAGE_TOKENS};
use scheduler::{Namespace, PageCopy, Refusal, Request, Scheduler, SequenceId, Step, TenantId, WorkflowId};

use crate::catch_panic::catch_panic;
use crate::format_threads::{Advanced, FormatJob};
use crate::generation::Generation;
use crate::logits::Logits;
use crate::scoring::{ScoreJob, Scoring};
use crate::state::PublishedState;
use crate::step_budget::StepBudget;
use crate::step_limits::StepLimits;
use crate::submission::Submission;
use crate::vocabulary::Vocabulary;

/// A decoder with its KV cache, scheduler and running sequences.
pub(crate) struct ModelRunner {
    pub name: String,
    network: Box<dyn DecoderNetwork>,
    /// The served names of its adapters, in the network's order.
    adapters: Vec<String>,
    cache: KvCache,
    scheduler: Scheduler,
    generations: HashMap<SequenceId, Generation>,
    /// Replies that threads for output formats continue, and whether they are streamed. They have no part in steps meanwhile.
    elsewhere: HashMap<SequenceId, bool>,
    /// Those of them that are yet to be sent there.
    jobs: Vec<FormatJob>,
    scorings: HashMap<SequenceId, Scoring>,
    vocabulary: Arc<Vocabulary>,
    limits: StepLimits,
    budget: StepBudget,
    counts: Counts,
    published: Arc<PublishedState>,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    steps: u64,
    read_tokens: u64,
    cached_tokens: u64,
    written_tokens: u64,
}

/// The result of a forward pass.
enum Ran {
    Whole(Vec<Outcome>),
    /// Pages of these sequences could not be copied, and nothing ran.
    NotCopied(Vec<(SequenceId, String)>),
    Failed(String),
}

/// The requested logits of a sequence; none if it has NaN.
type Outcome = Option<Vec<Logits>>;

/// Why a sequence with NaN ends.
const NOT_A_NUMBER: &str = "the forward pass produced NaN";

impl ModelRunner {
    #[allow(clippy::too_many_arguments, reason = "each is a part of it")]
    pub fn new(
        name: String,
        network: Box<dyn DecoderNetwork>,
        adapters: Vec<String>,
        cache: KvCache,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        limits: StepLimits,
        published: Arc<PublishedState>,
    ) -> ModelRunner {
        debug_assert_eq!(PAGE_TOKENS, scheduler::PAGE_TOKENS);
        ModelRunner {
            name,
            network,
            adapters,
            cache,
            scheduler,
            generations: HashMap::new(),
            elsewhere: HashMap::new(),
            jobs: Vec::new(),
            scorings: HashMap::new(),
            vocabulary: Arc::new(vocabulary),
            limits,
            budget: StepBudget::default(),
            counts: Counts::default(),
            published,
        }
    }

    /// Publishes the model's state.
    pub fn publish(&self, now: Instant) {
        let (free, cached_pages, used_pages) = self.scheduler.pages();
        let (running, waiting) = self.scheduler.queue();
        let Counts { steps, read_tokens, cached_tokens, written_tokens } = self.counts;
        let state = ModelState {
            model: self.name.clone(),
            total_pages: free + cached_pages + used_pages,
            used_pages,
            cached_pages,
            running,
            waiting,
            steps,
            read_tokens,
            cached_tokens,
            written_tokens,
            ..ModelState::default()
        };
        self.published.publish(state, now);
    }

    /// Continues the counts of the model that this one was before it was unloaded.
    pub fn continue_as(&mut self, published: Arc<PublishedState>, now: Instant) {
        let ModelState { steps, read_tokens, cached_tokens, written_tokens, .. } = published.get(now);
        self.counts = Counts { steps, read_tokens, cached_tokens, written_tokens };
        self.published = published;
    }

    /// Ends as an idle model: its counts stay published, without KV pages.
    pub fn retire(self, now: Instant) {
        let Counts { steps, read_tokens, cached_tokens, written_tokens } = self.counts;
        let model = self.name.clone();
        let counts = ModelState { model, steps, read_tokens, cached_tokens, written_tokens, ..ModelState::default() };
        self.published.publish(counts, now);
    }

    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Submits a call, or refuses it at once.
    pub fn submit(&mut self, id: SequenceId, namespace: Namespace, submission: Submission) {
        let max_output_tokens = submission.limits.reply_tokens();
        let prompt = submission.rendered.tokens.clone();
        let (prompt_tokens, priority) = (prompt.len(), level(submission.priority));
        let workflow = Some(WorkflowId(submission.workflow.0)).filter(|workflow| workflow.0 > 0);
        let stable_tokens = submission.rendered.segments.stable_tokens();
        let tenant = TenantId(submission.tenant.number());
        // Pinned pages were computed without an adapter, and prefixes of a workflow, which may be saved, are whole.
        let pinned = submission.adapter.is_none() && workflow.is_none();
        let generation = Generation::new(submission);
        match self.scheduler.submit(Request {
            id,
            tenant,
            namespace,
            pinned,
            prompt,
            stable_tokens,
            workflow,
            max_output_tokens,
            priority,
        }) {
            Ok(()) => {
                self.generations.insert(id, generation);
            }
            Err(refusal) => {
                let error = refused(refusal, generation.step, prompt_tokens, max_output_tokens);
                let _ = generation.reply.send(Err(error));
            }
        }
    }

    /// Submits a scoring job, or refuses it at once.
    pub fn submit_score(&mut self, id: SequenceId, job: ScoreJob) {
        let (prompt, stable_tokens, priority) = (job.prompt.clone(), job.stable_tokens, level(job.priority));
        let workflow = Some(WorkflowId(job.workflow.0)).filter(|workflow| workflow.0 > 0);
        let (prompt_tokens, max_output_tokens) = (prompt.len(), job.forced.len());
        match self.scheduler.submit(Request {
            id,
            tenant: TenantId(job.tenant.number()),
            namespace: job.namespace,
            pinned: false,
            prompt,
            stable_tokens,
            workflow,
            max_output_tokens,
            priority,
        }) {
            Ok(()) => drop(self.scorings.insert(id, Scoring::new(job))),
            Err(refusal) => {
                let error = refused(refusal, job.step, prompt_tokens, max_output_tokens);
                let _ = job.reply.send(Err(error));
            }
        }
    }

    /// Cancels a sequence.
    pub fn cancel(&mut self, id: SequenceId) {
        self.scheduler.finish(id);
        if let Some(generation) = self.generations.remove(&id) {
            let _ = generation.reply.send(Err(CallError::Cancelled));
        }
        self.elsewhere.remove(&id);
        self.scorings.remove(&id);
    }

    /// A workflow has issued its last call.
    pub fn close_workflow(&mut self, workflow: calls::WorkflowId) {
        self.scheduler.close_workflow(WorkflowId(workflow.0));
    }

    /// One step: schedule, run, sample. The step is short while replies of any model are streamed (`streams`). False if
    /// there was nothing to run.
    pub fn step(&mut self, streams: bool) -> bool {
        let step = self.scheduler.step(self.budget.rows(streams, self.scheduler.decoding()));
        let outcome = self.run(&step);
        self.sample(&step.work, outcome);
        !step.work.is_empty()
    }

    /// Copies the pages that sequences are about to change, and runs the forward pass.
    fn run(&mut self, Step { copies, work }: &Step) -> Ran {
        if work.is_empty() {
            return Ran::Whole(Vec::new());
        }
        let failed = self.copy_pages(copies);
        if !failed.is_empty() {
            return Ran::NotCopied(failed);
        }
        let started = Instant::now();
        let wanted = self.wanted(work);
        let outcome = catch_panic(|| self.forward(work, wanted));
        self.budget.learn(work.iter().map(|work| work.tokens.len()).sum(), started.elapsed());
        self.counts.steps += 1;
        outcome.map_or_else(Ran::Failed, Ran::Whole)
    }

    /// True if a reply is being streamed.
    pub fn is_streaming(&self) -> bool {
        self.generations.values().any(Generation::is_streaming) || self.elsewhere.values().any(|streamed| *streamed)
    }

    /// Copies pages; returns the sequences whose pages could not be copied, and why.
    fn copy_pages(&self, copies: &[PageCopy]) -> Vec<(SequenceId, String)> {
        let copy = |copy: &PageCopy| {
            let copied = catch_panic(|| self.cache.copy_page(copy.from.0 as usize, copy.to.0 as usize));
            copied.err().map(|reason| (copy.sequence, reason))
        };
        copies.iter().filter_map(copy).collect()
    }

    /// The replies that threads for output formats are to continue.
    pub fn take_jobs(&mut self) -> Vec<FormatJob> {
        std::mem::take(&mut self.jobs)
    }

    /// Takes back a reply that was continued there, unless it was cancelled meanwhile.
    pub fn take_back(&mut self, Advanced { id, generation, advance }: Advanced) {
        if self.elsewhere.remove(&id).is_some() {
            self.generations.insert(id, generation);
            self.append(id, advance);
        }
    }
}

/// A priority as the scheduler's number.
fn level(priority: Priority) -> u8 {
    match priority {
        Priority::Interactive => 0,
        Priority::Workflow => 1,
        Priority::Bulk => 2,
    }
}

/// The caller's error for a refusal of the scheduler.
fn refused(refusal: Refusal, step: &'static str, prompt_tokens: usize, max_output_tokens: usize) -> CallError {
    match refusal {
        Refusal::NeverFits { total_pages, .. } => {
            let context_tokens = total_pages * PAGE_TOKENS;
            CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens }
        }
        Refusal::EmptyPrompt => CallError::Failed { step, reason: "the prompt is empty".into() },
    }
}

#[cfg(test)]
mod tests {
    use calls::{Agent, Call, Limits, OnText, Prompt, Stability};
    use tokio::sync::oneshot;

    use super::*;
    use crate::format_threads::tests::model;
    use crate::written::Written;

    #[test]
    fn a_thought_counts_as_streamed_like_an_answer() {
        let (frontend, mut runner) = model();
        let call = Call::new(Agent::Responder, "test", Prompt::new().user(Stability::Volatile, "When?"), 20);
        let limits = Limits { thinking_tokens: 80, ..call.limits };
        for on_text in [None, Some(OnText::new(|_| {}))] {
            let is_streamed = on_text.is_some();
            let (sender, _receiver) = oneshot::channel();
            let call = Call { limits, on_text, ..call.clone() };
            let submission = frontend.submission(call, &Written::default(), None, sender).unwrap();
            runner.submit(SequenceId(1), Namespace::default(), submission);
            assert!(!runner.is_streaming(), "it has not begun");
            runner.step(false);
            assert_eq!(runner.is_streaming(), is_streamed);
            runner.cancel(SequenceId(1));
        }
    }
}
