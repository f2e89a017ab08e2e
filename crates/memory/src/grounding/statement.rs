//! A claim or a sentence of the evidence, taken apart.

use std::collections::{BTreeSet, HashSet};

use super::dimension::adjective_of;
use super::features::MONTHS;
use super::negation::Clauses;
use super::opposites::{comparisons, goings};
use super::passage::Passage;
use super::relative::Relative;
use super::values::Values;
use super::words::{Word, is_contraction, words};

/// A claim or a sentence of the evidence, taken apart.
pub(super) struct Statement {
    pub words: Vec<Word>,
    /// In a fixed order, so that sums of floats are the same in every run.
    pub terms: BTreeSet<String>,
    pub values: Values,
    pub clauses: Clauses,
    pub comparisons: HashSet<(usize, bool)>,
    /// Terms of the answer, where the statement is a question with its answer.
    pub answer: BTreeSet<String>,
    /// Names that a pronoun refers to, where they are known.
    pub about: Vec<Vec<String>>,
    /// The stem of the noun that a pronoun refers to, where it is known and there is no name.
    pub topic: Option<String>,
}

impl Statement {
    pub fn read(text: &str, passage: &Passage<'_>) -> Statement {
        let words = words(text);
        let is_name = |lower: &str| passage.is_name(lower) && !passage.is_inflected(lower);
        let clauses = Clauses::read(&words, text);
        let is_content = |at: usize, word: &Word| !clauses.negates(at) && !is_contraction(&word.lower);
        let content = words.iter().enumerate().filter(|(at, word)| is_content(*at, word));
        let values = Values::read(text, &is_name);
        // Units are terms as they are compared: "%" for "percent", "kilometre" for "km".
        let is_unit = |at: usize| values.numbers.iter().any(|number| number.unit_at.contains(&at));
        // "A depth of 40 m" tells how deep something is.
        let term = |word: &Word| word.stem.clone().map(|stem| adjective_of(&word.lower).map_or(stem, str::to_owned));
        let plain = content.filter(|(at, _)| !is_unit(*at)).filter_map(|(_, word)| term(word));
        let units = values.numbers.iter().filter_map(|number| number.unit_term().map(str::to_owned));
        let terms = plain.chain(units).collect();
        let comparisons = words.iter().flat_map(|word| comparisons(&word.lower)).chain(goings(&words)).collect();
        Statement {
            terms,
            values,
            clauses,
            comparisons,
            words,
            answer: BTreeSet::new(),
            about: Vec::new(),
            topic: None,
        }
    }

    /// Adds a relative time as what it means. "The week before 9 June 2023" is that date only for a claim about a week.
    pub fn add(&mut self, relative: &Relative, claim: &Statement) {
        let words = words(&relative.text);
        let stems: Vec<String> = words.iter().filter_map(|word| word.stem.clone()).collect();
        let is_date = |stem: &String| words.iter().any(|word| word.stem.as_ref() == Some(stem) && is_of_date(word));
        if stems.iter().all(|stem| is_date(stem) || claim.terms.contains(stem)) {
            self.values.dates.push((relative.date, None));
        }
        self.comparisons.extend(words.iter().flat_map(|word| comparisons(&word.lower)));
        self.terms.extend(stems);
    }
}

/// Whether a word is a number or the name of a month.
fn is_of_date(word: &Word) -> bool {
    word.number || MONTHS.contains(&word.lower.as_str())
}
