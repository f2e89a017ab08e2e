//! Lexical search: BM25 as Lucene computes it, in memory.
//!
//! score(q, d) = sum over the words t of q of idf(t) * tf / (tf + k1 * (1 - b + b * length / mean length)), with idf(t)
//! = ln(1 + (N - df + 0.5) / (df + 0.5)). As in Lucene since version 8 the constant factor k1 + 1 is left out, and N
//! and the mean count only passages that have terms. Unlike Lucene, lengths are exact, not rounded to one byte.
//!
//! Useful for: names, numbers, rare words, any corpus that fits in memory as postings (8 bytes for each different word
//! of each passage). Not useful for: paraphrases, other languages than the text's own.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::hit::best;
use crate::{Corpus, Hit, IndexText, Layer, PassageId, Result, analyze};

/// The two parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// Saturation of term frequency.
    pub k1: f32,
    /// Strength of length normalisation, 0 to 1.
    pub b: f32,
}

impl Default for Bm25 {
    /// Pyserini's defaults, which GAM uses.
    fn default() -> Self {
        Self { k1: 0.9, b: 0.4 }
    }
}

/// An inverted index over a set of passages.
#[derive(Debug)]
pub struct LexicalIndex {
    passages: Vec<PassageId>,
    /// k1 * (1 - b + b * length / mean length) of each passage.
    penalties: Vec<f64>,
    /// Number of passages with at least one term.
    filled: usize,
    terms: HashMap<String, u32>,
    /// The start of each term's postings, followed by the end of the last ones.
    starts: Vec<usize>,
    postings: Vec<Posting>,
}

/// The occurrence of one term in one passage.
#[derive(Clone, Copy, Debug, Default)]
struct Posting {
    /// The index of the passage in `LexicalIndex::passages`.
    slot: u32,
    frequency: u32,
}

impl LexicalIndex {
    /// Indexes all passages of a layer.
    ///
    /// # Errors
    /// Errors of reading the corpus.
    pub fn open(corpus: &Corpus, layer: Layer, text: IndexText<'_>, parameters: Bm25) -> Result<Self> {
        let mut builder = Builder::default();
        corpus.each_index_text(layer, text, |passage, text| builder.add(passage, text))?;
        Ok(builder.finish(parameters))
    }

    /// Indexes the texts given.
    pub fn build<'a>(texts: impl IntoIterator<Item = (PassageId, &'a str)>, parameters: Bm25) -> Self {
        let mut builder = Builder::default();
        for (passage, text) in texts {
            builder.add(passage, text);
        }
        builder.finish(parameters)
    }

    /// The `k` passages with the highest scores for the words of `query`; only passages with at least one of them.
    /// Repeated query words count each time.
    pub fn search(&self, query: &str, k: usize) -> Vec<Hit> {
        best(self.hits(query).collect(), k)
    }

    /// The same for some passages only, with the scores of the whole index.
    pub fn search_among(&self, query: &str, k: usize, among: &BTreeSet<PassageId>) -> Vec<Hit> {
        best(self.hits(query).filter(|hit| among.contains(&hit.passage)).collect(), k)
    }

    // Scores are summed in f64 and returned in f32.
    fn hits(&self, query: &str) -> impl Iterator<Item = Hit> {
        let mut scores = vec![0.0_f64; self.passages.len()];
        for term in analyze(query) {
            let postings = &self.postings[self.range(&term)];
            let idf = self.idf(postings.len());
            for posting in postings {
                let slot = posting.slot as usize;
                let frequency = f64::from(posting.frequency);
                scores[slot] += idf * frequency / (frequency + self.penalties[slot]);
            }
        }
        let matching = scores.into_iter().zip(&self.passages).filter(|(score, _)| *score > 0.0);
        matching.map(|(score, passage)| Hit { passage: *passage, score: score as f32 })
    }

    fn range(&self, term: &str) -> Range<usize> {
        self.terms.get(term).map_or(0..0, |term| {
            let term = *term as usize;
            self.starts[term]..self.starts[term + 1]
        })
    }

    // Numbers of passages are far below 2^52.
    fn idf(&self, passages_with_term: usize) -> f64 {
        let (all, with) = (self.filled as f64, passages_with_term as f64);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

/// An index under construction.
#[derive(Default)]
struct Builder {
    passages: Vec<PassageId>,
    lengths: Vec<u32>,
    terms: HashMap<String, u32>,
    /// In the order of the passages; sorted by term at the end.
    entries: Vec<(u32, Posting)>,
}

impl Builder {
    fn add(&mut self, passage: PassageId, text: &str) {
        let slot = narrow(self.passages.len());
        let mut terms: Vec<u32> = analyze(text).into_iter().map(|term| self.number(term)).collect();
        self.passages.push(passage);
        self.lengths.push(narrow(terms.len()));
        terms.sort_unstable();
        for same in terms.chunk_by(u32::eq) {
            self.entries.push((same[0], Posting { slot, frequency: narrow(same.len()) }));
        }
    }

    fn number(&mut self, term: String) -> u32 {
        let next = narrow(self.terms.len());
        *self.terms.entry(term).or_insert(next)
    }

    fn finish(self, parameters: Bm25) -> LexicalIndex {
        let mut starts = vec![0; self.terms.len() + 1];
        for (term, _) in &self.entries {
            starts[*term as usize + 1] += 1;
        }
        for term in 0..self.terms.len() {
            starts[term + 1] += starts[term];
        }
        let mut next = starts.clone();
        let mut postings = vec![Posting::default(); self.entries.len()];
        for (term, posting) in self.entries {
            let place = &mut next[term as usize];
            postings[*place] = posting;
            *place += 1;
        }
        let filled = self.lengths.iter().filter(|length| **length > 0).count();
        let penalties = penalties(&self.lengths, filled, parameters);
        LexicalIndex { passages: self.passages, penalties, filled, terms: self.terms, starts, postings }
    }
}

// Counts are far below 2^52.
fn penalties(lengths: &[u32], filled: usize, Bm25 { k1, b }: Bm25) -> Vec<f64> {
    let (k1, b) = (f64::from(k1), f64::from(b));
    let total: f64 = lengths.iter().copied().map(f64::from).sum();
    let mean = total / filled.max(1) as f64;
    lengths.iter().map(|length| k1 * (1.0 - b + b * f64::from(*length) / mean)).collect()
}

/// Slots, terms and frequencies have 32 bits, which is more than an index in memory can reach.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("an index has fewer than 2^32 passages, terms and words in a passage")
}
