//! Similar entities (HippoRAG 2, section 3: synonyms). Every entity is compared with every other, once when the
//! layer is built; the result is stored beside the corpus. If it is missing, it is computed again, with equal results.
//!
//! # Cost
//! 5,000 entities take about half a second, 20,000 eight seconds.

use store::{Corpus, Digest, Writer};

use super::entities::ENTITY;
use super::mentions::{Mentioned, mentioned};
use super::vectors::dot;
use crate::core::error::Result;

/// Entities with at least this similarity are joined.
const MIN_SIMILARITY: f32 = 0.8;
/// The most entities that one entity is joined with by similarity.
const MAX_SYNONYMS: usize = 100;
/// Shorter names are too similar.
const MIN_LETTERS: usize = 3;

/// Places of two entities, and their similarity.
pub(super) type Pair = (usize, usize, f32);

/// The name under which the pairs are stored beside the corpus.
const KEPT: &str = "comorag.alike";

/// Each pair of similar entities once for each side that has the other among its nearest.
pub(super) fn synonyms(entities: &[Mentioned<String>]) -> Vec<Pair> {
    let mut likest: Vec<Vec<(f32, usize)>> = vec![Vec::new(); entities.len()];
    for (a, entity) in entities.iter().enumerate() {
        for (b, other) in entities.iter().enumerate().skip(a + 1) {
            let likeness = dot(&entity.vector, &other.vector);
            if likeness >= MIN_SIMILARITY {
                likest[a].push((likeness, b));
                likest[b].push((likeness, a));
            }
        }
    }
    let mut pairs = Vec::new();
    for (a, (entity, mut others)) in entities.iter().zip(likest).enumerate() {
        if entity.what.chars().filter(|c| c.is_alphanumeric()).count() < MIN_LETTERS {
            continue;
        }
        others.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        pairs.extend(others.into_iter().take(MAX_SYNONYMS).map(|(likeness, b)| (a, b, likeness)));
    }
    pairs
}

/// The pairs of all entities, as stored or computed now.
pub(super) fn pairs(corpus: &Corpus, entities: &[Mentioned<String>], vector_name: &str) -> Vec<Pair> {
    let kept = corpus.kept(KEPT, &key(entities, vector_name));
    kept.and_then(|bytes| from_bytes(&bytes, entities.len())).unwrap_or_else(|| synonyms(entities))
}

/// Stores the pairs of all entities, if they are not stored yet.
pub(super) fn keep(writer: &Writer, vector_name: &str) -> Result<()> {
    let entities = mentioned(ENTITY, writer, vector_name)?;
    let key = key(&entities, vector_name);
    if writer.kept(KEPT, &key).is_none() {
        writer.keep(KEPT, &key, &to_bytes(&synonyms(&entities)))?;
    }
    Ok(())
}

/// The input of the pairs: a name has one vector of an embedder.
fn key(entities: &[Mentioned<String>], vector_name: &str) -> Digest {
    let names = entities.iter().map(|entity| entity.what.as_str());
    Digest::of(&[vector_name].into_iter().chain(names).collect::<Vec<_>>())
}

fn to_bytes(pairs: &[Pair]) -> Vec<u8> {
    let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX).to_le_bytes();
    pairs.iter().flat_map(|(a, b, likeness)| [number(*a), number(*b), likeness.to_le_bytes()].concat()).collect()
}

/// None if the bytes are not pairs of this many entities.
fn from_bytes(bytes: &[u8], entities: usize) -> Option<Vec<Pair>> {
    let (parts, rest) = bytes.as_chunks::<4>();
    let place = |part: [u8; 4]| usize::try_from(u32::from_le_bytes(part)).ok().filter(|place| *place < entities);
    let pair = |parts: &[[u8; 4]; 3]| Some((place(parts[0])?, place(parts[1])?, f32::from_le_bytes(parts[2])));
    let (pairs, odd) = parts.as_chunks::<3>();
    if rest.is_empty() && odd.is_empty() { pairs.iter().map(pair).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_as_they_went() {
        let pairs = vec![(0, 1, 0.8), (1, 0, 0.8), (2, 1, 0.99999994)];
        let bytes = to_bytes(&pairs);
        assert_eq!(from_bytes(&bytes, 3), Some(pairs));
        assert_eq!(from_bytes(&bytes, 2), None, "there is no third entity");
        assert_eq!(from_bytes(&bytes[1..], 3), None);
        assert_eq!(from_bytes(&[], 3), Some(Vec::new()));
    }
}
