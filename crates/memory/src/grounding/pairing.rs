//! Which of several values of a sentence belongs to a claim: "Ann was born in 1950 and died in 1960."

use std::collections::{BTreeSet, HashSet};

use super::claims::{DETERMINERS, PREPOSITIONS};
use super::negation::JOINING;
use super::numbers::{is_equal, rates};
use super::predicates::has_predicate;
use super::statement::Statement;
use super::words::Word;

/// Whether a value or a name of a claim is, in every place of a sentence, in a clause about something else, while the clause of a rival has
/// all that it shares with the claim and more. So 1960 is not the year in which Ann was born.
pub(super) fn is_of_another_clause(claim: &Statement, shown: &Statement, places: &[usize], rivals: &[usize]) -> bool {
    let content = |clause: usize| -> HashSet<&String> {
        let words = shown.words.iter().enumerate();
        let is_own = |at: usize| shown.clauses.clause(at) == clause && !shown.clauses.negates(at);
        let own = words.filter(|(at, word)| is_own(*at) && !word.number);
        own.filter_map(|(_, word)| word.stem.as_ref()).collect()
    };
    let shared = |clause: usize| -> HashSet<&String> {
        content(clause).into_iter().filter(|stem| claim.terms.contains(*stem)).collect()
    };
    // A clause without a subject that is a name has that of the one before: "and died in Rome in 1960".
    let names = |clause: usize| -> HashSet<&String> {
        let is_name = |at: usize, word: &Word| {
            let is_own = word.capital && !shown.values.dated[at] && shown.clauses.clause(at) == clause;
            is_own && !is_behind_preposition(shown, at)
        };
        let words = shown.words.iter().enumerate().filter(|(at, word)| is_name(*at, word));
        words.filter_map(|(_, word)| word.stem.as_ref()).collect()
    };
    let with_names = |clause: usize| -> HashSet<&String> {
        let of_name = (0..=clause).rev().map(names).find(|names| !names.is_empty()).unwrap_or_default();
        let known = of_name.into_iter().filter(|stem| claim.terms.contains(*stem));
        shared(clause).into_iter().chain(known).collect()
    };
    let is_of_value = |stem: &String| places.iter().any(|place| shown.words[*place].stem.as_ref() == Some(stem));
    let is_about_another = |clause: usize| {
        let own: HashSet<&String> = with_names(clause).into_iter().filter(|stem| !is_of_value(stem)).collect();
        let has_more = |rival: &usize| {
            let other = shown.clauses.clause(*rival);
            let shared = with_names(other);
            other != clause && shared.is_superset(&own) && shared.len() > own.len()
        };
        content(clause).len() > shared(clause).len() && rivals.iter().any(has_more)
    };
    !places.is_empty() && places.iter().all(|place| is_about_another(shown.clauses.clause(*place)))
}

/// Whether a rate of a claim is in the sentence that of another thing: "The filter is cleaned every month and the pump is tested
/// once a year" does not support "The filter is cleaned once a year".
pub(super) fn is_rate_of_another(claim: &Statement, shown: &Statement) -> bool {
    let given = rates(&shown.words);
    rates(&claim.words).into_iter().any(|(own, _)| {
        let (same, others): (Vec<_>, Vec<_>) = given.iter().partition(|(other, _)| *other == own);
        let places: Vec<usize> = same.into_iter().flat_map(|(_, places)| places.clone()).collect();
        let rivals: Vec<usize> = others.into_iter().map(|(_, places)| places.start).collect();
        is_of_another_clause(claim, shown, &places, &rivals)
    })
}

/// Whether the name that the word at a place is of follows a preposition in its clause.
fn is_behind_preposition(text: &Statement, at: usize) -> bool {
    let leads = |before: &usize| {
        let word = &text.words[*before];
        !word.capital && !DETERMINERS.contains(&word.lower.as_str())
    };
    let mut of_clause = (0..at).rev().take_while(|before| text.clauses.clause(*before) == text.clauses.clause(at));
    of_clause.find(leads).is_some_and(|lead| PREPOSITIONS.contains(&text.words[lead].lower.as_str()))
}

/// A number or a date of a sentence.
struct Value<'a> {
    /// The place of its first word.
    at: usize,
    /// The unit of a number.
    unit: Option<&'a str>,
    /// Whether a part of a claim has it.
    is_said: bool,
}

/// Whether a number or a date of a claim belongs to another part of a sentence than the word beside it, whose own is another: "60
/// percent voted for the plan and 40 percent against it" does not support "60 percent voted against the plan", nor "The roof was
/// replaced in 2019, and the door in 2022" "The door was replaced in 2019". The part of that word has no verb of its own. Each
/// clause of the claim with such values is compared by itself.
pub(super) fn is_of_another_conjunct(claim: &Statement, shown: &Statement) -> bool {
    let clause = |at: usize| claim.clauses.clause(at);
    let numbers: BTreeSet<usize> = claim.values.numbers.iter().map(|own| clause(own.at.start)).collect();
    let has_number = |part: &usize| {
        let own = claim.values.numbers.iter().filter(|own| clause(own.at.start) == *part);
        let values = shown.values.numbers.iter().filter(|number| !number.ordinal).map(|number| {
            let is_said = own.clone().any(|own| is_equal(own.value, number.value));
            Value { at: number.at.start, unit: number.unit.as_deref(), is_said }
        });
        is_split(claim, shown, (numbers.len() > 1).then_some(*part), &values.collect::<Vec<_>>())
    };
    let own_dates = || claim.values.dates.iter().filter_map(|(date, place)| Some((date, clause((*place)?))));
    let dates: BTreeSet<usize> = own_dates().map(|(_, part)| part).collect();
    // "The roof was replaced in 2019, after a fire in 2017" has no second part.
    let is_of_conjunct = |at: usize| {
        let mut first = JOINING.iter().chain(&DETERMINERS);
        first.any(|word| shown.clauses.begins_with(shown.clauses.clause(at), &shown.words, word))
    };
    let has_date = |part: &usize| {
        let own = || own_dates().filter(|(_, of_date)| of_date == part);
        let values = shown.values.dates.iter().filter_map(|(date, place)| {
            let (at, is_said) = ((*place)?, own().any(|(own, _)| date.bears_out(own)));
            let is_rival = is_of_conjunct(at) && own().all(|(own, _)| date.conflicts(own));
            (is_said || is_rival).then_some(Value { at, unit: None, is_said })
        });
        is_split(claim, shown, (dates.len() > 1).then_some(*part), &values.collect::<Vec<_>>())
    };
    numbers.iter().any(has_number) || dates.iter().any(has_date)
}

/// Whether each value of a claim is in a part of a sentence that has other words than the claim, while a part with another value
/// has a word of the claim that is nowhere else. `part` is the clause of the claim that is compared, if not all of them are.
fn is_split(claim: &Statement, shown: &Statement, part: Option<usize>, values: &[Value<'_>]) -> bool {
    let said = distinguishing(claim, &|at| part.is_none_or(|part| part == at));
    // Of a question with its answer, the words of the answer count.
    let is_new = |word: &str| claim.answer.is_empty() || claim.answer.contains(word);
    let clause = |value: &Value<'_>| shown.clauses.clause(value.at);
    let (own, others): (Vec<&Value<'_>>, Vec<&Value<'_>>) = values.iter().partition(|value| value.is_said);
    let is_split = |value: &&Value<'_>| {
        let of_value = distinguishing(shown, &|at| at == clause(value));
        let rivals = others.iter().filter(|other| other.unit.is_none() || other.unit == value.unit);
        let mut rivals =
            rivals.map(|other| clause(other)).filter(|at| *at != clause(value) && !has_predicate(shown, *at));
        let has_word = |at: usize| {
            let elsewhere = distinguishing(shown, &|other| other != at);
            distinguishing(shown, &|other| other == at)
                .intersection(&said)
                .any(|word| is_new(word) && !elsewhere.contains(word))
        };
        !of_value.is_subset(&said) && rivals.any(has_word)
    };
    !own.is_empty() && own.iter().all(is_split)
}

/// Words of clauses that can tell one part of a sentence from another: those with a stem that are no values, and some prepositions.
fn distinguishing<'a>(text: &'a Statement, is_of: &dyn Fn(usize) -> bool) -> HashSet<&'a str> {
    let values = &text.values;
    let is_unit = |at: usize| values.numbers.iter().any(|number| number.unit_at.contains(&at));
    let is_plain = |at: usize, word: &Word| !word.number && !values.dated[at] && !is_unit(at);
    let words =
        text.words.iter().enumerate().filter(|(at, word)| is_of(text.clauses.clause(*at)) && is_plain(*at, word));
    let meaning = |word: &'a Word| {
        let lower = word.lower.as_str();
        word.stem.as_deref().or_else(|| CONTRASTED.contains(&lower).then_some(lower))
    };
    words.filter_map(|(_, word)| meaning(word)).collect()
}

/// Prepositions that are contrasted with one another.
const CONTRASTED: [&str; 8] = ["above", "after", "against", "before", "below", "for", "with", "without"];
