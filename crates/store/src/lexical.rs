//! Lexical search: BM25 as Lucene computes it, in memory.
//!
//! score(q, d) = sum over the words t of q of idf(t) * tf / (tf + k1 * (1 - b + b * length / mean length)), with idf(t)
//! = ln(1 + (N - df + 0.5) / (df + 0.5)). As in Lucene since version 8 the constant factor k1 + 1 is left out, and N
//! and the mean count only passages that have terms. Unlike Lucene, lengths are exact, not rounded to one byte.
//!
//! Names of documents are a field of their own, so that they do not change the frequencies of the text: every passage of
//! a document gets [`NAME_WEIGHT`] times the score of its document's name among the names of all documents. Terms that all
//! names have, such as their folder, are left out.
//!
//! Useful for: names, numbers, rare words, any corpus that fits in memory as postings (8 bytes for each different word
//! of each passage). Not useful for: paraphrases, other languages than the text's own.

mod field;

use std::collections::BTreeSet;

use crate::hit::best;
use crate::{Corpus, Hit, IndexText, Layer, PassageId, Result};
use field::{Builder, Field, narrow};

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

/// The weight of the score of a document's name beside the score of a passage's text. nDCG@10 on `SciFact` is 0.685 with it
/// (`bm25-named` of `memlocal-bench retrieval`), and 0.666 with the weight 1 (`bm25-fields`).
const NAME_WEIGHT: f64 = 0.5;

/// An inverted index over a set of passages.
#[derive(Debug)]
pub struct LexicalIndex {
    passages: Vec<PassageId>,
    texts: Field,
    /// None for one document, whose name is the same for all passages.
    names: Option<Names>,
}

/// The names of documents.
#[derive(Debug)]
struct Names {
    field: Field,
    /// For each passage the number of its document in `field`.
    of_passages: Vec<u32>,
}

impl LexicalIndex {
    /// Indexes all passages of a layer, with the names of their documents.
    ///
    /// # Errors
    /// Errors of reading the corpus.
    pub fn open(corpus: &Corpus, layer: Layer, text: IndexText<'_>, parameters: Bm25) -> Result<Self> {
        let mut builder = IndexBuilder::default();
        let mut last = None;
        corpus.each_index_text(layer, text, |document, passage, text| {
            if last.replace(document.id) != Some(document.id) {
                builder.start_document(&document.searched_name());
            }
            builder.add(passage, text);
        })?;
        Ok(builder.finish(parameters))
    }

    /// Indexes the texts given.
    pub fn build<'a>(texts: impl IntoIterator<Item = (PassageId, &'a str)>, parameters: Bm25) -> Self {
        let mut builder = IndexBuilder::default();
        for (passage, text) in texts {
            builder.add(passage, text);
        }
        builder.finish(parameters)
    }

    /// Indexes the texts of documents that have one passage each: its id, the document's name and the text.
    pub fn build_named<'a>(
        documents: impl IntoIterator<Item = (PassageId, &'a str, &'a str)>,
        parameters: Bm25,
    ) -> Self {
        let mut builder = IndexBuilder::default();
        for (passage, name, text) in documents {
            builder.start_document(name);
            builder.add(passage, text);
        }
        builder.finish(parameters)
    }

    /// The `k` passages with the highest scores for the words of `query`; only passages with at least one of them in
    /// their text or in the name of their document. Repeated query words count each time.
    pub fn search(&self, query: &str, k: usize) -> Vec<Hit> {
        best(self.hits(query).collect(), k)
    }

    /// The same for some passages only, with the scores of the whole index.
    pub fn search_among(&self, query: &str, k: usize, among: &BTreeSet<PassageId>) -> Vec<Hit> {
        best(self.hits(query).filter(|hit| among.contains(&hit.passage)).collect(), k)
    }

    // Scores are summed in f64 and returned in f32.
    fn hits(&self, query: &str) -> impl Iterator<Item = Hit> {
        let mut scores = self.texts.scores(query);
        if let Some(names) = &self.names
            && let of_names = names.field.scores(query)
            && of_names.iter().any(|score| *score > 0.0)
        {
            for (score, document) in scores.iter_mut().zip(&names.of_passages) {
                *score += NAME_WEIGHT * of_names[*document as usize];
            }
        }
        let matching = scores.into_iter().zip(&self.passages).filter(|(score, _)| *score > 0.0);
        matching.map(|(score, passage)| Hit { passage: *passage, score: score as f32 })
    }
}

/// An index under construction.
#[derive(Default)]
struct IndexBuilder {
    passages: Vec<PassageId>,
    texts: Builder,
    names: Builder,
    of_passages: Vec<u32>,
}

impl IndexBuilder {
    /// Passages that are added from now on are of a document with this name.
    fn start_document(&mut self, name: &str) {
        self.names.add(name);
    }

    fn add(&mut self, passage: PassageId, text: &str) {
        self.passages.push(passage);
        self.texts.add(text);
        self.of_passages.push(narrow(self.names.len().saturating_sub(1)));
    }

    fn finish(self, parameters: Bm25) -> LexicalIndex {
        let IndexBuilder { passages, texts, names, of_passages } = self;
        let several = names.len() > 1;
        let names = several.then(|| Names { field: names.without_common_terms().finish(parameters), of_passages });
        LexicalIndex { passages, texts: texts.finish(parameters), names }
    }
}
