//! Vector search over the summaries of one layer.

use std::collections::HashMap;

use store::{Corpus, DerivedId};

use super::pack::Piece;
use super::vectors::dot;
use crate::core::error::Result;

/// The summaries of a layer with their vectors.
#[derive(Debug)]
pub(super) struct SummaryIndex(Vec<(Piece, Vec<f32>)>);

impl SummaryIndex {
    /// Reads all derived texts of a kind; blank ones are left out.
    pub fn open(kind: &str, corpus: &Corpus, vector_name: &str) -> Result<SummaryIndex> {
        let mut vectors: HashMap<DerivedId, Vec<f32>> =
            corpus.derived_vectors(kind, vector_name)?.into_iter().collect();
        let summaries = corpus.derived(kind)?.into_iter().filter(|summary| !summary.text.trim().is_empty());
        let piece = |summary: store::Derived| {
            let vector = vectors.remove(&summary.id).unwrap_or_default();
            // In the order of the text; of two with the same start the longer one is first.
            let place = (summary.sources[0].0, -i64::try_from(summary.sources.len()).unwrap_or(i64::MAX));
            (Piece { id: summary.id.0, place, text: summary.text, sources: summary.sources }, vector)
        };
        Ok(SummaryIndex(summaries.map(piece).collect()))
    }

    /// The `most` summaries nearest to a query, nearest first, with their cosines.
    pub fn nearest(&self, query: &[f32], most: usize) -> Vec<(&Piece, f32)> {
        let mut scored: Vec<(&Piece, f32)> = self.0.iter().map(|(piece, vector)| (piece, dot(query, vector))).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.id.cmp(&b.0.id)));
        scored.truncate(most);
        scored
    }
}
