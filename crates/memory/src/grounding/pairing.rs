//! Which of several values of a sentence belongs to a claim: "Ann was born in 1950 and died in 1960."

use std::collections::HashSet;

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
