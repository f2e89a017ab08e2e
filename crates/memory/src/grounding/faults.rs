//! What keeps a sentence of the evidence from supporting a claim: values that it lacks or has otherwise.

use chrono::NaiveDate;

use super::naming::has_name;
use super::negation::{Polarity, polarity};
use super::passage::Sentence;
use super::relative::full;
use super::roles::{Named, is_replaced, turned};
use super::speech::FIRST;
use super::turn::speaker_at;
use super::values::{self, Number};
use super::verdict::Statement;
use super::words::words;

/// What is wrong with a sentence as support of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It lacks a value of the claim.
    Missing,
    /// It has another value of the same type in its place.
    Rival,
    /// The words cannot tell; a model may decide.
    Doubt,
}

/// A sentence of the evidence with what is known about it.
pub(super) struct Shown<'a> {
    pub stated: &'a Statement,
    /// The text that it is of, and the bytes of it there.
    pub text: &'a str,
    pub start: usize,
    /// The sentences before and after it.
    pub beside: &'a [&'a Sentence],
    /// The day on which it was written.
    pub day: Option<NaiveDate>,
}

pub(super) fn faults(claim: &Statement, shown: &Shown<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    names(claim, shown, &mut faults);
    let (said, given) = (&claim.values, &shown.stated.values);
    for number in &said.numbers {
        if !given.numbers.iter().any(|other| same_number(number, other, shown.stated)) {
            let rival =
                |other: &Number| other.unit == number.unit && !said.numbers.iter().any(|n| n.value == other.value);
            faults.push(Fault::missing(given.numbers.iter().any(rival)));
        }
    }
    for date in said.dates.iter().filter(|date| !given.dates.iter().any(|other| other.bears_out(date))) {
        let is_written_then = given.dates.is_empty() && shown.day.is_some_and(|day| full(day).bears_out(date));
        let rival = given.dates.iter().any(|other| other.conflicts(date) && !said.dates.contains(other));
        faults.push(if is_written_then { Fault::Doubt } else { Fault::missing(rival) });
    }
    for day in said.weekdays.iter().filter(|day| !given.weekdays.contains(day)) {
        let rival = given.weekdays.iter().any(|other| other != day && !said.weekdays.contains(other));
        faults.push(Fault::missing(rival));
    }
    match polarity((&claim.words, &claim.clauses), (&shown.stated.words, &shown.stated.clauses)) {
        Polarity::Same => (),
        Polarity::Opposite => faults.push(Fault::Rival),
        Polarity::Unclear => faults.push(Fault::Doubt),
    }
    for (pair, side) in &claim.comparisons {
        if !shown.stated.comparisons.contains(&(*pair, *side)) {
            faults.push(Fault::missing(shown.stated.comparisons.contains(&(*pair, !*side))));
        }
    }
    if turned(&Named::of(claim), &Named::of(shown.stated)) {
        faults.push(Fault::Missing);
    }
    faults
}

impl Fault {
    fn missing(has_rival: bool) -> Fault {
        if has_rival { Fault::Rival } else { Fault::Missing }
    }
}

impl<'a> Named<'a> {
    fn of(statement: &'a Statement) -> Named<'a> {
        Named { words: &statement.words, values: &statement.values }
    }
}

/// Names of the claim that the sentence neither has nor refers to, and names that the claim's pronoun refers to.
fn names(claim: &Statement, shown: &Shown<'_>, faults: &mut Vec<Fault>) {
    let (said, given) = (&claim.values.names, &shown.stated.values.names);
    let words = &shown.stated.words;
    let has_rival = || given.iter().any(|other| !said.iter().any(|name| name.iter().any(|part| other.contains(part))));
    let speaker = shown.speaker();
    let is_speaker = |name: &[String]| speaker.is_some_and(|(speaker, _)| is_named(name, speaker));
    let has_pronoun = || {
        let refers = |lower: &str| PRONOUNS.contains(&lower) && (speaker.is_none() || !THINGS.contains(&lower));
        words.iter().any(|word| refers(&word.lower))
    };
    for name in said.iter().filter(|name| !has_name(name, words) && !is_speaker(name)) {
        let has_part = || name.iter().any(|part| has_name(std::slice::from_ref(part), words));
        let is_near = || shown.beside.iter().any(|other| has_name(name, &other.words));
        let is_meant = (has_pronoun() || has_part()) && is_near() && !is_replaced(name, &claim.words, words);
        if !is_meant {
            faults.push(Fault::missing(has_rival()));
        }
    }
    let is_about_another = !has_pronoun() && (speaker.is_some() || has_rival());
    let unmet = claim.about.iter().filter(|name| !has_name(name, words) && !is_speaker(name));
    faults.extend(unmet.filter(|_| is_about_another).map(|_| Fault::Missing));
}

impl<'a> Shown<'a> {
    /// The speaker of a sentence in the first person that is in a turn of a conversation, and the byte at which the turn begins.
    pub fn speaker(&self) -> Option<(&'a str, usize)> {
        let first = self.stated.words.iter().find(|word| FIRST.contains(&word.lower.as_str()))?;
        speaker_at(self.text, self.start + first.range.start)
    }
}

/// Whether a speaker's label has a name.
pub(super) fn is_named(name: &[String], speaker: &str) -> bool {
    has_name(name, &words(speaker))
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

/// Those of them that do not refer to a person beside the speaker.
const THINGS: [&str; 2] = ["it", "its"];
