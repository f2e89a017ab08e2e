//! Scorers of rankings, from where each wanted passage was found.
//!
//! Both are 1 for the best possible ranking and 0 where nothing wanted was found. They take ranks, not lists, so that
//! they give the same numbers again from a file of ranks.

/// A passage that a query wants, and where a tool found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How much it is wanted: 1 in most data sets.
    pub grade: u32,
    /// Its place in the ranking, from 1; `None` where it was not found.
    pub rank: Option<usize>,
}

/// Recall at `k`: the part of the wanted passages that stand among the first `k`. Where the passages are a
/// conversation's turns, this is evidence recall. Where nothing is wanted, all of it was found.
pub fn recall_at(k: usize, wanted: &[Found]) -> f64 {
    if wanted.is_empty() {
        return 1.0;
    }
    let found = wanted.iter().filter(|wanted| wanted.rank.is_some_and(|rank| rank <= k)).count();
    found as f64 / wanted.len() as f64
}

/// Normalised discounted cumulative gain at `k` as `trec_eval` computes it: the sum of grade / log2(rank + 1) over the
/// first `k`, divided by that of the best ranking (Järvelin and Kekäläinen, TOIS 2002; grades count as they are).
pub fn ndcg_at(k: usize, wanted: &[Found]) -> f64 {
    let ranked = wanted.iter().filter_map(|wanted| Some((wanted.grade, wanted.rank?)));
    let mut grades: Vec<u32> = wanted.iter().map(|wanted| wanted.grade).collect();
    grades.sort_unstable_by(|a, b| b.cmp(a));
    let best = gain(k, grades.into_iter().zip(1..));
    if best > 0.0 { gain(k, ranked) / best } else { 1.0 }
}

fn gain(k: usize, ranked: impl Iterator<Item = (u32, usize)>) -> f64 {
    let counted = ranked.filter(|(_, rank)| *rank <= k);
    // Not `sum`, which is -0 of nothing.
    counted.fold(0.0, |gain, (grade, rank)| gain + f64::from(grade) / (rank as f64 + 1.0).log2())
}
