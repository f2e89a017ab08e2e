//! Scorers of rankings, computed from the rank of each wanted passage.
//!
//! Both are 1 for the best possible ranking and 0 if nothing wanted was found. They take ranks, not lists, so that
//! they can be computed again from a file of ranks.

use std::collections::BTreeMap;

/// A wanted passage of a query, and its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The relevance grade: 1 in most data sets.
    pub grade: u32,
    /// Its rank, from 1; `None` if it was not found.
    pub rank: Option<usize>,
}

/// Recall at `k`: the share of the wanted passages among the first `k`. Where the passages are a
/// conversation's turns, this is evidence recall. If nothing is wanted, recall is 1.
pub fn recall_at(k: usize, wanted: &[Found]) -> f64 {
    if wanted.is_empty() {
        return 1.0;
    }
    let found = wanted.iter().filter(|wanted| wanted.rank.is_some_and(|rank| rank <= k)).count();
    found as f64 / wanted.len() as f64
}

/// Normalised discounted cumulative gain at `k` as `trec_eval` computes it: the sum of grade / log2(rank + 1) over the
/// first `k`, divided by that of the best ranking (Järvelin and Kekäläinen, TOIS 2002; grades count as they are).
///
/// Several wanted passages have the same rank where one retrieved page holds all of them. A rank counts once, with the
/// highest of its grades, in the ranking and in the best ranking; so the score is at most 1.
pub fn ndcg_at(k: usize, wanted: &[Found]) -> f64 {
    let mut found: BTreeMap<usize, u32> = BTreeMap::new();
    let mut missed = Vec::new();
    for Found { grade, rank } in wanted {
        match rank {
            Some(rank) => {
                let highest = found.entry(*rank).or_default();
                *highest = (*highest).max(*grade);
            }
            None => missed.push(*grade),
        }
    }
    let mut grades: Vec<u32> = found.values().copied().chain(missed).collect();
    grades.sort_unstable_by(|a, b| b.cmp(a));
    let best = gain(k, grades.into_iter().zip(1..));
    let ranked = found.into_iter().map(|(rank, grade)| (grade, rank));
    if best > 0.0 { gain(k, ranked) / best } else { 1.0 }
}

fn gain(k: usize, ranked: impl Iterator<Item = (u32, usize)>) -> f64 {
    let counted = ranked.filter(|(_, rank)| *rank <= k);
    // Not `sum`, which returns -0 for an empty iterator.
    counted.fold(0.0, |gain, (grade, rank)| gain + f64::from(grade) / (rank as f64 + 1.0).log2())
}
