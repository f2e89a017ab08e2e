//! The shown evidence as sentences, with how well each one matches the question.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::question::Question;
use super::words::{Word, stem, words};
use crate::core::cite::sentences;

/// A sentence of the evidence.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Which of the evidence texts.
    pub text: usize,
    /// Bytes in that text.
    pub range: Range<usize>,
    /// With byte ranges in that text.
    pub words: Vec<Word>,
    /// The share of the question's terms, weighted by rarity, that is in it.
    pub coverage: f32,
    /// The same with half of what only the sentences beside it have.
    pub context: f32,
    /// Its place in the order of `context`, with the words of a model's reply where there is one, best first.
    pub rank: usize,
}

/// The evidence, read for one question.
#[derive(Debug)]
pub(super) struct Passage<'a> {
    pub texts: &'a [&'a str],
    pub sentences: Vec<Sentence>,
    idf: HashMap<String, f32>,
    /// Lower-case forms of words that are capitalised where no sentence begins.
    names: HashSet<String>,
    /// Lower-case forms of words that occur without a capital.
    common: HashSet<String>,
    default_idf: f32,
}

impl<'a> Passage<'a> {
    pub fn read(question: &Question, texts: &'a [&'a str]) -> Passage<'a> {
        let mut read: Vec<Sentence> = Vec::new();
        for (text, whole) in texts.iter().enumerate() {
            for range in sentences(whole) {
                let mut words = words(&whole[range.clone()]);
                for word in &mut words {
                    word.range = word.range.start + range.start..word.range.end + range.start;
                }
                read.push(Sentence { text, range, words, coverage: 0.0, context: 0.0, rank: 0 });
            }
        }
        let mut frequency: HashMap<String, f32> = HashMap::new();
        for sentence in &read {
            let stems: HashSet<&String> = sentence.words.iter().filter_map(|word| word.stem.as_ref()).collect();
            stems.into_iter().for_each(|stem| *frequency.entry(stem.clone()).or_default() += 1.0);
        }
        let all = read.len() as f32;
        let idf = frequency.into_iter().map(|(stem, with)| (stem, idf(all, with))).collect();
        let lower = |keep: &dyn Fn(&(usize, &Word)) -> bool| -> HashSet<String> {
            let words = read.iter().flat_map(|sentence| sentence.words.iter().enumerate());
            words.filter(keep).map(|(_, word)| word.lower.clone()).collect()
        };
        let names = lower(&|(at, word)| *at > 0 && word.capital);
        let common = lower(&|(_, word)| !word.capital);
        let mut passage = Passage { texts, sentences: read, idf, names, common, default_idf: idf_of_unseen(all) };
        passage.weigh(question);
        passage
    }

    /// Rarity of a stem among the sentences of the evidence.
    pub fn idf(&self, stem: &str) -> f32 {
        self.idf.get(stem).copied().unwrap_or(self.default_idf)
    }

    fn weigh(&mut self, question: &Question) {
        // In a fixed order, so that sums of floats are the same in every run.
        let terms: BTreeSet<&String> = question.terms.iter().chain(&question.focus).collect();
        let total: f32 = terms.iter().map(|term| self.idf(term)).sum::<f32>().max(f32::MIN_POSITIVE);
        let held: Vec<BTreeSet<&String>> = self
            .sentences
            .iter()
            .map(|sentence| terms.iter().copied().filter(|term| sentence.has(term)).collect())
            .collect();
        let weight = |terms: &BTreeSet<&String>| terms.iter().map(|term| self.idf(term)).sum::<f32>() / total;
        let none = BTreeSet::new();
        let mut scores = Vec::with_capacity(held.len());
        for (at, own) in held.iter().enumerate() {
            let beside = |other: Option<usize>| {
                other.filter(|other| self.sentences.get(*other).is_some_and(|s| s.text == self.sentences[at].text))
            };
            let [before, after] =
                [beside(at.checked_sub(1)), beside(Some(at + 1))].map(|other| other.map_or(&none, |o| &held[o]));
            let near: BTreeSet<&String> = before.union(after).copied().filter(|term| !own.contains(term)).collect();
            scores.push((weight(own), weight(own) + 0.5 * weight(&near)));
        }
        let replied: f32 = question.replied.iter().map(|term| self.idf(term)).sum::<f32>().max(f32::MIN_POSITIVE);
        let held_of_reply = |sentence: &Sentence| {
            let held = question.replied.iter().filter(|term| sentence.has(term));
            held.map(|term| self.idf(term)).sum::<f32>() / replied
        };
        let ranked: Vec<f32> =
            scores.iter().zip(&self.sentences).map(|((_, context), own)| context + held_of_reply(own)).collect();
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // Stable: of equals the earlier sentence goes first, because evidence comes in the order of retrieval.
        order.sort_by(|a, b| ranked[*b].total_cmp(&ranked[*a]));
        for (rank, at) in order.into_iter().enumerate() {
            self.sentences[at].rank = rank;
            (self.sentences[at].coverage, self.sentences[at].context) = scores[at];
        }
    }
}

impl Passage<'_> {
    /// Whether a word that is no name elsewhere occurs without a capital in another form: "uses" for "Use".
    pub fn is_inflected(&self, lower: &str) -> bool {
        let stem = stem(lower).filter(|_| !self.names.contains(lower));
        let mut words = self.sentences.iter().flat_map(|sentence| &sentence.words);
        stem.is_some() && words.any(|word| !word.capital && word.stem == stem)
    }

    /// Whether a capitalised word that begins a sentence is a name.
    pub fn is_name(&self, lower: &str) -> bool {
        self.names.contains(lower) || !self.common.contains(lower)
    }
}

impl Sentence {
    pub fn has(&self, stem: &str) -> bool {
        self.words.iter().any(|word| word.stem.as_deref() == Some(stem))
    }
}

fn idf(all: f32, with: f32) -> f32 {
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

fn idf_of_unseen(all: f32) -> f32 {
    idf(all, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_with_the_rarest_terms_of_the_question_is_first() {
        let texts = ["The town is old. The town has a mill.", "A flood destroyed the mill. It was rebuilt."];
        let question = Question::parse("When did the flood destroy the mill of the town?");
        let passage = Passage::read(&question, &texts);
        let best = passage.sentences.iter().find(|sentence| sentence.rank == 0).unwrap();
        assert_eq!(&texts[best.text][best.range.clone()], "A flood destroyed the mill.");
        assert!(passage.idf("flood") > passage.idf("town"));
    }

    #[test]
    fn a_first_word_is_a_name_unless_it_occurs_in_lower_case() {
        let texts = ["Jim slept. Students read. All students slept."];
        let passage = Passage::read(&Question::parse("Who slept?"), &texts);
        assert!(passage.is_name("jim") && !passage.is_name("students"));
        assert!(passage.is_inflected("student") && !passage.is_inflected("jim"));
    }
}
