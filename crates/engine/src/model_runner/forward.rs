//! The forward pass of a step: all sequences as one ragged batch.

use models::{AdaptedRows, Batch, PAGE_TOKENS, PagedSequence};
use scheduler::{SequenceId, Work};

use super::{ModelRunner, Outcome};
use crate::logits::{self, Logits, Wanted};

impl ModelRunner {
    /// The requests for each row of logits.
    pub(super) fn wanted(&mut self, work: &[Work]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for work in work.iter().filter(|work| work.wants_logits) {
            let draft = &work.tokens[work.tokens.len() - work.drafted..];
            if let Some(scoring) = self.scorings.get(&work.sequence) {
                wanted.extend(scoring.wanted(work.logit_rows()));
                continue;
            }
            let (generation, most) = (self.generations.get_mut(&work.sequence), self.limits.masked_outputs);
            let rows = generation.map(|generation| generation.wanted(draft, most, &self.vocabulary));
            wanted.extend(rows.unwrap_or_else(|| vec![Wanted::default(); work.logit_rows()]));
        }
        wanted
    }

    /// Runs the forward pass; one outcome per sequence.
    pub(super) fn forward(&self, work: &[Work], mut wanted: Vec<Wanted>) -> models::Result<Vec<Outcome>> {
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
        let mut logits = logits::read(&mut output, &wanted, &self.vocabulary.padding)?.into_iter();
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
