//! The evidence as blocks of a few sentences, ranked by BM25: what a model that reads one paragraph well is shown.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::candidates::Place;
use super::content_words;
use crate::core::cite::sentences;

/// A paragraph shorter than this, in bytes, is joined with the next one.
const SHORT: usize = 400;

/// A block that would be longer than this, in bytes, ends before the next sentence.
const LONG: usize = 1500;

/// BM25's parameters (Robertson and Zaragoza 2009, section 3.3).
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Consecutive sentences of one text of the evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    pub place: Place,
    /// BM25 of the question's content words, over the blocks of the evidence.
    pub score: f64,
}

/// The blocks of evidence texts, each text with its heading, which counts for the rank of each of its blocks; best first.
pub fn blocks(question: &str, evidence: &[(&str, &str)]) -> Vec<Block> {
    let cut = evidence.iter().enumerate().flat_map(|(text, (_, whole))| {
        paragraphs(whole).into_iter().map(move |range| Place { text, start: range.start, end: range.end })
    });
    let places: Vec<Place> = cut.collect();
    let counted: Vec<HashMap<String, f64>> = places
        .iter()
        .map(|place| {
            let (heading, whole) = evidence[place.text];
            let mut counts = HashMap::new();
            for stem in [heading, &whole[place.start..place.end]].into_iter().flat_map(content_words) {
                *counts.entry(stem).or_default() += 1.0;
            }
            counts
        })
        .collect();
    let asked: HashSet<String> = content_words(question).into_iter().collect();
    let scores = bm25(&asked, &counted);
    let mut blocks: Vec<Block> = places.into_iter().zip(scores).map(|(place, score)| Block { place, score }).collect();
    // Stable: of equals the earlier block is first, because evidence comes in the order of retrieval.
    blocks.sort_by(|a, b| b.score.total_cmp(&a.score));
    blocks
}

/// Paragraphs of a text, short ones joined and long ones cut between sentences.
pub(crate) fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for sentence in sentences(text) {
        match blocks.last_mut() {
            Some(last) if sentence.end - last.start <= LONG && !ends(text, last, &sentence) => last.end = sentence.end,
            _ => blocks.push(sentence),
        }
    }
    blocks
}

/// Whether a block that is long enough ends with a paragraph.
fn ends(text: &str, block: &Range<usize>, next: &Range<usize>) -> bool {
    let between = &text[block.end..next.start];
    block.len() >= SHORT && between.matches('\n').count() >= 2
}

fn bm25(asked: &HashSet<String>, documents: &[HashMap<String, f64>]) -> Vec<f64> {
    let all = documents.len() as f64;
    let lengths: Vec<f64> = documents.iter().map(|counts| counts.values().sum()).collect();
    let mean = (lengths.iter().sum::<f64>() / all).max(1.0);
    let mut scores = vec![0.0; documents.len()];
    // In a fixed order, so that sums of floats are the same in every run.
    let mut asked: Vec<&String> = asked.iter().collect();
    asked.sort();
    for term in asked {
        let with = documents.iter().filter(|counts| counts.contains_key(term)).count() as f64;
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for ((score, counts), length) in scores.iter_mut().zip(documents).zip(&lengths) {
            let count = counts.get(term).copied().unwrap_or(0.0);
            *score += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean));
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paragraphs_are_joined_and_long_ones_cut_between_sentences() {
        let (short, long) = ("The door was green.", "It rained for days and no one came to the old mill. ".repeat(60));
        let text =
            format!("{short}\n\n{short}\n\n{}\n\n{}\n\n{long}", "Jim slept well. ".repeat(30), "She ran. ".repeat(60));
        let blocks = paragraphs(&text);
        let lengths: Vec<usize> = blocks.iter().map(Range::len).collect();
        assert!(text[blocks[0].clone()].ends_with("Jim slept well.") && blocks[0].start == 0, "{lengths:?}");
        assert!(text[blocks[1].clone()].starts_with("She ran."), "{lengths:?}");
        assert!(lengths.iter().all(|length| *length <= LONG) && blocks.len() == 5, "{lengths:?}");
        assert!(blocks[2..].iter().all(|block| text[block.clone()].ends_with("mill.")), "{lengths:?}");
    }

    #[test]
    fn the_block_with_the_rarest_words_of_the_question_is_first() {
        let texts = [("Jim", "Jim slept. Jim ate. Jim and Della were poor."), ("Jim", "He sold the watch."), ("", "")];
        let blocks = blocks("What did Jim sell?", &texts);
        assert_eq!(blocks.iter().map(|block| block.place.text).collect::<Vec<_>>(), [1, 0]);
        assert!(blocks[0].score > blocks[1].score && blocks[1].score > 0.0);
    }

    #[test]
    fn a_heading_counts_for_the_blocks_below_it() {
        let texts = [("Lisbon", "A city on a river."), ("Porto", "A city on a river.")];
        assert_eq!(blocks("Where is Porto?", &texts)[0].place.text, 1);
        assert!(blocks("Where is Porto?", &[]).is_empty());
    }
}
