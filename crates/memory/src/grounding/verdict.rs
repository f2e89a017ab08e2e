//! Does the evidence support a claim? A chain of vetoes over the best matching sentence.
//!
//! 1. *Locate* the sentence with most of the claim's words, weighted by rarity, and with similar meaning if the caller
//!    has vectors.
//! 2. *Veto*: every name, number and date of the claim, and its negations and comparisons, must be in that sentence;
//!    the words of a name one after the other. A name may also be in the sentence before or after, if the sentence has a
//!    pronoun or a part of the name and no other name in its place; the span is then both.
//! 3. *Contradicted* only where the rest of the claim matches and the sentence has another value of the same type, or the
//!    opposite negation or comparison.
//! 4. *Supported* without veto, with enough of the claim's other words, and with similar meaning where that is known.
//! 5. Times that a sentence gives by the day on which it was written ("yesterday") are dates of it.
//! 6. Where a judge can be asked, it decides claims without veto that are not in the sentence word for word and have at least
//!    half of their other words there.
//!
//! Similarity of meaning alone never supports a claim, and a judge never overrides a veto.

use std::collections::{BTreeSet, HashSet};

use chrono::NaiveDate;

use super::candidates::Place;
use super::features::MONTHS;
use super::passage::{Passage, Sentence};
use super::question::Question;
use super::relative::{Relative, long, relatives};
use super::values::{self, Number, Values};
use super::words::{Word, bare, words};

/// The relation of the evidence to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "place")]
pub enum Verdict {
    /// The span supports it.
    Supported(Place),
    /// The span contradicts it.
    Contradicted(Place),
    /// Neither was found.
    Unsupported,
}

/// A score of a claim and a span.
pub type PairScore<'a> = &'a dyn Fn(&str, &str) -> f32;

/// A model's word on whether a text supports a claim; `None` where it gave none, and the words decide.
pub type Judge<'a> = &'a dyn Fn(&str, &str) -> Option<bool>;

/// The day on which a place was written, if it is known.
pub type DayOf<'a> = &'a dyn Fn(Place) -> Option<NaiveDate>;

/// Evidence beyond the words, where it is available.
#[derive(Clone, Copy, Default)]
pub struct Checks<'a> {
    /// The day on which a place of the evidence was written, by which "yesterday" is a date.
    pub day: Option<DayOf<'a>>,
    /// Cosine similarity of the vectors of claim and span.
    pub similarity: Option<PairScore<'a>>,
    /// Reads a claim and the sentence of the evidence with those beside it; at most once for a claim.
    pub judge: Option<Judge<'a>>,
}

/// The share of a claim's words that are no values, weighted by rarity, that the span must have.
const LEAST_COVERAGE: f32 = 0.75;
/// The share of the rest that makes two statements be about the same.
const SAME_FRAME: f32 = 0.7;
/// The similarity that a supporting span must have.
const LEAST_SIMILARITY: f32 = 0.5;
/// The same share from which a judge is asked.
const OPEN_COVERAGE: f32 = 0.5;
/// Sentences that are looked at.
const LOCATED: usize = 3;

/// The verdict on one claim.
pub fn verify(claim: &str, evidence: &[&str], checks: Checks<'_>) -> Verdict {
    let as_question = Question { focus: None, ..Question::parse(claim) };
    let passage = Passage::read(&as_question, evidence);
    let mut order: Vec<usize> = (0..passage.sentences.len()).collect();
    order.sort_by_key(|at| passage.sentences[*at].rank);
    let stated = Statement::read(claim, &passage);
    if stated.terms.is_empty() && stated.values.numbers.is_empty() && stated.values.dates.is_empty() {
        return Verdict::Unsupported;
    }
    let (mut contradicted, mut open) = (None, None::<Open>);
    for at in order.into_iter().take(LOCATED) {
        match compare(&stated, claim, at, &passage, checks) {
            Finding::Supported(place) => return Verdict::Supported(place),
            Finding::Contradicted(place) => contradicted = contradicted.or(Some(Verdict::Contradicted(place))),
            Finding::Open(found) if open.as_ref().is_none_or(|known| found.is_enough && !known.is_enough) => {
                open = Some(found);
            }
            Finding::Open(_) | Finding::Nothing => (),
        }
    }
    if let (Some(Open { place, context, is_enough }), Some(judge)) = (open, checks.judge)
        && judge(claim, &context).unwrap_or(is_enough)
    {
        return Verdict::Supported(place);
    }
    contradicted.unwrap_or(Verdict::Unsupported)
}

/// What one sentence of the evidence says about a claim.
enum Finding {
    Supported(Place),
    Contradicted(Place),
    Open(Open),
    Nothing,
}

/// A sentence that does not veto the claim and does not have it word for word.
struct Open {
    place: Place,
    /// The sentence with those beside it, after the day on which it was written.
    context: String,
    /// Whether its words are enough without a judge.
    is_enough: bool,
}

/// A claim or a sentence of the evidence, taken apart.
struct Statement {
    words: Vec<Word>,
    /// In a fixed order, so that sums of floats are the same in every run.
    terms: BTreeSet<String>,
    values: Values,
    negated: bool,
    comparisons: HashSet<(usize, bool)>,
}

impl Statement {
    fn read(text: &str, passage: &Passage<'_>) -> Statement {
        let words = words(text);
        let is_name = |lower: &str| passage.is_name(lower);
        let content = words.iter().filter(|word| !is_negation(&word.lower));
        let terms = content.filter_map(|word| word.stem.clone()).collect();
        let negations = words.iter().filter(|word| is_negation(&word.lower)).count();
        let comparisons = words.iter().flat_map(|word| comparisons(&word.lower)).collect();
        Statement { terms, values: Values::read(text, &is_name), negated: negations % 2 == 1, comparisons, words }
    }

    /// Adds a relative time as what it means. "The week before 9 June 2023" is that date only for a claim about a week.
    fn add(&mut self, relative: &Relative, claim: &Statement) {
        let words = words(&relative.text);
        let stems: Vec<String> = words.iter().filter_map(|word| word.stem.clone()).collect();
        let is_date = |stem: &String| words.iter().any(|word| word.stem.as_ref() == Some(stem) && is_of_date(word));
        if stems.iter().all(|stem| is_date(stem) || claim.terms.contains(stem)) {
            self.values.dates.push(relative.date);
        }
        self.comparisons.extend(words.iter().flat_map(|word| comparisons(&word.lower)));
        self.terms.extend(stems);
    }
}

fn compare(stated: &Statement, claim: &str, at: usize, passage: &Passage<'_>, checks: Checks<'_>) -> Finding {
    let sentence = &passage.sentences[at];
    let text = |sentence: &Sentence| &passage.texts[sentence.text][sentence.range.clone()];
    let place = Place { text: sentence.text, start: sentence.range.start, end: sentence.range.end };
    let day = checks.day.and_then(|day| day(place));
    let mut shown = Statement::read(text(sentence), passage);
    for relative in day.map_or_else(Vec::new, |day| relatives(text(sentence), day)) {
        shown.add(&relative, stated);
    }
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| passage.sentences.get(at));
    let beside: Vec<&Sentence> = beside.filter(|other| other.text == sentence.text).collect();

    let faults = faults(stated, &shown, &beside);
    let valued = valued(stated);
    let frame: Vec<&String> = stated.terms.iter().filter(|term| !valued.contains(*term)).collect();
    let total: f32 = frame.iter().map(|term| passage.idf(term)).sum();
    let found: f32 = frame.iter().filter(|term| shown.terms.contains(**term)).map(|term| passage.idf(term)).sum();
    let coverage = if frame.is_empty() { 1.0 } else { found / total };
    if faults.is_empty() {
        let similar = checks.similarity.is_none_or(|similarity| similarity(claim, text(sentence)) >= LEAST_SIMILARITY);
        let is_enough = coverage >= LEAST_COVERAGE;
        let place = with_names(place, stated, &shown, &beside);
        return match checks.judge {
            _ if !similar => Finding::Nothing,
            None if is_enough => Finding::Supported(place),
            Some(_) if is_enough && is_verbatim(stated, &shown) => Finding::Supported(place),
            Some(_) if coverage >= OPEN_COVERAGE => {
                let around = beside.iter().copied().chain([sentence]);
                let start = around.clone().map(|sentence| sentence.range.start).min().unwrap_or(place.start);
                let end = around.map(|sentence| sentence.range.end).max().unwrap_or(place.end);
                let context = passage.texts[sentence.text][start..end].to_owned();
                let context = day.map_or(context.clone(), |day| format!("({}) {context}", long(day)));
                Finding::Open(Open { place, context, is_enough })
            }
            _ => Finding::Nothing,
        };
    }
    let one_rival = faults.len() == 1 && faults[0].has_rival;
    match one_rival && !frame.is_empty() && coverage >= SAME_FRAME {
        true => Finding::Contradicted(place),
        false => Finding::Nothing,
    }
}

/// Whether a word is a number or the name of a month.
fn is_of_date(word: &Word) -> bool {
    word.number || MONTHS.contains(&word.lower.as_str())
}

/// Whether the words of a claim are in the span one after the other.
fn is_verbatim(stated: &Statement, shown: &Statement) -> bool {
    let is_here = |run: &[Word]| run.iter().zip(&stated.words).all(|(a, b)| a.lower == b.lower);
    shown.words.windows(stated.words.len().max(1)).any(is_here)
}

/// The span of a sentence and of those beside it that hold names which it only refers to.
fn with_names(mut place: Place, stated: &Statement, shown: &Statement, beside: &[&Sentence]) -> Place {
    for name in stated.values.names.iter().filter(|name| !has_name(name, &shown.words)) {
        if let Some(other) = beside.iter().find(|other| has_name(name, &other.words)) {
            place.start = place.start.min(other.range.start);
            place.end = place.end.max(other.range.end);
        }
    }
    place
}

/// Stems that belong to names, numbers or comparisons, which are compared by themselves.
fn valued(stated: &Statement) -> HashSet<String> {
    let named: HashSet<&str> = stated.values.names.iter().flatten().map(String::as_str).collect();
    let is_valued =
        |word: &&Word| word.number || named.contains(bare(&word.lower)) || !comparisons(&word.lower).is_empty();
    stated.words.iter().filter(is_valued).filter_map(|word| word.stem.clone()).collect()
}

/// A value of the claim that the span does not have.
struct Fault {
    /// The span has another value of the same type in its place.
    has_rival: bool,
}

fn faults(stated: &Statement, shown: &Statement, beside: &[&Sentence]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (said, given) = (&stated.values, &shown.values);
    for name in &said.names {
        let part_of_name = |word: &Word| name.iter().any(|part| same_name(part, bare(&word.lower)));
        let refers = || shown.words.iter().any(|word| PRONOUNS.contains(&word.lower.as_str()) || part_of_name(word));
        let is_near = || beside.iter().any(|other| has_name(name, &other.words));
        if !(has_name(name, &shown.words) || refers() && is_near() && !is_replaced(name, stated, shown)) {
            let rival =
                given.names.iter().any(|other| !said.names.iter().any(|name| name.iter().any(|p| other.contains(p))));
            faults.push(Fault { has_rival: rival });
        }
    }
    for number in &said.numbers {
        if !given.numbers.iter().any(|other| same_number(number, other, shown)) {
            let rival =
                |other: &Number| other.unit == number.unit && !said.numbers.iter().any(|n| n.value == other.value);
            faults.push(Fault { has_rival: given.numbers.iter().any(rival) });
        }
    }
    for date in &said.dates {
        if !given.dates.iter().any(|other| other.bears_out(date)) {
            let rival = given
                .dates
                .iter()
                .any(|other| other.year.is_some() == date.year.is_some() && !said.dates.contains(other));
            faults.push(Fault { has_rival: rival });
        }
    }
    if stated.negated != shown.negated {
        faults.push(Fault { has_rival: true });
    }
    for (pair, side) in &stated.comparisons {
        if !shown.comparisons.contains(&(*pair, *side)) {
            faults.push(Fault { has_rival: shown.comparisons.contains(&(*pair, !*side)) });
        }
    }
    if turned(stated, shown) {
        faults.push(Fault { has_rival: false });
    }
    faults
}

/// Whether the span has a name that the claim does not have, between the same two words between which the claim has this one:
/// "a French party left" does not support "a British party left", even if the sentence before speaks of the British.
fn is_replaced(name: &[String], stated: &Statement, shown: &Statement) -> bool {
    let is_here = |run: &[Word]| name.iter().zip(run).all(|(part, word)| part == bare(&word.lower));
    let Some(at) = stated.words.windows(name.len().max(1)).position(is_here) else { return false };
    let before = at.checked_sub(1).map(|at| &stated.words[at].lower);
    let after = stated.words.get(at + name.len()).map(|word| &word.lower);
    let is_other = |word: &Word| {
        word.capital && !word.is_function() && !stated.words.iter().any(|known| known.lower == word.lower)
    };
    let words = &shown.words;
    // The other name begins at `from`, behind the same word or with the sentence.
    let begins = |from: &usize| match before {
        Some(before) => *from > 0 && words[*from - 1].lower == *before,
        None => *from == 0,
    };
    (0..words.len()).filter(begins).any(|from| {
        let length = words[from..].iter().take_while(|word| is_other(word)).count();
        length > 0 && after.is_none_or(|after| words.get(from + length).is_some_and(|word| word.lower == *after))
    })
}

/// Two names in one order in the claim and only in the other in the span, both in the active or both in the passive voice:
/// "A beat B" does not support "B beat A".
fn turned(stated: &Statement, shown: &Statement) -> bool {
    let first = |words: &[Word], name: &str| words.iter().position(|word| bare(&word.lower) == name);
    let last = |words: &[Word], name: &str| words.iter().rposition(|word| bare(&word.lower) == name);
    let passive = |words: &[Word]| words.iter().any(|word| word.lower == "by");
    let heads: Vec<&str> = stated.values.names.iter().filter_map(|name| name.last()).map(String::as_str).collect();
    passive(&stated.words) == passive(&shown.words)
        && heads.windows(2).filter(|pair| pair[0] != pair[1]).any(|pair| {
            match (first(&shown.words, pair[0]), last(&shown.words, pair[1])) {
                (Some(before), Some(after)) => before > after,
                _ => false,
            }
        })
}

/// The words of a name one after the other, or initials in place of some of them.
pub(super) fn has_name(name: &[String], words: &[Word]) -> bool {
    (0..words.len()).any(|at| begins_with(name, &words[at..]))
}

/// "US" and "United States" are the same: an acronym and the capitalised words that it is of.
fn begins_with(name: &[String], words: &[Word]) -> bool {
    let Some(part) = name.first() else { return true };
    let Some(word) = words.first() else { return false };
    let lower = bare(&word.lower);
    if same_name(part, lower) && begins_with(&name[1..], &words[1..]) {
        return true;
    }
    let spelled_out = |initials: &[char]| {
        let words = words.get(..initials.len()).filter(|words| words.iter().all(|word| word.capital));
        words.is_some_and(|words| words.iter().zip(initials).all(|(word, initial)| word.lower.starts_with(*initial)))
    };
    let shortened = |initials: &[char]| {
        let parts = name.get(..initials.len()).filter(|_| word.acronym);
        parts.is_some_and(|parts| parts.iter().zip(initials).all(|(part, initial)| part.starts_with(*initial)))
    };
    let (of_part, of_word) = (initials(part), initials(lower));
    (INITIALS.contains(&of_part.len()) && spelled_out(&of_part) && begins_with(&name[1..], &words[of_part.len()..]))
        || (INITIALS.contains(&of_word.len())
            && shortened(&of_word)
            && begins_with(&name[of_word.len()..], &words[1..]))
}

/// Letters of an acronym.
const INITIALS: std::ops::RangeInclusive<usize> = 2..=5;

/// The letters of a possible acronym, without dots.
fn initials(lower: &str) -> Vec<char> {
    lower.chars().filter(|c| *c != '.').collect()
}

/// The same word, or one is the initial of the other.
fn same_name(a: &str, b: &str) -> bool {
    let initial = |short: &str, long: &str| short.chars().count() == 1 && long.starts_with(short);
    let dotted = || (a.contains('.') || b.contains('.')) && initials(a) == initials(b);
    a == b || initial(a, b) || initial(b, a) || dotted()
}

/// Equal values, and the unit of the claim near the number of the span unless that has none.
fn same_number(said: &Number, given: &Number, shown: &Statement) -> bool {
    let equal = values::is_equal(said.value, given.value);
    let near = |unit: &String| {
        let window = given.at.start.saturating_sub(3)..(given.at.end + 4).min(shown.words.len());
        shown.words[window].iter().any(|word| word.stem.as_ref() == Some(unit))
    };
    equal && said.unit.as_ref().is_none_or(|unit| given.unit.as_ref().is_none_or(|other| other == unit) || near(unit))
}

/// What a sentence can refer to a name by that is in the sentence before or after.
const PRONOUNS: [&str; 12] = ["he", "she", "it", "they", "his", "her", "hers", "its", "their", "him", "them", "who"];

fn is_negation(lower: &str) -> bool {
    NEGATIONS.contains(&lower) || lower.ends_with("n't")
}

/// The pairs of opposites that a word is of, and which side it is.
fn comparisons(lower: &str) -> Vec<(usize, bool)> {
    let side = |list: &str| list.split(' ').any(|word| word == lower);
    let pairs = OPPOSITES.iter().enumerate();
    pairs.flat_map(|(at, (a, b))| [side(a).then_some((at, true)), side(b).then_some((at, false))]).flatten().collect()
}

const NEGATIONS: [&str; 13] = [
    "not", "no", "never", "none", "neither", "nor", "without", "nobody", "nothing", "cannot", "hardly", "unable",
    "failed",
];

const OPPOSITES: [(&str, &str); 18] = [
    ("more greater", "less fewer"),
    ("most", "least fewest"),
    ("before prior earlier", "after later following"),
    ("older oldest elder", "younger youngest"),
    ("larger bigger largest biggest", "smaller smallest"),
    ("higher highest above", "lower lowest below"),
    ("longer longest", "shorter shortest"),
    ("first", "last"),
    ("increase increased increases rose grew", "decrease decreased decreases fell shrank"),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
    ("best better", "worst worse"),
    ("all always every", "some sometimes"),
    ("won win wins", "lost lose loses"),
    ("bought buy buys", "sold sell sells"),
    ("male men man", "female women woman"),
    ("success successful", "failure unsuccessful"),
    ("accepted allowed", "rejected forbidden banned refused"),
];
