//! One field of an index: the postings of its texts, and their scores.

use std::collections::HashMap;
use std::ops::Range;

use super::Bm25;
use crate::analyze;

/// An inverted index over texts, which are numbered from 0 in the order in which they were added.
#[derive(Debug)]
pub(super) struct Field {
    /// k1 * (1 - b + b * length / mean length) of each text.
    penalties: Vec<f64>,
    /// Number of texts with at least one term.
    filled: usize,
    terms: HashMap<String, u32>,
    /// The start of each term's postings, followed by the end of the last ones.
    starts: Vec<usize>,
    postings: Vec<Posting>,
}

/// The occurrence of one term in one text.
#[derive(Clone, Copy, Debug, Default)]
struct Posting {
    text: u32,
    frequency: u32,
}

impl Field {
    /// The score of every text for the words of `query`; 0 for a text with none of them.
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let mut scores = vec![0.0; self.penalties.len()];
        for term in analyze(query) {
            let postings = &self.postings[self.range(&term)];
            let idf = self.idf(postings.len());
            for Posting { text, frequency } in postings {
                let (text, frequency) = (*text as usize, f64::from(*frequency));
                scores[text] += idf * frequency / (frequency + self.penalties[text]);
            }
        }
        scores
    }

    fn range(&self, term: &str) -> Range<usize> {
        self.terms.get(term).map_or(0..0, |term| {
            let term = *term as usize;
            self.starts[term]..self.starts[term + 1]
        })
    }

    // Numbers of texts are far below 2^52.
    fn idf(&self, texts_with_term: usize) -> f64 {
        let (all, with) = (self.filled as f64, texts_with_term as f64);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

/// A field under construction.
#[derive(Default)]
pub(super) struct Builder {
    lengths: Vec<u32>,
    terms: HashMap<String, u32>,
    /// In the order of the texts; sorted by term at the end.
    entries: Vec<(u32, Posting)>,
}

impl Builder {
    /// The number of texts that were added.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn add(&mut self, text: &str) {
        let number = narrow(self.len());
        let mut terms: Vec<u32> = analyze(text).into_iter().map(|term| self.number(term)).collect();
        self.lengths.push(narrow(terms.len()));
        terms.sort_unstable();
        for same in terms.chunk_by(u32::eq) {
            self.entries.push((same[0], Posting { text: number, frequency: narrow(same.len()) }));
        }
    }

    fn number(&mut self, term: String) -> u32 {
        let next = narrow(self.terms.len());
        *self.terms.entry(term).or_insert(next)
    }

    /// The same without the terms that all texts have, which tell none apart.
    pub fn without_common_terms(mut self) -> Builder {
        let mut texts_with_term = vec![0; self.terms.len()];
        self.entries.iter().for_each(|(term, _)| texts_with_term[*term as usize] += 1);
        let all = self.len();
        self.entries.retain(|(term, posting)| {
            let is_common = texts_with_term[*term as usize] == all;
            if is_common {
                self.lengths[posting.text as usize] -= posting.frequency;
            }
            !is_common
        });
        self
    }

    pub fn finish(self, parameters: Bm25) -> Field {
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
        Field { penalties, filled, terms: self.terms, starts, postings }
    }
}

// Counts are far below 2^52.
fn penalties(lengths: &[u32], filled: usize, Bm25 { k1, b }: Bm25) -> Vec<f64> {
    let (k1, b) = (f64::from(k1), f64::from(b));
    let total: f64 = lengths.iter().copied().map(f64::from).sum();
    let mean = total / filled.max(1) as f64;
    lengths.iter().map(|length| k1 * (1.0 - b + b * f64::from(*length) / mean)).collect()
}

/// Texts, terms and frequencies have 32 bits, which is more than an index in memory can reach.
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("an index has fewer than 2^32 texts, terms and words in a text")
}
