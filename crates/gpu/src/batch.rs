//! Batches made for checks and measurements: given numbers of sequences, of tokens before the batch and in it.

use anyhow::Result;
use candle_core::Tensor;
use models::{Batch, Decoder, KvCache, PAGE_TOKENS, PagedSequence};

/// Sequences end to end, and the pages that they own.
#[derive(Debug)]
pub struct Sequences {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    slots: Vec<u32>,
    wanted: Vec<u32>,
    spans: Vec<(usize, usize)>,
    lists: Vec<Vec<u32>>,
}

impl Sequences {
    /// For each sequence its tokens, of which the first `past` are cached already, and its pages.
    pub fn new(sequences: &[(Vec<u32>, usize, Vec<u32>)]) -> Sequences {
        let mut all = Sequences {
            tokens: Vec::new(),
            positions: Vec::new(),
            slots: Vec::new(),
            wanted: Vec::new(),
            spans: Vec::new(),
            lists: Vec::new(),
        };
        for (tokens, past, pages) in sequences {
            for (position, token) in tokens.iter().enumerate().skip(*past) {
                all.tokens.push(*token);
                all.positions.push(position as u32);
                all.slots.push(pages[position / PAGE_TOKENS] * PAGE_TOKENS as u32 + (position % PAGE_TOKENS) as u32);
            }
            all.wanted.push(all.tokens.len() as u32 - 1);
            all.spans.push((*past, tokens.len() - past));
            all.lists.push(pages.clone());
        }
        all
    }

    /// Logits of each sequence's last token.
    pub fn run(&self, network: &Decoder, cache: &KvCache) -> Result<Tensor> {
        self.forward(network, cache, &self.wanted)
    }

    /// Keys and values alone, as for a chunk of a prompt that is not its last; the logits of no row.
    pub fn run_silently(&self, network: &Decoder, cache: &KvCache) -> Result<Tensor> {
        self.forward(network, cache, &[])
    }

    fn forward(&self, network: &Decoder, cache: &KvCache, logit_rows: &[u32]) -> Result<Tensor> {
        let mut start = 0;
        let parts = self.spans.iter().zip(&self.lists);
        let sequences: Vec<PagedSequence<'_>> = parts
            .map(|((past, tokens), pages)| {
                start += tokens;
                PagedSequence { rows: start - tokens..start, past: *past, pages }
            })
            .collect();
        let output = network.forward(
            Batch {
                tokens: &self.tokens,
                positions: &self.positions,
                slots: &self.slots,
                sequences: &sequences,
                logit_rows,
                wanted: &[],
            },
            cache,
        )?;
        anyhow::ensure!(output.finite.iter().all(|finite| *finite), "the hidden states are not numbers");
        Ok(output.logits)
    }
}

/// Tokens that look like nothing in particular.
pub fn tokens(seed: usize, count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count).map(|i| ((i + seed * 7919) * 2_654_435_761 % vocabulary) as u32).collect()
}

/// Pages in order from `first` on, enough for `tokens` tokens.
pub fn pages(first: usize, tokens: usize) -> Vec<u32> {
    (first..first + tokens.div_ceil(PAGE_TOKENS)).map(|page| page as u32).collect()
}
