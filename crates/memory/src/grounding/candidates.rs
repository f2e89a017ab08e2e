//! Candidate answers: spans of the best sentences of the evidence that could be a short answer.
//!
//! A span is a run of at most eight words between function words and hard punctuation (of at most fourteen where a clause
//! ends), a whole quotation, a list, or an option of the question. All such runs are proposed and ranked by a linear model
//! over surface features ([`super::weights`]); the best [`MOST`] are kept. Casing and bytes are those of the source.

use std::collections::HashMap;

use super::features::{FEATURES, IS_OPTION, REPEATS, Shape, features};
use super::passage::{Passage, Sentence};
use super::question::Question;
use super::weights;
use super::words::{Word, normal_form, words};

/// Most candidates of one question.
pub const MOST: usize = 96;

/// Sentences of the evidence that candidates are taken from.
const SENTENCES: usize = 8;

/// Words of a run.
const LONGEST: usize = 8;
/// Words of a run that ends where a clause ends.
const LONGEST_CLAUSE: usize = 14;
const LONGEST_QUOTE: usize = 20;

/// A span of one of the evidence texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// Which of the texts, from 0.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// One after the last byte.
    pub end: usize,
}

impl Place {
    /// Whether another place is within this one.
    pub(crate) fn holds(&self, other: &Place) -> bool {
        self.text == other.text && self.start <= other.start && other.end <= self.end
    }

    /// Whether they share a byte.
    pub(crate) fn overlaps(&self, other: &Place) -> bool {
        self.text == other.text && self.start < other.end && other.start < self.end
    }
}

/// A possible answer.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// As the source has it.
    pub text: String,
    /// Where it occurs in the best sentences, the best place first; empty for an option that none of them names.
    pub places: Vec<Place>,
    pub shape: Shape,
    /// The rank score without likelihoods, in natural-logarithm units.
    pub surface: f32,
    /// What the rank score is computed from.
    pub features: Vec<f32>,
}

/// The candidates of a question, best first by surface score.
pub(super) fn propose(question: &Question, passage: &Passage<'_>, most: usize) -> Vec<Candidate> {
    let mut merged: Vec<Candidate> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut best: Vec<&Sentence> = passage.sentences.iter().filter(|sentence| sentence.rank < SENTENCES).collect();
    best.sort_by_key(|sentence| sentence.rank);
    for sentence in best {
        for (from, to) in runs(passage, sentence) {
            let place = Place {
                text: sentence.text,
                start: sentence.words[from].range.start,
                end: sentence.words[to - 1].range.end,
            };
            let text = &passage.texts[place.text][place.start..place.end];
            let normal = normal_form(text);
            if normal.is_empty() {
                continue;
            }
            let is_option = question.options.iter().any(|option| normal_form(option) == normal);
            let (features, shape) = features(question, passage, sentence, (from, to), is_option);
            let surface = weights::surface(&features);
            if let Some(at) = known.get(&normal) {
                merge(&mut merged[*at], text, place, shape, surface, features);
            } else {
                known.insert(normal, merged.len());
                merged.push(Candidate { text: text.to_owned(), places: vec![place], shape, surface, features });
            }
        }
    }
    for option in question.options.iter().filter(|option| !known.contains_key(&normal_form(option))) {
        let (features, surface) = option_alone();
        let (text, shape) = (option.clone(), Shape::FullName);
        merged.push(Candidate { text, places: Vec::new(), shape, surface, features });
    }
    for candidate in &mut merged {
        candidate.features[REPEATS] = (candidate.places.len().max(1) as f32).ln();
        let agreement = question.agreement(&words(&candidate.text));
        candidate.surface = weights::surface(&candidate.features) + weights::AGREEMENT * agreement;
    }
    merged.sort_by(|a, b| b.surface.total_cmp(&a.surface));
    merged.truncate(most);
    merged
}

/// The features and the surface score of an option of the question that the best sentences do not name.
fn option_alone() -> (Vec<f32>, f32) {
    let mut features = vec![0.0; FEATURES];
    features[IS_OPTION] = 1.0;
    let surface = weights::surface(&features);
    (features, surface)
}

/// Adds an occurrence; the one with the better score gives text, shape and features.
fn merge(known: &mut Candidate, text: &str, place: Place, shape: Shape, surface: f32, features: Vec<f32>) {
    if surface > known.surface {
        known.places.insert(0, place);
        *known =
            Candidate { text: text.to_owned(), places: std::mem::take(&mut known.places), shape, surface, features };
    } else {
        known.places.push(place);
    }
}

/// Ranges of words of a sentence that may be an answer.
fn runs(passage: &Passage<'_>, sentence: &Sentence) -> Vec<(usize, usize)> {
    let text = passage.texts[sentence.text];
    let words = &sentence.words;
    let mut runs = Vec::new();
    for from in 0..words.len() {
        if !may_begin(words, from, text) {
            continue;
        }
        let mut commas = 0;
        for to in from + 1..=words.len().min(from + LONGEST_CLAUSE) {
            if to > from + 1 {
                match Gap::between(&words[to - 2], &words[to - 1], text) {
                    Gap::Hard => break,
                    Gap::Comma => commas += 1,
                    Gap::Soft => (),
                }
            }
            if commas > MAX_COMMAS {
                break;
            }
            let is_short = to - from <= LONGEST || ends_clause(words, to, text);
            if is_short && may_end(words, to - 1, text) {
                runs.push((from, to));
            }
        }
    }
    runs.extend(quotations(words, text));
    runs.sort_unstable();
    runs.dedup();
    runs
}

/// Commas of a list or a date inside one run.
const MAX_COMMAS: usize = 3;

/// A mark or a function word follows.
fn ends_clause(words: &[Word], to: usize, text: &str) -> bool {
    words
        .get(to)
        .is_none_or(|next| next.is_function() || !text[words[to - 1].range.end..next.range.start].trim().is_empty())
}

fn may_begin(words: &[Word], at: usize, text: &str) -> bool {
    (!words[at].is_function() || OPENERS.contains(&words[at].lower.as_str()))
        && !text[..words[at].range.start].ends_with(JOINTS)
        && !is_tag(words, at, text)
}

/// The verb of speaking behind a quotation: `"I buy hair," said Madame`.
fn is_tag(words: &[Word], at: usize, text: &str) -> bool {
    SPEAKING.contains(&words[at].lower.as_str()) && text[..words[at].range.start].trim_end().ends_with(['"', '”', '»'])
}

const SPEAKING: [&str; 10] =
    ["said", "says", "asked", "cried", "replied", "answered", "whispered", "shouted", "exclaimed", "added"];

fn may_end(words: &[Word], at: usize, text: &str) -> bool {
    let continues = text[words[at].range.end..].starts_with(JOINTS) && joined_on(words, at);
    !words[at].is_function() && !continues
}

fn joined_on(words: &[Word], at: usize) -> bool {
    words.get(at + 1).is_some_and(|next| next.range.start == words[at].range.end + 1)
}

/// Function words that an answer may begin with.
const OPENERS: [&str; 22] = [
    "over", "about", "more", "most", "no", "other", "his", "her", "its", "their", "some", "all", "both", "between",
    "under", "within", "after", "before", "until", "through", "to", "not",
];

/// What joins two words into one.
const JOINTS: [char; 3] = ['-', '/', '&'];

/// What is between two words.
enum Gap {
    Soft,
    Comma,
    Hard,
}

impl Gap {
    fn between(left: &Word, right: &Word, text: &str) -> Gap {
        let gap = &text[left.range.end..right.range.start];
        let marks: Vec<char> = gap.chars().filter(|c| !c.is_whitespace()).collect();
        match marks[..] {
            [] | ['-' | '–' | '/' | '&' | '\'' | '’' | '"' | '”' | '“'] => Gap::Soft,
            [',' | '(' | ')' | '['] | ['"' | '”' | ')', ','] | [',', '"' | '”'] => Gap::Comma,
            // Initials and abbreviations.
            ['.'] if left.range.len() <= 3 && !left.number => Gap::Soft,
            _ => Gap::Hard,
        }
    }
}

/// The text between quotation marks, up to a length.
fn quotations(words: &[Word], text: &str) -> Vec<(usize, usize)> {
    let opens = |word: &Word| text[..word.range.start].ends_with(['"', '“', '«']);
    let closes =
        |word: &Word| text[word.range.end..].trim_start_matches([',', '.', '!', '?']).starts_with(['"', '”', '»']);
    let starts = words.iter().enumerate().filter(|(_, word)| opens(word));
    let end = |from: usize| words[from..].iter().take(LONGEST_QUOTE).position(closes).map(|at| from + at + 1);
    starts.filter_map(|(from, _)| Some((from, end(from)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(question: &str, evidence: &[&str], most: usize) -> Vec<String> {
        let question = Question::parse(question);
        let passage = Passage::read(&question, evidence);
        propose(&question, &passage, most).into_iter().map(|candidate| candidate.text).collect()
    }

    #[test]
    fn names_numbers_dates_quotations_and_lists_are_proposed() {
        let text =
            "On February 7, 2016 Dr. Ann Lee paid $1.87 for \"The Long Road\", red, white and blue paint and 6½ nails.";
        let found = texts("What did Ann Lee pay for?", &[text], usize::MAX);
        for want in ["February 7, 2016", "Ann Lee", "$1.87", "The Long Road", "red, white and blue paint"] {
            assert!(found.iter().any(|text| normal_form(text) == normal_form(want)), "{want} is not among {found:?}");
        }
    }

    #[test]
    fn runs_do_not_cross_the_end_of_a_sentence_and_are_capped() {
        let text = "Alpha beta gamma delta. Epsilon zeta eta theta! ".repeat(40);
        let found = texts("Who is zeta?", &[&text], MOST);
        assert!(found.len() <= MOST && !found.is_empty());
        assert!(found.iter().all(|text| !text.contains(['.', '!'])));
    }

    #[test]
    fn a_verb_of_speaking_behind_a_quotation_begins_no_candidate() {
        let found = texts("Who buys hair?", &["\"I buy hair,\" said Madame."], MOST);
        assert!(
            found.contains(&"Madame".to_owned()) && !found.iter().any(|text| text.starts_with("said")),
            "{found:?}"
        );
    }

    #[test]
    fn duplicates_are_merged_by_normal_form() {
        let evidence = ["He met the King of Spain.", "The king of Spain met him."];
        let question = Question::parse("Who met him?");
        let passage = Passage::read(&question, &evidence);
        let found = propose(&question, &passage, MOST);
        let kings: Vec<&Candidate> = found.iter().filter(|c| normal_form(&c.text) == "king of spain").collect();
        assert_eq!(kings.len(), 1);
        assert_eq!(kings[0].places.len(), 2);
        let Place { text, start, end } = kings[0].places[0];
        assert_eq!(evidence[text][start..end], kings[0].text);
    }

    #[test]
    fn options_of_the_question_are_candidates_even_if_the_text_has_only_one() {
        let found = texts("Who is older, Ann Lee or Bo Ek?", &["Ann Lee was born in 1950."], MOST);
        assert!(found.contains(&"Ann Lee".to_owned()) && found.contains(&"Bo Ek".to_owned()));
    }
}
