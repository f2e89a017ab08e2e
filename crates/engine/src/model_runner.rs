//! Runs one language model: its KV cache, scheduler and running sequences.

mod forward;
mod saved;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Instant;

use calls::{CallError, Finish, ModelState, Priority, Usage};
use models::{DecoderNetwork, KvCache, PAGE_TOKENS};
use scheduler::{Namespace, PageCopy, Refusal, Request, Scheduler, SequenceId, Step, TenantId, Work, WorkflowId};

use crate::catch_panic::catch_panic;
use crate::format_threads::{Advanced, FormatJob};
use crate::generation::{Advance, Generation, Next, StepRows};
use crate::logits::Logits;
use crate::scoring::{ScoreJob, Scoring};
use crate::state::PublishedState;
use crate::step_budget::StepBudget;
use crate::step_limits::{DraftLimits, StepLimits};
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
        let generation = Generation::new(submission);
        let request = Request { id, tenant, namespace, prompt, stable_tokens, workflow, max_output_tokens, priority };
        match self.scheduler.submit(request) {
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

    /// Samples the next tokens of all sequences that ran.
    fn sample(&mut self, work: &[Work], ran: Ran) {
        match ran {
            Ran::Whole(outcomes) => {
                let drafts = self.limits.drafts(work.len(), self.scheduler.queue().0);
                for (index, outcome) in outcomes.into_iter().enumerate() {
                    let Some(rows) = outcome else { return self.give_up(work, index, NOT_A_NUMBER.into()) };
                    self.take(&work[index], rows, drafts);
                }
            }
            // The scheduler counts a failed copy as done, so its sequence cannot continue. The others run in the next step.
            Ran::NotCopied(failed) => {
                work.iter().for_each(|work| self.scheduler.abandon(work));
                failed.into_iter().for_each(|(id, reason)| self.fail(id, reason));
            }
            Ran::Failed(reason) if work.len() == 1 => self.give_up(work, 0, reason),
            Ran::Failed(_) => self.one_by_one(work),
        }
    }

    /// Repeats the work of a failed step one sequence at a time until the failing one is found.
    fn one_by_one(&mut self, all: &[Work]) {
        for (index, work) in all.iter().enumerate() {
            let outcomes = catch_panic(|| self.forward(std::slice::from_ref(work), Vec::new()));
            let rows = outcomes
                .and_then(|outcomes| outcomes.into_iter().next().flatten().ok_or_else(|| NOT_A_NUMBER.to_owned()));
            match rows {
                Ok(rows) => self.take(work, rows, DraftLimits::default()),
                Err(reason) => return self.give_up(all, index, reason),
            }
        }
    }

    /// Processes the result of a sequence.
    fn take(&mut self, work: &Work, rows: Vec<Logits>, drafts: DraftLimits) {
        self.counts.read_tokens += self.prompt_tokens_of(work);
        self.scheduler.commit(work);
        self.write_on(work, rows, drafts);
    }

    /// Number of prompt tokens in this work.
    fn prompt_tokens_of(&self, work: &Work) -> u64 {
        let prompt_tokens = self.scheduler.usage(work.sequence).map_or(0, |usage| usage.prompt_tokens);
        (work.tokens.len() - work.drafted).min(prompt_tokens.saturating_sub(work.start)) as u64
    }

    /// Ends the sequence whose work failed. Later work of the step may have read its pages and is scheduled again.
    fn give_up(&mut self, all: &[Work], failed: usize, reason: String) {
        all[failed..].iter().for_each(|work| self.scheduler.abandon(work));
        self.fail(all[failed].sequence, reason);
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

    /// Continues a sequence with the results of a step: here, or on a thread for output formats if it has one.
    fn write_on(&mut self, work: &Work, logits: Vec<Logits>, drafts: DraftLimits) {
        let id = work.sequence;
        if self.scorings.contains_key(&id) {
            return self.read_on(work, &logits);
        }
        let Entry::Occupied(mut generation) = self.generations.entry(id) else { return };
        if !work.wants_logits {
            return;
        }
        if generation.get().is_abandoned() {
            return self.cancel(id);
        }
        let draft = work.tokens[work.tokens.len() - work.drafted..].to_vec();
        let rows = StepRows { logits, draft, drafts };
        if generation.get().is_constrained() {
            let generation = generation.remove();
            self.elsewhere.insert(id, generation.is_streaming());
            let (vocabulary, masked_outputs) = (Arc::clone(&self.vocabulary), self.limits.masked_outputs);
            self.jobs.push(FormatJob { id, generation, rows, vocabulary, masked_outputs });
        } else {
            let advance = generation.get_mut().advance(rows, &self.vocabulary);
            self.append(id, advance);
        }
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

    /// Appends the next tokens of a reply to its sequence.
    fn append(&mut self, id: SequenceId, Advance { next, written_tokens, draft }: Advance) {
        self.counts.written_tokens += written_tokens as u64;
        for next in next {
            match next {
                Next::Token(token) => self.scheduler.append(id, token),
                Next::Border(token) => {
                    // Its row is read in the next step, so it is computed again if it was drafted.
                    self.scheduler.draft(id, &[]);
                    self.scheduler.append(id, token);
                }
                Next::End(finish) => return self.end(id, finish),
            }
        }
        match draft {
            Ok(draft) => self.scheduler.draft(id, &draft),
            Err(reason) => self.fail(id, reason),
        }
    }

    /// Processes the rows of a scoring job and appends the tokens that follow.
    fn read_on(&mut self, work: &Work, rows: &[Logits]) {
        let id = work.sequence;
        let Some(scoring) = self.scorings.get_mut(&id).filter(|_| work.wants_logits) else { return };
        if scoring.job.reply.is_closed() {
            return self.cancel(id);
        }
        for logits in rows {
            match scoring.read(logits, &self.vocabulary.tokenizer) {
                Ok(Some(token)) => self.scheduler.append(id, token),
                Ok(None) => {
                    let cached_tokens = self.scheduler.usage(id).map_or(0, |usage| usage.cached_tokens);
                    self.counts.cached_tokens += cached_tokens as u64;
                    self.scheduler.finish(id);
                    return self.scorings.remove(&id).into_iter().for_each(|scoring| scoring.answer(cached_tokens));
                }
                Err(reason) => return self.fail(id, reason),
            }
        }
        // Known tokens are drafts that are always accepted.
        self.scheduler.draft(id, scoring.ahead());
    }

    fn end(&mut self, id: SequenceId, finish: Finish) {
        let complete = |generation: &mut Generation| {
            generation.complete();
            Ok::<_, String>(())
        };
        let generation = self.generations.get_mut(&id);
        if let Err(reason) = generation.map_or(Ok(()), |generation| catch_panic(|| complete(generation))) {
            return self.fail(id, reason);
        }
        let usage = self.scheduler.usage(id);
        self.scheduler.finish(id);
        if let (Some(generation), Some(usage)) = (self.generations.remove(&id), usage) {
            let (prompt_tokens, cached_tokens) = (usage.prompt_tokens, usage.cached_tokens);
            self.counts.cached_tokens += cached_tokens as u64;
            let usage = Usage { prompt_tokens, cached_tokens, ..Usage::default() };
            let name = generation.adapter.map_or(&self.name, |adapter| &self.adapters[adapter]);
            generation.answer(finish, usage, name);
        }
    }

    fn fail(&mut self, id: SequenceId, reason: String) {
        self.scheduler.finish(id);
        if let Some(generation) = self.generations.remove(&id) {
            let step = generation.step;
            let _ = generation.reply.send(Err(CallError::Failed { step, reason }));
        } else if let Some(scoring) = self.scorings.remove(&id) {
            let step = scoring.job.step;
            let _ = scoring.job.reply.send(Err(CallError::Failed { step, reason }));
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
