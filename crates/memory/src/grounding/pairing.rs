//! Which of several values of a sentence belongs to a claim: "Ann was born in 1950 and died in 1960."

use std::collections::HashSet;

use super::numbers::{Number, is_equal};
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
    // A clause without a name has the names of the one before: "and died in 1960".
    let names = |clause: usize| -> HashSet<&String> {
        let is_name =
            |at: usize, word: &Word| word.capital && !shown.values.dated[at] && shown.clauses.clause(at) == clause;
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

/// Whether a number of a claim belongs to another part of a sentence than the word beside it, whose own number is another: "60 percent voted
/// for the plan and 40 percent against it" does not support "60 percent voted against the plan". The part of that word has no
/// verb of its own.
pub(super) fn is_of_another_conjunct(claim: &Statement, shown: &Statement) -> bool {
    let said = distinguishing(claim, &|_| true);
    // Of a question with its answer, the words of the answer count.
    let is_new = |word: &str| claim.answer.is_empty() || claim.answer.contains(word);
    let clause = |number: &Number| shown.clauses.clause(number.at.start);
    let is_said = |number: &&Number| claim.values.numbers.iter().any(|own| is_equal(own.value, number.value));
    let (own, others): (Vec<_>, Vec<_>) =
        shown.values.numbers.iter().filter(|number| !number.ordinal).partition(is_said);
    let is_split = |number: &&Number| {
        let of_number = distinguishing(shown, &|at| at == clause(number));
        let rivals = others.iter().filter(|other| other.unit.is_none() || other.unit == number.unit);
        let mut rivals =
            rivals.map(|other| clause(other)).filter(|at| *at != clause(number) && !has_predicate(shown, *at));
        let has_word = |at: usize| {
            let elsewhere = distinguishing(shown, &|other| other != at);
            distinguishing(shown, &|other| other == at)
                .intersection(&said)
                .any(|word| is_new(word) && !elsewhere.contains(word))
        };
        !of_number.is_subset(&said) && rivals.any(has_word)
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
