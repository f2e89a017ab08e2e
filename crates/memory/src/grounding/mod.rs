//! Short answers as spans of the shown evidence, verdicts on the sentences of an answer, and abstention.
//!
//! Answers use them through `core::span` and `core::support`.
//!
//! Plain functions over strings. Nothing here calls a model: what a model adds comes in as numbers (log-probabilities of
//! candidates, similarities of sentences) that the caller computed.

mod abstain;
mod asking;
mod asserted;
#[cfg(test)]
mod asserted_tests;
mod attribution;
mod blocks;
mod both;
mod candidates;
mod cells;
mod checked;
mod choose;
mod claims;
#[cfg(test)]
mod clause_tests;
mod compared;
mod dated;
mod dates;
mod days;
mod defined;
mod dimension;
mod enumerated;
mod faults;
mod features;
mod hedges;
mod linked;
mod mail;
mod measure;
mod naming;
mod near;
mod negation;
mod numbers;
mod occurrences;
mod offered;
mod opposites;
mod pairing;
mod passage;
mod plain;
mod predicates;
pub mod prompt;
mod question;
mod reading;
mod relative;
mod roles;
mod speech;
mod stated;
#[cfg(test)]
mod stated_tests;
mod statement;
#[cfg(test)]
mod statement_tests;
mod subject;
mod superseded;
mod things;
#[cfg(test)]
mod things_tests;
mod times;
mod turn;
mod typed;
mod unnamed;
mod values;
mod verdict;
#[cfg(test)]
mod verdict_tests;
mod weights;
mod words;

pub(crate) use abstain::logistic;
pub use abstain::{ABSTENTION_FEATURES, THRESHOLD};
pub(crate) use blocks::paragraphs;
pub use blocks::{Block, blocks};
pub(crate) use both::same_for_both;
pub use candidates::{Candidate, MOST, Place};
pub use cells::shown;
pub use checked::{Checked, check, citations, supported_share};
pub use choose::{Chosen, Draft, NOT_THERE, ShortAnswer};
pub use claims::{Claim, claims};
pub(crate) use compared::counted_option;
pub(crate) use dated::dated_option;
pub(crate) use enumerated::enumeration;
pub use features::{FEATURES, Shape, names as feature_names};
pub(crate) use linked::{is_about_one, leading_names, linked};
pub use measure::{ReliabilityBin, auroc, brier, reliability};
pub(crate) use near::nearest_spelling;
pub use occurrences::occurrences;
pub use plain::states_plainly;
pub use question::Kind;
pub use reading::{READING_SIGNALS, Reading, Signals};
pub(crate) use relative::{day_of, resolved};
pub use stated::{Stating, can_state};
pub(crate) use stated::{is_of_another, is_value_for_person, speakers};
pub use typed::AnswerType;
pub use verdict::{Checks, DayOf, Judge, PairScore, Verdict, verify};
pub(crate) use words::is_function;
pub use words::normal_form;

use passage::Passage;
use question::Question;

/// At most `most` candidates for a short answer to a question in the evidence texts, best first by surface score.
pub fn candidates(question: &str, evidence: &[&str], most: usize) -> Vec<Candidate> {
    let question = Question::parse(question);
    let passage = Passage::read(&question, evidence);
    candidates::propose(&question, &passage, most)
}

/// The sentences of the evidence that match a question best, at most `most`, in the order of the evidence.
pub fn best_sentences(question: &str, evidence: &[&str], most: usize) -> Vec<Place> {
    let passage = Passage::read(&Question::parse(question), evidence);
    let best = passage.sentences.iter().filter(|sentence| sentence.rank < most);
    best.map(|sentence| Place { text: sentence.text, start: sentence.range.start, end: sentence.range.end }).collect()
}

/// The stems of a text's content words, in order; function and question words have none.
pub fn content_words(text: &str) -> Vec<String> {
    words::words(text).into_iter().filter_map(|word| word.stem).collect()
}

/// What a question asks for.
pub fn kind(question: &str) -> Kind {
    Question::parse(question).kind
}
