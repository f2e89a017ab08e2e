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
