//! What the results of a step mean for its sequences: each continues, ends or fails.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use calls::{CallError, Finish, Usage};
use scheduler::{SequenceId, Work};

use super::{ModelRunner, NOT_A_NUMBER, Ran};
use crate::catch_panic::catch_panic;
use crate::format_threads::FormatJob;
use crate::generation::{Advance, Generation, Next, StepRows};
use crate::logits::Logits;
use crate::step_limits::DraftLimits;

impl ModelRunner {
    /// Samples the next tokens of all sequences that ran.
    pub(super) fn sample(&mut self, work: &[Work], ran: Ran) {
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

    /// Appends the next tokens of a reply to its sequence.
    pub(super) fn append(&mut self, id: SequenceId, Advance { next, written_tokens, draft }: Advance) {
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
            match scoring.read(logits) {
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
