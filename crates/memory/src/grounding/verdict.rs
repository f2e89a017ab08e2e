//! Does the evidence support a claim? A chain of vetoes over the best matching sentence.
//!
//! 1. *Locate* the sentence with most of the claim's words, weighted by rarity, and with similar meaning if the caller
//!    has vectors.
//! 2. *Veto*: every name, number, code and date of the claim, and its negations and comparisons, must be in that sentence;
//!    the words of a name one after the other. A name may also be in the sentence before or after, if the sentence has a
//!    pronoun or a part of the name and no other name in its place; the span is then both. Its last part is enough where the
//!    text has the full name and no other with this part. A name may be the speaker of the turn, if the sentence speaks in the
//!    first person; the span then begins with the turn.
//! 3. *Contradicted* only where the rest of the claim matches and the sentence has another value of the same type, or the
//!    opposite negation or comparison.
//! 4. *Supported* without veto, with enough of the claim's other words, and with similar meaning where that is known. Of a
//!    question with its answer, enough of the answer's own words must be there too.
//! 5. Times that a sentence gives by the day on which it was written ("yesterday") are dates of it.
//! 6. Where a judge can be asked, it decides claims without veto that are not word for word a main clause of the sentence and
//!    have at least half of their other words there. It also decides what the words leave in doubt: a negation that may be of
//!    another clause, a date that is only the day on which the sentence was written, a value or a time of another clause, a
//!    sentence that asks, only considers or only reports, another word in the place of one. Without a judge such a claim is
//!    unsupported.
//!
//! Similarity of meaning alone never supports a claim, and a judge never overrides a veto.

use std::collections::HashSet;

use chrono::NaiveDate;

use super::asserted::is_main_clause;
use super::candidates::Place;
use super::faults::{Fault, Shown, faults, is_named};
use super::naming::has_name;
use super::opposites::comparisons;
use super::passage::{Passage, Sentence};
use super::question::Question;
use super::relative::{long, relatives};
use super::statement::Statement;
use super::subject::referred;
use super::values::{is_title, weekday};
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
    /// The path of each text of the evidence, if claims may name it.
    pub paths: &'a [&'a str],
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

/// A claim as it is compared with the evidence.
#[derive(Default)]
pub(super) struct Compared<'a> {
    /// What a judge reads, and what the meaning is compared by.
    pub claim: &'a str,
    /// What the words are compared by.
    pub statement: &'a str,
    /// The part of a statement that answers a question, whose words must be in the sentence however many of the question's are;
    /// empty for a claim that states something by itself.
    pub answer: &'a str,
    /// Names, in lower-case words, that a pronoun of the claim refers to.
    pub about: Vec<Vec<String>>,
    /// The stem of a noun that it refers to.
    pub topic: Option<String>,
    /// The stem of what a number without a unit counts.
    pub counted: Option<String>,
}

/// The verdict on one claim.
pub fn verify(claim: &str, evidence: &[&str], checks: Checks<'_>) -> Verdict {
    verify_compared(Compared { claim, statement: claim, ..Compared::default() }, evidence, checks)
}

pub(super) fn verify_compared(compared: Compared<'_>, evidence: &[&str], checks: Checks<'_>) -> Verdict {
    let Compared { claim, statement, answer, about, topic, counted } = compared;
    let as_question = Question { focus: None, ..Question::parse(statement) };
    let passage = Passage::read(&as_question, evidence);
    let mut order: Vec<usize> = (0..passage.sentences.len()).collect();
    order.sort_by_key(|at| passage.sentences[*at].rank);
    let answer = words(answer).into_iter().filter_map(|word| word.stem).collect();
    let mut stated = Statement { answer, about, topic, ..Statement::read(statement, &passage) };
    for number in stated.values.numbers.iter_mut().filter(|number| number.unit.is_none()) {
        number.unit.clone_from(&counted);
    }
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

/// A sentence that does not veto the claim and does not have it as a main clause, or leaves it in doubt.
struct Open {
    place: Place,
    /// The sentence with those beside it, after the day on which it was written.
    context: String,
    /// Whether its words are enough without a judge.
    is_enough: bool,
}

fn compare(stated: &Statement, claim: &str, at: usize, passage: &Passage<'_>, checks: Checks<'_>) -> Finding {
    let sentence = &passage.sentences[at];
    let text = |sentence: &Sentence| &passage.texts[sentence.text][sentence.range.clone()];
    let place = Place { text: sentence.text, start: sentence.range.start, end: sentence.range.end };
    let day = checks.day.and_then(|day| day(place));
    let mut read = Statement::read(text(sentence), passage);
    for relative in day.map_or_else(Vec::new, |day| relatives(text(sentence), day)) {
        read.add(&relative, stated);
    }
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| passage.sentences.get(at));
    let beside: Vec<&Sentence> = beside.filter(|other| other.text == sentence.text).collect();
    let before = beside.iter().find(|other| other.range.start < sentence.range.start);
    let referred: Vec<String> = before.map_or_else(Vec::new, |before| referred(&before.words, &read.words));
    let is_needed = referred.iter().any(|stem| stated.terms.contains(stem) && !read.terms.contains(stem));
    read.terms.extend(referred);
    let whole = passage.texts[sentence.text];
    let range = sentence.range.clone();
    let of_text: Vec<&Sentence> = passage.sentences.iter().filter(|other| other.text == sentence.text).collect();
    let shown = Shown { stated: &read, text: whole, range, whole: &of_text, beside: &beside, day };

    let mut faults = faults(stated, &shown);
    let is_doubtful = faults.contains(&Fault::Doubt);
    faults.retain(|fault| *fault != Fault::Doubt);
    let valued = valued(stated);
    let frame: Vec<&String> = stated.terms.iter().filter(|term| !valued.contains(*term)).collect();
    let coverage_of = |terms: &[&String]| {
        let total: f32 = terms.iter().map(|term| passage.idf(term)).sum();
        let found: f32 = terms.iter().filter(|term| read.terms.contains(**term)).map(|term| passage.idf(term)).sum();
        if terms.is_empty() { 1.0 } else { found / total }
    };
    let answer: Vec<&String> = frame.iter().copied().filter(|term| stated.answer.contains(*term)).collect();
    let coverage = coverage_of(&frame);
    // Names alone are not what a question asks: "Who is Ann? Bob".
    let is_counted = stated.values.numbers.iter().any(|own| own.unit.is_some() && read.values.counts(own));
    let is_bare = !stated.answer.is_empty() && frame.is_empty() && stated.comparisons.is_empty() && !is_counted;
    let is_doubtful = is_doubtful || is_bare;
    if faults.is_empty() {
        let similar = checks.similarity.is_none_or(|similarity| similarity(claim, text(sentence)) >= LEAST_SIMILARITY);
        let is_enough = coverage.min(coverage_of(&answer)) >= LEAST_COVERAGE && !is_doubtful;
        let mut place = with_names(place, stated, &shown);
        if let Some(before) = before.filter(|_| is_needed) {
            place.start = place.start.min(before.range.start);
        }
        return match checks.judge {
            _ if !similar => Finding::Nothing,
            None if is_enough => Finding::Supported(place),
            Some(_) if is_enough && is_main_clause(&stated.words, &read.words, &read.clauses) => {
                Finding::Supported(place)
            }
            Some(_) if coverage >= OPEN_COVERAGE => {
                let around = beside.iter().copied().chain([sentence]);
                let start = around.clone().map(|sentence| sentence.range.start).chain([place.start]).min();
                let end = around.map(|sentence| sentence.range.end).max().unwrap_or(place.end);
                let context = whole[start.unwrap_or(place.start)..end].to_owned();
                let context = day.map_or(context.clone(), |day| format!("({}) {context}", long(day)));
                Finding::Open(Open { place, context, is_enough })
            }
            _ => Finding::Nothing,
        };
    }
    match faults[..] == [Fault::Rival] && !is_doubtful && !frame.is_empty() && coverage >= SAME_FRAME {
        true => Finding::Contradicted(place),
        false => Finding::Nothing,
    }
}

/// The span of a sentence and of what holds the names that it only refers to: the sentence beside it, or the label of the turn.
fn with_names(mut place: Place, stated: &Statement, shown: &Shown<'_>) -> Place {
    let speaker = shown.speaker();
    for name in stated.values.names.iter().filter(|name| !has_name(name, &shown.stated.words)) {
        match speaker.filter(|(speaker, _)| is_named(name, speaker)) {
            Some((_, turn)) => place.start = place.start.min(turn),
            None => {
                if let Some(other) = shown.beside.iter().find(|other| has_name(name, &other.words)) {
                    place.start = place.start.min(other.range.start);
                    place.end = place.end.max(other.range.end);
                }
            }
        }
    }
    place
}

/// Stems that belong to names, numbers, dates, days of the week or comparisons, which are compared by themselves.
fn valued(stated: &Statement) -> HashSet<String> {
    let named: HashSet<&str> = stated.values.names.iter().flatten().map(String::as_str).collect();
    let is_valued = |at: usize, word: &Word| {
        let lower = word.lower.as_str();
        word.number
            || stated.values.dated[at]
            || named.contains(bare(lower))
            || word.capital && is_title(lower)
            || weekday(lower).is_some()
            || !comparisons(lower).is_empty()
    };
    let words = stated.words.iter().enumerate().filter(|(at, word)| is_valued(*at, word));
    words.filter_map(|(_, word)| word.stem.clone()).collect()
}
