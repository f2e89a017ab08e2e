//! One language model at work: its pages, its queue, its answers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use calls::{CallError, Finish, ModelState, Usage};
use models::{Batch, Decoder, KvCache, PAGE_TOKENS, PagedSequence};
use scheduler::{Namespace, PageCopy, PageId, PinId, Refusal, Request, Scheduler, SequenceId, Step, Work, WorkflowId};

use crate::generation::{Generation, Next, Submission, Vocabulary};
use crate::guarded::guarded;
use crate::handle::level;
use crate::logits::{self, Logits, Wanted};
use crate::pace::Pace;
use crate::scoring::{ScoreJob, Scoring};
use crate::snapshot::{Saved, SnapshotError, Writing};
use crate::watch::Watch;

/// A decoder and everything that is going on in it.
pub(crate) struct Language {
    pub name: String,
    network: Decoder,
    cache: KvCache,
    scheduler: Scheduler,
    generations: HashMap<SequenceId, Generation>,
    scorings: HashMap<SequenceId, Scoring>,
    vocabulary: Vocabulary,
    limits: StepLimits,
    pace: Pace,
    /// When pins end.
    pins: HashMap<PinId, Instant>,
    counts: Counts,
    /// Where others learn how it is doing.
    watch: Arc<Watch>,
}

/// What has been done so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    steps: u64,
    read_tokens: u64,
    written_tokens: u64,
}

/// What one step may do ahead, and what it may leave out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepLimits {
    /// Guesses, of all sequences together.
    pub guesses: usize,
    /// Where a form allows at most so many tokens, only their logits are computed.
    pub masked_outputs: usize,
}

/// The logits that a sequence wanted; none if its values are no numbers.
type Outcome = Option<Vec<Logits>>;

impl Language {
    pub fn new(
        name: String,
        network: Decoder,
        cache: KvCache,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        limits: StepLimits,
        watch: Arc<Watch>,
    ) -> Language {
        debug_assert_eq!(PAGE_TOKENS, scheduler::PAGE_TOKENS);
        Language {
            name,
            network,
            cache,
            scheduler,
            generations: HashMap::new(),
            scorings: HashMap::new(),
            vocabulary,
            limits,
            pace: Pace::default(),
            pins: HashMap::new(),
            counts: Counts::default(),
            watch,
        }
    }

    /// Tells whoever watches how it is doing.
    pub fn tell(&self, now: Instant) {
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
        self.watch.tell(state, now);
    }

    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Takes a call, or refuses it at once.
    pub fn submit(&mut self, id: SequenceId, namespace: Namespace, submission: Submission) {
        let max_output_tokens = submission.limits.reply_tokens();
        let prompt = submission.prompt.clone();
        let (prompt_tokens, lane) = (prompt.len(), submission.lane);
        let workflow = Some(WorkflowId(submission.workflow.0)).filter(|workflow| workflow.0 > 0);
        let stable_tokens = submission.segments.stable_tokens();
        let generation = Generation::new(submission);
        let request = Request { id, namespace, prompt, stable_tokens, workflow, max_output_tokens, lane };
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

    /// Takes tokens to be read, or refuses them at once.
    pub fn submit_score(&mut self, id: SequenceId, job: ScoreJob) {
        let (prompt, stable_tokens, lane) = (job.prompt.clone(), job.stable_tokens, level(job.lane));
        let workflow = Some(WorkflowId(job.workflow.0)).filter(|workflow| workflow.0 > 0);
        let (prompt_tokens, max_output_tokens) = (prompt.len(), job.forced.len());
        match self.scheduler.submit(Request {
            id,
            namespace: job.namespace,
            prompt,
            stable_tokens,
            workflow,
            max_output_tokens,
            lane,
        }) {
            Ok(()) => drop(self.scorings.insert(id, Scoring::new(job))),
            Err(refusal) => {
                let error = refused(refusal, job.step, prompt_tokens, max_output_tokens);
                let _ = job.reply.send(Err(error));
            }
        }
    }

    /// Gives a call up.
    pub fn cancel(&mut self, id: SequenceId) {
        self.scheduler.finish(id);
        if let Some(generation) = self.generations.remove(&id) {
            let _ = generation.reply.send(Err(CallError::Cancelled));
        }
        self.scorings.remove(&id);
    }

    /// A workflow has made its last call.
    pub fn close_workflow(&mut self, workflow: calls::WorkflowId) {
        self.scheduler.close_workflow(WorkflowId(workflow.0));
    }

    /// Keeps what is cached of a prefix in a namespace, until a time; says of how many tokens.
    pub fn pin(&mut self, id: PinId, namespace: Namespace, prefix: &[u32], until: Instant) -> usize {
        self.pins.insert(id, until);
        self.scheduler.pin(id, namespace, prefix)
    }

    /// Lets a prefix go.
    pub fn unpin(&mut self, id: PinId) {
        self.pins.remove(&id);
        self.scheduler.unpin(id);
    }

    /// Lets those prefixes go whose time is over.
    pub fn end_pins(&mut self, now: Instant) {
        let over: Vec<PinId> = self.pins.iter().filter(|(_, until)| **until <= now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.unpin(id));
    }

    /// Saves the pages of what the prompts of a workflow have begun with, if any of them was computed for it; says of how many
    /// tokens.
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

    /// Brings saved pages back to a namespace, as far as there is room; says of how many tokens.
    pub fn load_prefixes(&mut self, namespace: Namespace, saved: &Saved) -> Result<usize, SnapshotError> {
        let cache = &self.cache;
        let fill = |index, page: PageId| cache.write_page(page.0 as usize, saved.page(index));
        Ok(self.scheduler.restore(namespace, &saved.books, fill)? * PAGE_TOKENS)
    }

    /// Schedule, run, sample: everything that an engine does; a short step if somebody reads, this model's answers or
    /// another's. False if there was nothing to run.
    pub fn step(&mut self, read: bool) -> bool {
        let Step { copies, work } = self.scheduler.step(self.pace.rows(read));
        if work.is_empty() {
            return false;
        }
        if let Err(reason) = guarded(|| self.copy_pages(&copies)) {
            // Whoever was to go on from a copy has none, and the books count it as made.
            let ids: Vec<SequenceId> = self.generations.keys().chain(self.scorings.keys()).copied().collect();
            ids.into_iter().for_each(|id| self.fail(id, reason.clone()));
            return true;
        }
        let most_guesses = self.limits.guesses / work.len();
        let started = Instant::now();
        let wanted = self.wanted(&work);
        let outcome = guarded(|| self.forward(&work, wanted));
        self.pace.learn(work.iter().map(|work| work.tokens.len()).sum(), started.elapsed());
        self.counts.steps += 1;
        match outcome {
            Ok(outcomes) => {
                work.iter().zip(outcomes).for_each(|(work, outcome)| self.take(work, outcome, most_guesses));
            }
            Err(_) if work.len() > 1 => self.one_by_one(&work),
            Err(reason) => self.give_up(&work[0], reason),
        }
        true
    }

    /// Runs the work of a failed step again, each by itself, until the one at fault is found. What comes after it may have
    /// relied on it and is planned anew.
    fn one_by_one(&mut self, all: &[Work]) {
        for (index, work) in all.iter().enumerate() {
            match guarded(|| self.forward(std::slice::from_ref(work), Vec::new())) {
                Ok(outcomes) => outcomes.into_iter().for_each(|outcome| self.take(work, outcome, 0)),
                Err(reason) => {
                    all[index + 1..].iter().for_each(|work| self.scheduler.abandon(work));
                    return self.give_up(work, reason);
                }
            }
        }
    }

    /// Takes in what was computed of a sequence, if it is numbers.
    fn take(&mut self, work: &Work, outcome: Outcome, most_guesses: usize) {
        match outcome {
            Some(rows) => {
                self.counts.read_tokens += self.prompt_tokens_of(work);
                self.scheduler.commit(work);
                self.write_on(work, rows, most_guesses);
            }
            None => self.give_up(work, "the computation gave values that are no numbers".into()),
        }
    }

    /// Tokens of the prompt among those of a work.
    fn prompt_tokens_of(&self, work: &Work) -> u64 {
        let prompt_tokens = self.scheduler.usage(work.sequence).map_or(0, |usage| usage.prompt_tokens);
        (work.tokens.len() - work.guessed).min(prompt_tokens.saturating_sub(work.start)) as u64
    }

    /// Ends a sequence whose work failed; nobody reads its pages.
    fn give_up(&mut self, work: &Work, reason: String) {
        self.scheduler.abandon(work);
        self.fail(work.sequence, reason);
    }

    /// True if an answer is being written that somebody waits for.
    pub fn is_read(&self) -> bool {
        self.generations.values().any(Generation::is_read)
    }

    fn copy_pages(&self, copies: &[PageCopy]) -> models::Result<()> {
        copies.iter().try_for_each(|copy| self.cache.copy_page(copy.from.0 as usize, copy.to.0 as usize))
    }

    /// What each row of logits is wanted for. A form that breaks is found out when its answer is written on.
    fn wanted(&mut self, work: &[Work]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for work in work.iter().filter(|work| work.wants_logits) {
            let guesses = &work.tokens[work.tokens.len() - work.guessed..];
            if let Some(scoring) = self.scorings.get(&work.sequence) {
                wanted.extend(scoring.wanted(work.logit_rows()));
                continue;
            }
            let generation = self.generations.get_mut(&work.sequence);
            let most = self.limits.masked_outputs;
            let rows = generation.map(|generation| guarded(|| generation.wanted(guesses, most, &self.vocabulary)));
            let all = || (0..=work.guessed).map(|_| Wanted::default()).collect();
            wanted.extend(rows.and_then(Result::ok).unwrap_or_else(all));
        }
        wanted
    }

    /// What becomes of each work.
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
        let output = self.network.forward(batch, &self.cache)?;
        let mut logits = logits::read(&output, &wanted)?.into_iter();
        let outcome = |(work, sequence): (&Work, &PagedSequence<'_>)| {
            let rows: Vec<Option<Logits>> = logits.by_ref().take(work.logit_rows()).collect();
            let sound = output.sound[sequence.rows.clone()].iter().all(|sound| *sound);
            rows.into_iter().collect::<Outcome>().filter(|_| sound)
        };
        Ok(work.iter().zip(&sequences).map(outcome).collect())
    }

    /// Draws the next token of a sequence, and one more for each guess that turns out right.
    fn write_on(&mut self, work: &Work, rows: Vec<Logits>, most_guesses: usize) {
        let id = work.sequence;
        if self.scorings.contains_key(&id) {
            return self.read_on(work, &rows);
        }
        let Some(generation) = self.generations.get_mut(&id).filter(|_| work.wants_logits) else { return };
        if generation.is_abandoned() {
            self.cancel(id);
            return;
        }
        let guesses = &work.tokens[work.tokens.len() - work.guessed..];
        for (row, logits) in rows.into_iter().enumerate() {
            let before = generation.written_tokens();
            let next = guarded(|| generation.next(logits, &self.vocabulary));
            self.counts.written_tokens += (generation.written_tokens() - before) as u64;
            match next {
                Ok(Next::Token(token)) => {
                    self.scheduler.append(id, token);
                    if guesses.get(row) != Some(&token) {
                        generation.learn(row, work.guessed);
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
        match guarded(|| Ok::<_, String>(generation.guesses(most_guesses))) {
            Ok(guesses) => self.scheduler.guess(id, &guesses),
            Err(reason) => self.fail(id, reason),
        }
    }

    /// Takes in what rows say of the tokens that a sequence is read for, and names the tokens that follow.
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
        // Known tokens are guesses that are always right.
        self.scheduler.guess(id, scoring.ahead());
    }

    fn end(&mut self, id: SequenceId, finish: Finish) {
        let usage = self.scheduler.usage(id);
        self.scheduler.finish(id);
        if let (Some(generation), Some(usage)) = (self.generations.remove(&id), usage) {
            let (prompt_tokens, cached_tokens) = (usage.prompt_tokens, usage.cached_tokens);
            let usage = Usage { prompt_tokens, cached_tokens, ..Usage::default() };
            generation.answer(finish, usage, &self.name);
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

/// Why the scheduler does not take a request, in words for the caller.
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

/// The rows of a step, end to end.
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
