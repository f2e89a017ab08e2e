//! The evidence as blocks of a few sentences or one row of a table, ranked by BM25: what a model that reads one paragraph well is shown.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::candidates::Place;
use super::cells::{is_row, shown};
use super::content_words;
use super::question::Question;
use super::typed::AnswerType;
use crate::core::cite::sentences;

/// A paragraph shorter than this, in bytes, is joined with the next one, and the last one with that before it.
const SHORT: usize = 400;

/// A block that would be longer than this, in bytes, ends before the next sentence.
const LONG: usize = 1500;

/// BM25's parameters (Robertson and Zaragoza 2009, section 3.3).
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Consecutive sentences of one text of the evidence, or a row of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    pub place: Place,
    /// BM25 of the question's content words and of the type of its answer, over the blocks of the evidence.
    pub score: f64,
}

/// The blocks of evidence texts, each text with its heading, which counts for the rank of each of its blocks; best first, and those
/// last that lack what the type of the question requires.
pub fn blocks(question: &str, evidence: &[(&str, &str)]) -> Vec<Block> {
    let cut = evidence.iter().enumerate().flat_map(|(text, (_, whole))| {
        parts(whole).into_iter().map(move |range| Place { text, start: range.start, end: range.end })
    });
    let places: Vec<Place> = cut.collect();
    let asked = Question::parse(question);
    let answer = AnswerType::parsed(&asked);
    // In a fixed order, so that sums of floats are the same in every run.
    let terms: BTreeSet<String> = asked.terms.into_iter().chain(asked.focus).collect();
    let counted: Vec<Counted> = places.iter().map(|place| Counted::typed(*place, evidence, answer)).collect();
    let scores = bm25(&terms, &counted);
    let is_required = answer.is_some_and(AnswerType::is_required);
    let fits = counted.iter().map(|block| block.has_type || !is_required);
    let blocks = places.into_iter().zip(scores).map(|(place, score)| Block { place, score });
    let mut blocks: Vec<(Block, bool)> = blocks.zip(fits).collect();
    // Stable: of equals the earlier block is first, because evidence comes in the order of retrieval.
    blocks.sort_by(|(a, a_fits), (b, b_fits)| b_fits.cmp(a_fits).then(b.score.total_cmp(&a.score)));
    blocks.into_iter().map(|(block, _)| block).collect()
}

/// The paragraphs of a text, but each row of a table with named columns alone: of several rows, which are alike in all but their values,
/// a small model reads the value of another one.
fn parts(text: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for paragraph in paragraphs(text) {
        let (mut start, mut begins) = (paragraph.start, true);
        for line in text[paragraph].split_inclusive('\n') {
            let end = start + line.len();
            let is_alone = is_row(text, start);
            match parts.last_mut() {
                Some(last) if !begins && !is_alone => last.end = end,
                _ => parts.push(start..end),
            }
            (start, begins) = (end, is_alone);
        }
    }
    let trimmed = parts.into_iter().map(|part| part.start..part.start + text[part].trim_end().len());
    trimmed.filter(|part| !part.is_empty()).collect()
}

/// Whether a line is a row of a table that has the names of its columns: "Shop: Rex | Paid by: Ann".
pub(super) fn names_columns(line: &str) -> bool {
    let names_column = |cell: &str| {
        let name = cell.split_once(": ").map_or_else(|| cell.trim_end().strip_suffix(':'), |(name, _)| Some(name));
        name.is_some_and(|name| !name.trim().is_empty())
    };
    line.contains(" | ") && line.split(" | ").all(names_column)
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
    if let [.., before, last] = &mut blocks[..]
        && last.len() < SHORT
    {
        before.end = last.end;
        blocks.pop();
    }
    blocks
}

/// Whether a block that is long enough ends with a paragraph.
fn ends(text: &str, block: &Range<usize>, next: &Range<usize>) -> bool {
    let between = &text[block.end..next.start];
    block.len() >= SHORT && between.matches('\n').count() >= 2
}

/// A block, counted.
pub(super) struct Counted {
    counts: HashMap<String, f64>,
    /// Whether it has something of the type of the answer, which counts as one more word of the question.
    has_type: bool,
}

impl Counted {
    /// The content words of a block as it is shown and of its heading; of no type.
    pub fn read(place: Place, evidence: &[(&str, &str)]) -> Counted {
        Counted::typed(place, evidence, None)
    }

    /// The same with whether the block has something of the type of an answer.
    fn typed(place: Place, evidence: &[(&str, &str)], answer: Option<AnswerType>) -> Counted {
        let (heading, whole) = evidence[place.text];
        let (mut counts, text) = (HashMap::new(), shown(whole, &place));
        for stem in [heading, &*text].into_iter().flat_map(content_words) {
            *counts.entry(stem).or_default() += 1.0;
        }
        Counted { counts, has_type: answer.is_some_and(|answer| answer.is_in(&text)) }
    }
}

/// A block has at least half of the mean length here: one sentence is hardly better than a sentence in its paragraph.
pub(super) fn bm25(asked: &BTreeSet<String>, blocks: &[Counted]) -> Vec<f64> {
    let all = blocks.len() as f64;
    let lengths: Vec<f64> = blocks.iter().map(|block| block.counts.values().sum()).collect();
    let mean = (lengths.iter().sum::<f64>() / all).max(1.0);
    let mut scores = vec![0.0; blocks.len()];
    let mut add = |count: &dyn Fn(&Counted) -> f64| {
        let with = blocks.iter().filter(|block| count(block) > 0.0).count() as f64;
        let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for ((score, block), length) in scores.iter_mut().zip(blocks).zip(&lengths) {
            let count = count(block);
            *score += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length.max(mean / 2.0) / mean));
        }
    };
    for term in asked {
        add(&|block| block.counts.get(term).copied().unwrap_or(0.0));
    }
    add(&|block| f64::from(u8::from(block.has_type)));
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
        assert!(lengths.iter().all(|length| *length <= LONG + SHORT) && blocks.len() == 4, "{lengths:?}");
        assert!(blocks[2..].iter().all(|block| text[block.clone()].ends_with("mill.")), "{lengths:?}");
    }

    #[test]
    fn a_row_that_names_its_columns_is_a_block() {
        let rows = [
            "Day: 3 May | Shop: Rex | Note: | Paid by: Ann",
            "Day: 4 May | Shop: Lido | Note: It rained. | Paid by: Bo",
        ];
        let text = format!("Expenses of the year\nby day\n\n{}\n{}\nAll were\npaid.", rows[0], rows[1]);
        let cut: Vec<&str> = parts(&text).into_iter().map(|part| &text[part]).collect();
        assert_eq!(cut, ["Expenses of the year\nby day", rows[0], rows[1], "All were\npaid."]);
        let Place { start, end, .. } = blocks("Who paid at Lido?", &[("", &text)])[0].place;
        assert_eq!(&text[start..end], rows[1]);
        let table = "Parts\n\nPart | Power\nLamp | 40 W\nRing | 20 W\nAll are old.";
        let cut: Vec<&str> = parts(table).into_iter().map(|part| &table[part]).collect();
        assert_eq!(cut, ["Parts\n\nPart | Power", "Lamp | 40 W", "Ring | 20 W", "All are old."]);
        let Place { start, end, .. } = blocks("What is the power of the ring?", &[("", table)])[0].place;
        assert_eq!(&table[start..end], "Ring | 20 W", "the names of columns count");
        // A row whose columns have no names is not read alone.
        assert_eq!(parts("Lamp | 40 W\nRing | 20 W").len(), 1);
    }

    #[test]
    fn the_block_with_the_rarest_words_of_the_question_is_first() {
        let texts = [("Jim", "Jim slept. Jim ate. Jim and Della were poor."), ("Jim", "He sold the watch."), ("", "")];
        let blocks = blocks("What did Jim sell?", &texts);
        assert_eq!(blocks.iter().map(|block| block.place.text).collect::<Vec<_>>(), [1, 0]);
        assert!(blocks[0].score > blocks[1].score && blocks[1].score > 0.0);
    }

    #[test]
    fn a_short_block_is_no_better_than_a_sentence_in_its_paragraph() {
        let long = "Jim sold the watch. The stairs were dark, the rooms were cold, and it rained for days.".repeat(4);
        let texts = [("", "Out of his trance Jim woke."), ("", long.as_str())];
        assert_eq!(blocks("What did Jim sell?", &texts)[0].place.text, 1);
    }

    #[test]
    fn the_type_of_the_answer_counts_as_a_word_of_the_question() {
        let first = |question: &str, texts: &[(&str, &str)]| blocks(question, texts)[0].place.text;
        let sale = [("", "Will you buy my hair? asked Della."), ("", "\"Twenty dollars,\" said Madame to Della.")];
        assert_eq!(first("How much money did Della get?", &sale), 1);
        let age = [("", "Jim wore an old hat on his head."), ("", "Poor Jim was only twenty-two years.")];
        assert_eq!(first("How old was Jim?", &age), 1);
        let old = [("", "How old was Jim's coat? Jim asked."), ("", "It rained."), ("", "He was twenty-two.")];
        assert_eq!(first("How old was Jim?", &old), 2, "no other block can have the answer");
        let distance = [("", "Jim ran home to eat his dinner."), ("", "Jim ran two miles in the rain.")];
        assert_eq!(first("How far did Jim run?", &distance), 1);
        assert_eq!(first("Where did Jim run?", &distance), 0, "of equals the first");
    }

    #[test]
    fn a_heading_counts_for_the_blocks_below_it() {
        let texts = [("Lisbon", "A city on a river."), ("Porto", "A city on a river.")];
        assert_eq!(blocks("Where is Porto?", &texts)[0].place.text, 1);
        assert!(blocks("Where is Porto?", &[]).is_empty());
    }
}
