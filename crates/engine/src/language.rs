//! One language model at work: its pages, its queue, its answers.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use calls::{CallError, Usage};
use models::{Batch, Decoder, KvCache, PAGE_TOKENS, PagedSequence};
use scheduler::{Refusal, Request, Scheduler, SequenceId, Step, Work};

use crate::generation::{Generation, Next, Submission, Vocabulary};

/// A decoder and everything that is going on in it.
pub(crate) struct Language {
    pub name: String,
    network: Decoder,
    cache: KvCache,
    scheduler: Scheduler,
    generations: HashMap<SequenceId, Generation>,
    vocabulary: Vocabulary,
}

impl Language {
    pub fn new(
        name: String,
        network: Decoder,
        cache: KvCache,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
    ) -> Language {
        debug_assert_eq!(PAGE_TOKENS, scheduler::PAGE_TOKENS);
        Language { name, network, cache, scheduler, generations: HashMap::new(), vocabulary }
    }

    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Takes a call, or refuses it at once.
    pub fn submit(&mut self, id: SequenceId, submission: Submission) {
        let max_output_tokens = submission.limits.max_output_tokens;
        let (generation, prompt, lane) = Generation::new(submission);
        let prompt_tokens = prompt.len();
        match self.scheduler.submit(Request { id, prompt, max_output_tokens, lane }) {
            Ok(()) => {
                self.generations.insert(id, generation);
            }
            Err(refusal) => {
                let step = generation.step;
                let _ = generation.reply.send(Err(match refusal {
                    Refusal::Overloaded { waiting } => CallError::Overloaded { queued: waiting },
                    Refusal::NeverFits { total_pages, .. } => {
                        let context_tokens = total_pages * PAGE_TOKENS;
                        CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens }
                    }
                    Refusal::EmptyPrompt => CallError::Failed { step, reason: "the prompt is empty".into() },
                }));
            }
        }
    }

    /// Gives a call up.
    pub fn cancel(&mut self, id: SequenceId) {
        self.scheduler.finish(id);
        if let Some(generation) = self.generations.remove(&id) {
            let _ = generation.reply.send(Err(CallError::Cancelled));
        }
    }

    /// Schedule, run, sample: everything that an engine does.
    pub fn step(&mut self) {
        let step = self.scheduler.step();
        if step.work.is_empty() {
            return;
        }
        match self.forward(&step) {
            Ok(mut logits) => {
                self.scheduler.commit(&step);
                let sampled = step.work.iter().filter(|work| work.wants_logits);
                sampled.zip(&mut logits).for_each(|(work, logits)| self.sample(work.sequence, logits));
            }
            Err(reason) => {
                self.scheduler.abandon(&step);
                step.work.iter().for_each(|work| self.fail(work.sequence, reason.clone()));
            }
        }
    }

    /// The logits of every work that wants them. A panic in a kernel ends the step, not the process.
    fn forward(&self, step: &Step) -> Result<Vec<Vec<f32>>, String> {
        let forward = || -> models::Result<Vec<Vec<f32>>> {
            for copy in &step.copies {
                self.cache.copy_page(copy.from.0 as usize, copy.to.0 as usize)?;
            }
            let rows = Rows::of(&step.work);
            let sequences = rows.sequences(&step.work);
            let batch = Batch {
                tokens: &rows.tokens,
                positions: &rows.positions,
                slots: &rows.slots,
                sequences: &sequences,
                logit_rows: &rows.wanted,
            };
            Ok(self.network.forward(batch, &self.cache)?.to_vec2::<f32>()?)
        };
        match catch_unwind(AssertUnwindSafe(forward)) {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Err(format!("the computation panicked: {}", text.unwrap_or_default()))
            }
        }
    }

    fn sample(&mut self, id: SequenceId, logits: &mut [f32]) {
        let Some(generation) = self.generations.get_mut(&id) else { return };
        if generation.is_abandoned() {
            self.cancel(id);
            return;
        }
        match generation.next(logits, &self.vocabulary) {
            Ok(Next::Token(token)) => self.scheduler.append(id, token),
            Ok(Next::End(finish)) => {
                let usage = self.scheduler.usage(id);
                self.scheduler.finish(id);
                if let (Some(generation), Some(usage)) = (self.generations.remove(&id), usage) {
                    let (prompt_tokens, cached_tokens) = (usage.prompt_tokens, usage.cached_tokens);
                    generation.answer(finish, Usage { prompt_tokens, cached_tokens, ..Usage::default() }, &self.name);
                }
            }
            Err(reason) => self.fail(id, reason),
        }
    }

    fn fail(&mut self, id: SequenceId, reason: String) {
        self.scheduler.finish(id);
        if let Some(generation) = self.generations.remove(&id) {
            let step = generation.step;
            let _ = generation.reply.send(Err(CallError::Failed { step, reason }));
        }
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
            if work.wants_logits {
                rows.wanted.push(to_u32(rows.tokens.len() - 1));
            }
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
