//! Questions over paragraphs, filled up with paragraphs that do not answer them.

use super::materials::Pool;
use super::{Sample, joined};
use crate::Random;

/// A question among `size` documents, or fewer if the pool is smaller.
pub(super) fn make(pool: &Pool, size: usize, random: &mut Random) -> Sample {
    let asked = random.pick(&pool.questions);
    let mut chosen = asked.needed.clone();
    let mut first = asked.first.clone();
    random.shuffle(&mut first);
    let mut others: Vec<usize> = (0..pool.paragraphs.len()).collect();
    random.shuffle(&mut others);
    for place in first.into_iter().chain(others) {
        if chosen.len() >= size {
            break;
        }
        if !chosen.contains(&place) {
            chosen.push(place);
        }
    }
    random.shuffle(&mut chosen);
    let documents =
        (1..).zip(&chosen).map(|(number, place)| format!("Document {number}:\n{}", pool.paragraphs[*place]));
    let documents: Vec<String> = documents.collect();
    let wanted: Vec<usize> = (0..chosen.len()).filter(|number| asked.needed.contains(&chosen[*number])).collect();
    let (text, evidence) = joined(&documents, "\n\n", &wanted);
    Sample { text, question: asked.question.clone(), golds: asked.golds.clone(), evidence }
}
