//! Entities and facts with their vectors, and the chunks that mention them.

use std::collections::HashMap;

use store::{Corpus, Derived, DerivedId, PassageId};

use crate::core::error::Result;

/// A name or fact with its vector and the chunks that contain it.
#[derive(Debug, Clone)]
pub(super) struct Mentioned<T> {
    pub what: T,
    pub vector: Vec<f32>,
    pub chunks: Vec<PassageId>,
}

/// All entities or facts of a corpus, by kind.
pub(super) fn mentioned(kind: &str, corpus: &Corpus, vector_name: &str) -> Result<Vec<Mentioned<String>>> {
    let mut vectors: HashMap<DerivedId, Vec<f32>> = corpus.derived_vectors(kind, vector_name)?.into_iter().collect();
    let all = corpus.derived(kind)?.into_iter();
    let one = |one: Derived| Mentioned {
        vector: vectors.remove(&one.id).unwrap_or_default(),
        what: one.text,
        chunks: one.sources,
    };
    Ok(all.map(one).collect())
}
