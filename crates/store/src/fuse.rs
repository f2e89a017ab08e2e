//! Fuses lists of hits into one, with one hit for each passage. Equal scores are ordered by id, so the result is
//! deterministic.

use std::collections::BTreeMap;

use crate::hit::ranked;
use crate::{Hit, PassageId};

/// The constant of reciprocal rank fusion in its paper (Cormack, Clarke and Büttcher, SIGIR 2009).
pub const RRF_K: f32 = 60.0;

/// Sums each passage's scores over the lists.
pub fn sum_scores(lists: &[Vec<Hit>]) -> Vec<Hit> {
    fold(lists.iter().flatten().copied(), |total, score| total + score)
}

/// Gives each passage its highest score in any list.
pub fn max_score(lists: &[Vec<Hit>]) -> Vec<Hit> {
    fold(lists.iter().flatten().copied(), f32::max)
}

/// Reciprocal rank fusion: a passage at rank r (from 1) of a list gets 1 / (k + r) from that list.
pub fn rrf(lists: &[Vec<Hit>], k: f32) -> Vec<Hit> {
    // Exact for ranks up to 16 million.
    let vote = |(above, hit): (usize, &Hit)| Hit { score: 1.0 / (k + 1.0 + above as f32), ..*hit };
    fold(lists.iter().flat_map(|list| list.iter().enumerate().map(vote)), |total, vote| total + vote)
}

/// The weight of cosines in [`by_score`], beside that of BM25 scores: tuned on one half of the questions of LoCoMo with
/// all-MiniLM-L6-v2. On all of them nDCG@10 is .517 (BM25 .485, cosines .304, reciprocal ranks .453).
const DENSE_WEIGHT: f32 = 0.45;

/// The relative drop of the cosine from the first passage to the one at [`DROP_RANK`] at which cosines have their whole
/// weight. They drop less for a query that the embedder does not understand, such as one in another language, so that
/// such cosines do not spoil BM25's ranking.
const WHOLE_DROP: f32 = 0.2;

/// The rank at which the drop of the cosine is measured.
const DROP_RANK: usize = 20;

/// How many passages of each tool are candidates where the best `k` of both are wanted.
pub fn candidates(k: usize) -> usize {
    DROP_RANK.max(2 * k)
}

/// Fuses BM25 scores and cosines by a convex combination: (1 - w) b / max b + w d / max d (Bruch, Gai and Ingber, ACM TOIS
/// 2023, compare such functions with reciprocal ranks).
///
/// Both lists score the same [`candidates`]; a passage that one of them lacks has 0 there. `nearest` are the passages with
/// the highest cosines of all, best first, by which cosines lose weight for a query that they hardly tell apart.
pub fn by_score(lexical: &[Hit], dense: &[Hit], nearest: &[Hit]) -> Vec<Hit> {
    let highest = |hits: &[Hit]| hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let (best_lexical, best_dense) = (highest(lexical), highest(dense));
    let at_rank = nearest.get(DROP_RANK - 1).or(nearest.last()).map_or(0.0, |hit| hit.score);
    let drop = if best_dense > 0.0 { 1.0 - at_rank / best_dense } else { 0.0 };
    let weight = DENSE_WEIGHT * (drop / WHOLE_DROP).clamp(0.0, 1.0);
    let scaled = |hit: &Hit, weight: f32, best: f32| {
        let score = if best > 0.0 { weight * hit.score / best } else { 0.0 };
        Hit { score, ..*hit }
    };
    let lexical = lexical.iter().map(|hit| scaled(hit, 1.0 - weight, best_lexical));
    let dense = dense.iter().map(|hit| scaled(hit, weight, best_dense));
    fold(lexical.chain(dense), |total, score| total + score)
}

/// Scales scores to 0..=1; if all are equal, they all become 1.
pub fn min_max(hits: &[Hit]) -> Vec<Hit> {
    let least = hits.iter().map(|hit| hit.score).fold(f32::INFINITY, f32::min);
    let range = hits.iter().map(|hit| hit.score).fold(f32::NEG_INFINITY, f32::max) - least;
    let scale = |score: f32| if range > 0.0 { (score - least) / range } else { 1.0 };
    ranked(hits.iter().map(|hit| Hit { score: scale(hit.score), ..*hit }).collect())
}

fn fold(hits: impl Iterator<Item = Hit>, join: impl Fn(f32, f32) -> f32) -> Vec<Hit> {
    let mut scores = BTreeMap::<PassageId, f32>::new();
    for Hit { passage, score } in hits {
        scores.entry(passage).and_modify(|known| *known = join(*known, score)).or_insert(score);
    }
    ranked(scores.into_iter().map(|(passage, score)| Hit { passage, score }).collect())
}
