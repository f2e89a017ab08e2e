//! What keeps a sentence of the evidence from supporting a claim: values that it lacks or has otherwise.

use std::ops::Range;

use chrono::NaiveDate;

use super::asserted::is_open;
use super::cells::has_column;
use super::dimension::is_of_another_dimension;
use super::hedges::{is_question, only_considers};
use super::mail::message_at;
use super::naming::has_name;
use super::negation::{Polarity, polarity, run_of};
use super::numbers::{Bound, Number, is_duration, is_equal};
use super::opposites::{is_before_change, is_change, is_compared_with_another, is_in_other_direction, is_taken_back};
use super::pairing::{is_of_another_clause, is_of_another_conjunct, is_rate_of_another};
use super::passage::Sentence;
use super::predicates::{is_of_another_date, is_of_another_verb, is_whole};
use super::question::FORMS_OF_BE;
use super::relative::full;
use super::roles::{Named, is_exchanged, is_role_of_another, replacing, turned};
use super::speech::FIRST;
use super::statement::Statement;
use super::subject::{cannot_refer, is_about_another, is_answer, is_in_subject, is_of_one_subject};
use super::superseded::is_superseded;
use super::times::is_at_another_time;
use super::turn::{is_vocative, speaker_at};
use super::values::Values;
use super::words::{Word, bare, stem, words};

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
    pub range: Range<usize>,
    /// All sentences of the text.
    pub whole: &'a [&'a Sentence],
    /// The sentences before and after it.
    pub beside: &'a [&'a Sentence],
    /// The day on which it was written.
    pub day: Option<NaiveDate>,
}

pub(super) fn faults(claim: &Statement, shown: &Shown<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    names(claim, shown, &mut faults);
    let (said, given) = (&claim.values, &shown.stated.values);
    numbers(claim, shown.stated, &mut faults);
    dates(claim, shown, &mut faults);
    let has_code = |code: &String| shown.stated.words.iter().any(|word| bare(&word.lower) == code);
    faults.extend(said.codes.iter().filter(|code| !has_code(code)).map(|_| Fault::Missing));
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
        let shows = |side: bool| shown.stated.comparisons.contains(&(*pair, side));
        if !shows(*side) {
            // A rise can have other words than those that are known: "is higher than before".
            let is_unknown = is_change(*pair) && !shows(!*side);
            faults.push(if is_unknown { Fault::Doubt } else { Fault::missing(shows(!*side)) });
        }
    }
    let (said, given) = (&claim.words, &shown.stated.words);
    let (claim_named, shown_named) = (Named::of(claim), Named::of(shown.stated));
    if is_superseded(said, &claim.values, &shown.text[shown.range.end..])
        || turned(&claim_named, &shown_named)
        || is_taken_back(said, given, &shown.stated.clauses)
        || is_in_other_direction(said, given)
        || is_compared_with_another(said, given)
    {
        faults.push(Fault::Missing);
    }
    let only_considers = only_considers((said, &claim.clauses), (given, &shown.stated.clauses));
    let is_of_another = || {
        is_of_another_verb(claim, shown.stated)
            || is_of_another_date(claim, shown.stated)
            || is_of_another_conjunct(claim, shown.stated)
            || is_rate_of_another(claim, shown.stated)
            || is_role_of_another(&claim_named, &shown_named)
            || is_about_another(claim, given, shown.beside)
    };
    // "40 students passed" is in "31 of the 40 students passed".
    let is_open = is_open(said, &claim.answer, given, &shown.stated.clauses);
    let has_run = !is_open && run_of(said, given).is_some_and(|at| !is_whole(given, at));
    if !has_run && is_of_another() {
        faults.push(Fault::Doubt);
    }
    if is_open
        || only_considers
        || is_at_another_time(claim, shown.stated)
        || is_before_change(said, given)
        || is_question(&shown.text[shown.range.clone()])
        || is_exchanged(&claim_named, &shown_named)
    {
        faults.push(Fault::Doubt);
    }
    faults
}

fn numbers(claim: &Statement, shown: &Statement, faults: &mut Vec<Fault>) {
    let (said, given) = (&claim.values.numbers, &shown.values.numbers);
    let is_new = |other: &Number| !said.iter().any(|own| is_equal(own.value, other.value));
    for number in said {
        let same: Vec<&Number> = given.iter().filter(|other| same_number(number, other, claim, shown)).collect();
        let is_rival = |other: &&Number| {
            other.ordinal == number.ordinal && other.unit_term() == number.unit_term() && is_new(other)
        };
        let rivals: Vec<usize> = given.iter().filter(is_rival).map(|other| other.at.start).collect();
        let places: Vec<usize> = same.iter().map(|other| other.at.start).collect();
        if same.is_empty() {
            // "About 500" does not contradict 498, nor "over 500" 700.
            let is_exact = number.bound.is_none() && !given.iter().any(|other| other.bound.is_some());
            faults.push(Fault::missing(is_exact && !rivals.is_empty()));
        } else if same.iter().all(|other| other.bound == Some(Bound::Below) && number.bound != other.bound) {
            faults.push(Fault::Missing);
        } else if is_of_another_clause(claim, shown, &places, &rivals) || is_only_share(number, &same, claim, shown) {
            faults.push(Fault::Doubt);
        }
    }
    // "One ship" is a number only beside another one.
    for pair in claim.words.windows(2).filter(|pair| pair[0].lower == "one" && pair[1].stem.is_some()) {
        let of_unit = || given.iter().filter(|other| other.unit.is_some() && other.unit == pair[1].stem);
        if !of_unit().any(|other| other.value == 1.0) && of_unit().count() > 0 && said.iter().all(|n| n.value != 1.0) {
            faults.push(Fault::Rival);
        }
    }
}

/// Whether a number of a claim is that of each of several things and equal numbers of the sentence are not: "300 euros in three
/// parts" does not support "three parts of 300 euros each".
fn is_only_share(said: &Number, given: &[&Number], claim: &Statement, shown: &Statement) -> bool {
    // "5 euros a person", "each of them paid 5 euros"
    let has_share = |number: &&Number| {
        let is_near = |at: usize| shown.clauses.clause(at) == shown.clauses.clause(number.at.start);
        let is_share = |at: usize| SHARES.contains(&shown.words[at].lower.as_str());
        (0..shown.words.len()).any(|at| is_near(at) && is_share(at)) || matches!(behind(number, shown)[0], "a" | "an")
    };
    match behind(said, claim) {
        ["each" | "apiece", _] | ["in", "each"] => !given.iter().any(has_share),
        ["per", unit] => stem(unit).is_some_and(|unit| !is_duration(&unit)) && !given.iter().any(has_share),
        _ => false,
    }
}

/// The two words behind a number with its unit, in lower case.
fn behind<'a>(number: &Number, text: &'a Statement) -> [&'a str; 2] {
    let at = number.unit_at.end;
    [at, at + 1].map(|at| text.words.get(at).map_or("", |word| word.lower.as_str()))
}

fn dates(claim: &Statement, shown: &Shown<'_>, faults: &mut Vec<Fault>) {
    let (said, given) = (&claim.values.dates, &shown.stated.values.dates);
    for (date, own) in said {
        let rivals =
            given.iter().filter(|(other, _)| other.conflicts(date) && !said.iter().any(|(own, _)| own == other));
        let rivals: Vec<Option<usize>> = rivals.map(|(_, place)| *place).collect();
        let places: Vec<Option<usize>> =
            given.iter().filter(|(other, _)| other.bears_out(date)).map(|(_, place)| *place).collect();
        if places.is_empty() {
            let is_written_then = given.is_empty() && shown.day.is_some_and(|day| full(day).bears_out(date));
            faults.push(if is_written_then { Fault::Doubt } else { Fault::missing(!rivals.is_empty()) });
        } else if let Some(places) = places.into_iter().collect::<Option<Vec<usize>>>() {
            let rivals: Vec<usize> = rivals.into_iter().flatten().collect();
            // "After 1990" is not in 1990.
            let is_beyond_only = own.is_some_and(|own| !is_beyond(&claim.words, own))
                && places.iter().all(|place| is_beyond(&shown.stated.words, *place));
            if is_beyond_only || is_of_another_clause(claim, shown.stated, &places, &rivals) {
                faults.push(Fault::Doubt);
            }
        }
    }
}

/// Whether the date that begins at a place is behind "before" or "after".
fn is_beyond(words: &[Word], at: usize) -> bool {
    let before = words[..at].iter().rev().find(|word| word.lower != "the");
    before.is_some_and(|word| matches!(word.lower.as_str(), "after" | "before"))
}

impl Fault {
    fn missing(has_rival: bool) -> Fault {
        if has_rival { Fault::Rival } else { Fault::Missing }
    }
}

impl<'a> Named<'a> {
    fn of(statement: &'a Statement) -> Named<'a> {
        Named { words: &statement.words, values: &statement.values, clauses: &statement.clauses }
    }
}

/// Names of the claim that the sentence neither has nor refers to, and names that the claim's pronoun refers to.
fn names(claim: &Statement, shown: &Shown<'_>, faults: &mut Vec<Fault>) {
    let (said, given) = (&claim.values.names, &shown.stated.values.names);
    // "Hey Ann, I ran a race." is not about Ann.
    let (text, speaker) = (&shown.text[shown.range.clone()], shown.speaker());
    let is_addressed = |at: usize| speaker.is_some() && is_vocative(text, &shown.stated.words, at);
    let words = shown.stated.words.iter().enumerate().filter(|(at, _)| !is_addressed(*at));
    let words: &[Word] = &words.map(|(_, word)| word.clone()).collect::<Vec<Word>>();
    let has_rival = || given.iter().any(|other| !said.iter().any(|name| name.iter().any(|part| other.contains(part))));
    let is_speaker = |name: &[String]| speaker.is_some_and(|(speaker, _)| is_named(name, speaker));
    let has_pronoun = || {
        let refers = |lower: &str| PRONOUNS.contains(&lower) && (speaker.is_none() || !THINGS.contains(&lower));
        words.iter().any(|word| refers(&word.lower))
    };
    // "GB" of "16GB"
    let is_behind_digits = |name: &[String]| {
        let letters = |word: &Word| word.lower.trim_start_matches(|c: char| !c.is_alphabetic()) == name[0];
        name.len() == 1 && words.iter().any(|word| word.number && letters(word))
    };
    // "64 GB of RAM" is in a row of a table with the column "RAM".
    let is_of_column = |name: &[String]| has_column(shown.text, shown.range.start, name, &claim.terms);
    let is_shown =
        |name: &[String]| has_name(name, words) || is_speaker(name) || is_behind_digits(name) || is_of_column(name);
    for name in said.iter().filter(|name| !is_shown(name)) {
        let has_part = || name.iter().any(|part| has_name(std::slice::from_ref(part), words));
        let is_near = || {
            let refers = |other: &Sentence| {
                other.range.start > shown.range.start || !cannot_refer(name, &claim.words, words, &other.words)
            };
            shown.beside.iter().any(|other| has_name(name, &other.words) && refers(other))
        };
        let is_meant = (has_pronoun() || has_part())
            && !has_namesake(name, given)
            && (is_near() || shown.has_full(name, words))
            && replacing(name, &claim.words, words).is_empty();
        if !is_meant {
            // "Anna lives in Rome" does not say that Bob does not.
            let is_excluded =
                || is_of_one_subject(claim) || is_answer(name, claim) || !is_in_subject(name, &claim.words);
            faults.push(Fault::missing(has_rival() && is_excluded()));
        } else if acts(name, &claim.words) && !has_part() && !has_any(words, &ACTING) {
            // "Holm taught her" does not say whom she taught.
            faults.push(Fault::Doubt);
        }
    }
    // "Ann is a nurse and Bob is a cook" has Bob, but in the place of Bob it has Ann.
    let all = &shown.stated.words;
    for name in said.iter().filter(|name| has_name(name, words)) {
        let is_of_name = |at: &usize| name.iter().any(|part| part == bare(&all[*at].lower));
        let places: Vec<usize> = (0..all.len()).filter(is_of_name).collect();
        if is_of_another_clause(claim, shown.stated, &places, &replacing(name, &claim.words, all)) {
            faults.push(Fault::Doubt);
        }
    }
    let is_about_another = !has_pronoun() && (speaker.is_some() || has_rival());
    let unmet = claim.about.iter().filter(|name| !has_name(name, words) && !is_speaker(name));
    faults.extend(unmet.filter(|name| is_about_another || has_namesake(name, given)).map(|_| Fault::Missing));
}

/// Whether a claim begins with a name that acts: it has no form of "be", which a verb in the passive has.
fn acts(name: &[String], claim: &[Word]) -> bool {
    let begins = claim.len() > name.len() && name.iter().zip(claim).all(|(part, word)| *part == word.lower);
    begins && !has_any(claim, &FORMS_OF_BE)
}

fn has_any(words: &[Word], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.lower.as_str()))
}

/// Whether a sentence names another person with the same last name: "Peter Miller" for "John Miller".
fn has_namesake(name: &[String], given: &[Vec<String>]) -> bool {
    let is_other =
        |a: &String, b: &String| !a.starts_with(b.trim_end_matches('.')) && !b.starts_with(a.trim_end_matches('.'));
    let is_namesake = |other: &Vec<String>| match (name, &other[..]) {
        ([first, .., last], [other_first, .., other_last]) => last == other_last && is_other(first, other_first),
        _ => false,
    };
    given.iter().any(is_namesake)
}

impl<'a> Shown<'a> {
    /// Whether the sentence has the last part of a name, which the text has in full, and no other name with that part: "Lee"
    /// where the text has "Ann Lee" and no "Bob Lee".
    fn has_full(&self, name: &[String], words: &[Word]) -> bool {
        let [_, .., last] = name else { return false };
        let is_last = |word: &Word| word.capital && bare(&word.lower) == last;
        let with_last = || self.whole.iter().filter(|other| other.words.iter().any(is_last));
        let names = |other: &Sentence| Values::read(&self.text[other.range.clone()], &|_| true).names;
        words.iter().any(is_last)
            && with_last().any(|other| has_name(name, &other.words))
            && !with_last().any(|other| has_namesake(name, &names(other)))
    }

    /// The speaker of a sentence in the first person that is in a turn of a conversation, and the byte at which the turn begins; or
    /// the sender of the message of mail that it is in, and its own first byte.
    pub fn speaker(&self) -> Option<(&'a str, usize)> {
        let first = self.stated.words.iter().find(|word| FIRST.contains(&word.lower.as_str()))?;
        let at = self.range.start + first.range.start;
        let sender = || message_at(self.text, at).map(|message| (message.sender, self.range.start));
        speaker_at(self.text, at).or_else(sender)
    }
}

/// Whether a speaker's label has a name.
pub(super) fn is_named(name: &[String], speaker: &str) -> bool {
    has_name(name, &words(speaker))
}

/// Equal values, and the unit of the claim at or near the number of the span unless that has none. Near is not enough for a
/// share or a sum, nor if the unit is that of another number. A measure must be of the same dimension.
fn same_number(said: &Number, given: &Number, claim: &Statement, shown: &Statement) -> bool {
    let near = |unit: &String| {
        let window = given.at.start.saturating_sub(3)..(given.at.end + 4).min(shown.words.len());
        let is_of_other = |other: &Number| other.at != given.at && other.unit.as_ref() == Some(unit);
        shown.words[window].iter().any(|word| word.stem.as_ref() == Some(unit))
            && !given.is_of_sign()
            && !shown.values.numbers.iter().any(is_of_other)
    };
    let has_unit = |unit: &String| given.unit.is_none() || given.unit_term() == said.unit_term() || near(unit);
    let asks = !claim.answer.is_empty();
    is_equal(said.value, given.value)
        && said.ordinal == given.ordinal
        && said.unit.as_ref().is_none_or(has_unit)
        && !is_of_another_dimension((&claim.words, said), (&shown.words, given), asks)
}

/// What a sentence can refer to a name by that is in the sentence before or after.
const PRONOUNS: [&str; 12] = ["he", "she", "it", "they", "his", "her", "hers", "its", "their", "him", "them", "who"];

/// Those of them that can be a subject.
const ACTING: [&str; 5] = ["he", "she", "it", "they", "who"];

/// Those of them that do not refer to a person beside the speaker.
const THINGS: [&str; 2] = ["it", "its"];

/// Words by which a number is that of each of several things.
const SHARES: [&str; 6] = ["all", "apiece", "each", "every", "everyone", "per"];
