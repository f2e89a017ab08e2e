//! Search results and their order.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::PassageId;

/// A passage that was found, with its score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    pub passage: PassageId,
    pub score: f32,
}

impl Hit {
    /// Best first: by higher score, then by lower id.
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.passage.cmp(&other.passage))
    }
}

/// The `k` best hits, best first.
pub(crate) fn best(mut hits: Vec<Hit>, k: usize) -> Vec<Hit> {
    if k < hits.len() {
        hits.select_nth_unstable_by(k, Hit::order);
        hits.truncate(k);
    }
    ranked(hits)
}

/// All hits, best first.
pub(crate) fn ranked(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_unstable_by(Hit::order);
    hits
}
