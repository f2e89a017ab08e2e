//! One language model: its KV cache, scheduler and running sequences.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use calls::{CallError, Finish, ModelState, Usage};
use models::{AdaptedRows, Batch, DecoderNetwork, KvCache, PAGE_TOKENS, PagedSequence};
use scheduler::{Namespace, PageCopy, PageId, PinId, Refusal, Request, Scheduler, SequenceId, Step, Work, WorkflowId};

use crate::catch_panic::catch_panic;
use crate::generation::{Generation, Next, Submission, Vocabulary};
use crate::handle::level;
use crate::logits::{self, Logits, Wanted};
use crate::scoring::{ScoreJob, Scoring};
use crate::snapshot::{Saved, SnapshotError, Writing};
use crate::state::PublishedState;
use crate::step_budget::StepBudget;

/// A decoder with its KV cache, scheduler and running sequences.
pub(crate) struct Language {
    pub name: String,
    network: Box<dyn DecoderNetwork>,
    /// The served names of its adapters, in the network's order.
    adapters: Vec<String>,
    cache: KvCache,
    scheduler: Scheduler,
    generations: HashMap<SequenceId, Generation>,
    scorings: HashMap<SequenceId, Scoring>,
    vocabulary: Vocabulary,
    limits: StepLimits,
    budget: StepBudget,
    /// Expiry times of pins.
    pins: HashMap<PinId, Instant>,
    counts: Counts,
    /// Publishes the model's state.
    watch: Arc<PublishedState>,
}

/// Totals since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    steps: u64,
    read_tokens: u64,
    written_tokens: u64,
}

/// Limits of draft tokens and masked outputs in one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepLimits {
    /// Maximum draft tokens of all sequences together.
    pub draft_tokens: usize,
    /// If a grammar allows at most this many tokens, only their logits are computed.
    pub masked_outputs: usize,
}

/// The requested logits of a sequence; none if it has NaN.
type Outcome = Option<Vec<Logits>>;

impl Language {
    #[allow(clippy::too_many_arguments, reason = "each is a part of it")]
    pub fn new(
        name: String,
        network: Box<dyn DecoderNetwork>,
        adapters: Vec<String>,
        cache: KvCache,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        limits: StepLimits,
        watch: Arc<PublishedState>,
    ) -> Language {
        debug_assert_eq!(PAGE_TOKENS, scheduler::PAGE_TOKENS);
        Language {
            name,
            network,
            adapters,
            cache,
            scheduler,
            generations: HashMap::new(),
            scorings: HashMap::new(),
            vocabulary,
            limits,
            budget: StepBudget::default(),
            pins: HashMap::new(),
            counts: Counts::default(),
            watch,
        }
    }

    /// Publishes the model's state.
    pub fn publish(&self, now: Instant) {
        let (free, cached_pages, used_pages) = self.scheduler.pages();
        let (running, waiting) = self.scheduler.queue();
        let Counts { steps, read_tokens, written_tokens } = self.counts;
        let state = ModelState {
            model: self.name.clone(),
            total_pages: free + cached_pages + used_pages,
            used_pages,
            cached_pages,
            pinned_pages: self.scheduler.pinned_pages(),
            running,
            waiting,
            steps,
            read_tokens,
            written_tokens,
            ..ModelState::default()
        };
        self.watch.publish(state, now);
    }

    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Submits a call, or refuses it at once.
    pub fn submit(&mut self, id: SequenceId, namespace: Namespace, submission: Submission) {
        let max_output_tokens = submission.limits.reply_tokens();
        let prompt = submission.prompt.clone();
        let (prompt_tokens, priority) = (prompt.len(), submission.priority);
        let workflow = Some(WorkflowId(submission.workflow.0)).filter(|workflow| workflow.0 > 0);
        let stable_tokens = submission.segments.stable_tokens();
        let generation = Generation::new(submission);
        let request = Request { id, namespace, prompt, stable_tokens, workflow, max_output_tokens, priority };
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
        self.scorings.remove(&id);
    }

    /// A workflow has issued its last call.
    pub fn close_workflow(&mut self, workflow: calls::WorkflowId) {
        self.scheduler.close_workflow(WorkflowId(workflow.0));
    }

    /// Pins the cached part of a prefix in a namespace until a time; returns its number of tokens.
    pub fn pin(&mut self, id: PinId, namespace: Namespace, prefix: &[u32], until: Instant) -> usize {
        self.pins.insert(id, until);
        self.scheduler.pin(id, namespace, prefix)
    }

    /// Releases a pinned prefix.
    pub fn unpin(&mut self, id: PinId) {
        self.pins.remove(&id);
        self.scheduler.unpin(id);
    }

    /// Releases the pins that have expired.
    pub fn end_pins(&mut self, now: Instant) {
        let over: Vec<PinId> = self.pins.iter().filter(|(_, until)| **until <= now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.unpin(id));
    }

    /// Saves the pages of the prefixes that a workflow's prompts begin with, if any of them was computed for it;
    /// returns the number of tokens.
    pub fn save_prefixes(
        &self,
        namespace: Namespace,
        workflow: calls::WorkflowId,
        identity: &str,
        path: &Path,
    ) -> Result<usize, SnapshotError> {
        let prefixes = self.scheduler.new_prefixes(namespace, WorkflowId(workflow.0));
        let (books, pages): (Vec<_>, Vec<_>) = prefixes.into_iter().unzip();
        if books.is_empty() {
            return Ok(0);
        }
        let page_bytes = KvCache::page_bytes(self.network.spec(), self.cache.precision());
        let mut writing = Writing::begin(path, identity, namespace, page_bytes, &books)?;
        let mut bytes = Vec::new();
        for page in pages {
            bytes.clear();
            self.cache.read_page(page.0 as usize, &mut bytes)?;
            writing.page(&bytes)?;
        }
        writing.end()?;
        Ok(books.len() * PAGE_TOKENS)
    }

    /// Restores saved pages into a namespace, as far as there is room; returns the number of tokens.
    pub fn load_prefixes(&mut self, namespace: Namespace, saved: &Saved) -> Result<usize, SnapshotError> {
        let cache = &self.cache;
        let fill = |index, page: PageId| cache.write_page(page.0 as usize, saved.page(index));
        Ok(self.scheduler.restore(namespace, &saved.books, fill)? * PAGE_TOKENS)
    }

    /// One step of the engine: schedule, run, sample. The step is short while replies of any model are streamed
    /// (`read`). False if there was nothing to run.
    pub fn step(&mut self, read: bool) -> bool {
        let Step { copies, work } = self.scheduler.step(self.budget.rows(read));
        if work.is_empty() {
            return false;
        }
        if let Err(reason) = catch_panic(|| self.copy_pages(&copies)) {
            // Sequences that depend on a failed copy cannot continue, and the scheduler counts the copy as done.
            let ids: Vec<SequenceId> = self.generations.keys().chain(self.scorings.keys()).copied().collect();
            ids.into_iter().for_each(|id| self.fail(id, reason.clone()));
            return true;
        }
        let max_draft_tokens = self.limits.draft_tokens / work.len();
        let started = Instant::now();
        let wanted = self.wanted(&work);
        let outcome = catch_panic(|| self.forward(&work, wanted));
        self.budget.learn(work.iter().map(|work| work.tokens.len()).sum(), started.elapsed());
        self.counts.steps += 1;
        match outcome {
            Ok(outcomes) => {
                work.iter().zip(outcomes).for_each(|(work, outcome)| self.take(work, outcome, max_draft_tokens));
            }
            Err(_) if work.len() > 1 => self.one_by_one(&work),
            Err(reason) => self.give_up(&work[0], reason),
        }
        true
    }

    /// Repeats the work of a failed step one sequence at a time until the failing one is found. Work after it may
    /// depend on it and is scheduled again.
    fn one_by_one(&mut self, all: &[Work]) {
        for (index, work) in all.iter().enumerate() {
            match catch_panic(|| self.forward(std::slice::from_ref(work), Vec::new())) {
                Ok(outcomes) => outcomes.into_iter().for_each(|outcome| self.take(work, outcome, 0)),
                Err(reason) => {
                    all[index + 1..].iter().for_each(|work| self.scheduler.abandon(work));
                    return self.give_up(work, reason);
                }
            }
        }
    }

    /// Processes the result of a sequence, unless it has NaN.
    fn take(&mut self, work: &Work, outcome: Outcome, max_draft_tokens: usize) {
        match outcome {
            Some(rows) => {
                self.counts.read_tokens += self.prompt_tokens_of(work);
                self.scheduler.commit(work);
                self.write_on(work, rows, max_draft_tokens);
            }
            None => self.give_up(work, "the forward pass produced NaN".into()),
        }
    }

    /// Number of prompt tokens in this work.
    fn prompt_tokens_of(&self, work: &Work) -> u64 {
        let prompt_tokens = self.scheduler.usage(work.sequence).map_or(0, |usage| usage.prompt_tokens);
        (work.tokens.len() - work.drafted).min(prompt_tokens.saturating_sub(work.start)) as u64
    }

    /// Ends a sequence whose work failed; its pages are never read.
    fn give_up(&mut self, work: &Work, reason: String) {
        self.scheduler.abandon(work);
        self.fail(work.sequence, reason);
    }

    /// True if a reply is being streamed.
    pub fn is_read(&self) -> bool {
        self.generations.values().any(Generation::is_read)
    }

    fn copy_pages(&self, copies: &[PageCopy]) -> models::Result<()> {
        copies.iter().try_for_each(|copy| self.cache.copy_page(copy.from.0 as usize, copy.to.0 as usize))
    }

    /// The requests for each row of logits. A grammar's failure is reported when the reply is continued.
    fn wanted(&mut self, work: &[Work]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for work in work.iter().filter(|work| work.wants_logits) {
            let draft = &work.tokens[work.tokens.len() - work.drafted..];
            if let Some(scoring) = self.scorings.get(&work.sequence) {
                wanted.extend(scoring.wanted(work.logit_rows()));
                continue;
            }
            let generation = self.generations.get_mut(&work.sequence);
            let most = self.limits.masked_outputs;
            let rows = generation.map(|generation| catch_panic(|| generation.wanted(draft, most, &self.vocabulary)));
            let all = || (0..=work.drafted).map(|_| Wanted::default()).collect();
            wanted.extend(rows.and_then(Result::ok).unwrap_or_else(all));
        }
        wanted
    }

    /// Runs the forward pass; one outcome per sequence.
    fn forward(&self, work: &[Work], mut wanted: Vec<Wanted>) -> models::Result<Vec<Outcome>> {
        let rows = Rows::of(work);
        wanted.resize_with(rows.wanted.len(), Wanted::default);
        let outputs: Vec<Option<Vec<u32>>> = wanted.iter_mut().map(|wanted| wanted.outputs.take()).collect();
        let sequences = rows.sequences(work);
        let batch = Batch {
            tokens: &rows.tokens,
            positions: &rows.positions,
            slots: &rows.slots,
            sequences: &sequences,
            logit_rows: &rows.wanted,
            wanted: &outputs,
        };
        let mut output = self.network.forward_adapted(batch, &self.adapted(work, &sequences), &self.cache)?;
        let mut logits = logits::read(&mut output, &wanted)?.into_iter();
        let outcome = |(work, sequence): (&Work, &PagedSequence<'_>)| {
            let rows: Vec<Option<Logits>> = logits.by_ref().take(work.logit_rows()).collect();
            let finite = output.finite[sequence.rows.clone()].iter().all(|finite| *finite);
            rows.into_iter().collect::<Outcome>().filter(|_| finite)
        };
        Ok(work.iter().zip(&sequences).map(outcome).collect())
    }

    /// The rows of each adapter that is used in a step.
    fn adapted(&self, work: &[Work], sequences: &[PagedSequence<'_>]) -> Vec<AdaptedRows> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); self.adapters.len()];
        for (work, sequence) in work.iter().zip(sequences) {
            if let Some(adapter) = self.adapter_of(work.sequence) {
                rows[adapter].extend(sequence.rows.clone().map(to_u32));
            }
        }
        let used = rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        used.map(|(adapter, rows)| AdaptedRows { adapter, rows }).collect()
    }

    fn adapter_of(&self, id: SequenceId) -> Option<usize> {
        match self.generations.get(&id) {
            Some(generation) => generation.adapter,
            None => self.scorings.get(&id).and_then(|scoring| scoring.job.adapter),
        }
    }

    /// Samples the next token of a sequence, and one more for each accepted draft token.
    fn write_on(&mut self, work: &Work, rows: Vec<Logits>, max_draft_tokens: usize) {
        let id = work.sequence;
        if self.scorings.contains_key(&id) {
            return self.read_on(work, &rows);
        }
        let Some(generation) = self.generations.get_mut(&id).filter(|_| work.wants_logits) else { return };
        if generation.is_abandoned() {
            self.cancel(id);
            return;
        }
        let draft = &work.tokens[work.tokens.len() - work.drafted..];
        for (row, logits) in rows.into_iter().enumerate() {
            let before = generation.written_tokens();
            let next = catch_panic(|| generation.next(logits, &self.vocabulary));
            self.counts.written_tokens += (generation.written_tokens() - before) as u64;
            match next {
                Ok(Next::Token(token)) => {
                    self.scheduler.append(id, token);
                    if draft.get(row) != Some(&token) {
                        generation.learn(row, work.drafted);
                        break;
                    }
                }
                Ok(Next::Border(token)) => {
                    self.scheduler.append(id, token);
                    break;
                }
                Ok(Next::End(finish)) => return self.end(id, finish),
                Err(reason) => return self.fail(id, reason),
            }
        }
        match catch_panic(|| Ok::<_, String>(generation.draft(max_draft_tokens))) {
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
        let usage = self.scheduler.usage(id);
        self.scheduler.finish(id);
        if let (Some(generation), Some(usage)) = (self.generations.remove(&id), usage) {
            let (prompt_tokens, cached_tokens) = (usage.prompt_tokens, usage.cached_tokens);
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

/// The caller's error for a refusal of the scheduler.
fn refused(refusal: Refusal, step: &'static str, prompt_tokens: usize, max_output_tokens: usize) -> CallError {
    match refusal {
        Refusal::Overloaded { waiting } => CallError::Overloaded { queued: waiting },
        Refusal::NeverFits { total_pages, .. } => {
            let context_tokens = total_pages * PAGE_TOKENS;
            CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens }
        }
        Refusal::EmptyPrompt => CallError::Failed { step, reason: "the prompt is empty".into() },
    }
}

/// The rows of a step, concatenated.
#[derive(Default)]
struct Rows {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    slots: Vec<u32>,
    wanted: Vec<u32>,
    pages: Vec<Vec<u32>>,
}

impl Rows {
    fn of(work: &[Work]) -> Rows {
        let mut rows = Rows::default();
        for work in work {
            let pages: Vec<u32> = work.pages.iter().map(|page| page.0).collect();
            for position in work.start..work.start + work.tokens.len() {
                rows.positions.push(to_u32(position));
                rows.slots.push(pages[position / PAGE_TOKENS] * to_u32(PAGE_TOKENS) + to_u32(position % PAGE_TOKENS));
            }
            rows.tokens.extend(&work.tokens);
            rows.pages.push(pages);
            rows.wanted.extend((rows.tokens.len() - work.logit_rows()..rows.tokens.len()).map(to_u32));
        }
        rows
    }

    fn sequences(&self, work: &[Work]) -> Vec<PagedSequence<'_>> {
        let mut start = 0;
        work.iter()
            .zip(&self.pages)
            .map(|(work, pages)| {
                let rows = start..start + work.tokens.len();
                start = rows.end;
                PagedSequence { rows, past: work.start, pages }
            })
            .collect()
    }
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).expect("positions and slots are far below 2^32")
}
