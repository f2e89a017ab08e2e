//! The agent and object of each verb: "The council approved the budget, although the mayor opposed it" has two, and does not state that
//! the mayor approved it. Verbs of English are known by their forms; of one that is not known nothing is compared.

use std::collections::BTreeSet;
use std::ops::Range;

use super::claims::{PREPOSITIONS, SUBJECTS, is_verb};
use super::negation::Clauses;
use super::numbers::Number;
use super::question::ASKING;
use super::statement::Statement;
use super::words::{Word, bare, is_past};

/// A verb with its agent and what it acts on.
#[derive(Debug)]
struct Predicate {
    /// The verb by its stem; "be" where nothing else is.
    verb: String,
    at: usize,
    /// Stems of the words of who acts, and of what is acted on; empty where they are not known. What "is" something acts.
    agent: BTreeSet<String>,
    patient: BTreeSet<String>,
    /// Words behind it that are neither: "was born in Linz", "lives in Rome".
    rest: BTreeSet<String>,
    /// Its words with those of its subject, if it has its own, up to the next verb.
    extent: Range<usize>,
}

/// Whether a verb of a claim is in the sentence said of others only: of another agent or object, or with another number or date,
/// and what the claim has instead belongs to another verb.
pub(super) fn is_of_another_verb(claim: &Statement, shown: &Statement) -> bool {
    // A question with its answer behind it is in the order of no statement.
    if !claim.answer.is_empty() && claim.words.iter().any(|word| ASKING.contains(&bare(&word.lower))) {
        return false;
    }
    let (said, given) = (predicates(claim), predicates(shown));
    let all: BTreeSet<String> = stems(shown, 0..shown.words.len()).collect();
    said.iter().any(|own| {
        let same = || given.iter().filter(|other| other.verb == own.verb);
        let mut fitting = same().filter(|other| fits(own, other, &given, shown, &all)).peekable();
        let is_fitting = fitting.peek().is_some();
        same().next().is_some()
            && (!is_fitting || said.len() == 1 && fitting.all(|other| lacks_value(claim, shown, other)))
    })
}

/// Whether a predicate of a sentence can be that of a claim.
fn fits(own: &Predicate, other: &Predicate, given: &[Predicate], shown: &Statement, all: &BTreeSet<String>) -> bool {
    let differ = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        !b.is_empty() && a.iter().any(|stem| all.contains(stem)) && a.is_disjoint(b)
    };
    // "Ann was born in 1950 and Bob in 1960" has a second subject behind the verb.
    let is_gapped = |names: &BTreeSet<String>| {
        let clause = shown.clauses.clause(other.at);
        let behind = (other.at + 1..other.extent.end).filter(|at| shown.clauses.clause(*at) != clause);
        behind.filter_map(|at| shown.words[at].stem.as_ref()).any(|stem| names.contains(stem))
    };
    if own.verb == BE {
        let words = || own.agent.union(&own.patient).filter(|stem| all.contains(*stem));
        let in_clause = shown.clauses.stems_of(shown.clauses.clause(other.at), &shown.words);
        // "It is home to Pell, the second largest port."
        let is_apposed = !own.patient.is_empty() && words().any(|stem| !in_clause.contains(stem));
        // "Paris is the capital of France": "The capital of France is Paris."
        let (before, behind): (Vec<_>, Vec<_>) =
            (own.patient.iter().filter(|stem| all.contains(*stem))).partition(|stem| other.agent.contains(*stem));
        let is_turned = own.agent.is_subset(&other.patient) && before.len() >= behind.len();
        return is_apposed || is_turned || !differ(&own.agent, &other.agent);
    }
    let is_of_other = |stem: &String| {
        let holds = |verb: &&Predicate| stems(shown, verb.extent.clone()).any(|found| found == *stem);
        given.iter().filter(|verb| verb.at != other.at).any(|verb| holds(&verb))
    };
    let is_exchanged = |own: &BTreeSet<String>, other: &BTreeSet<String>| {
        differ(own, other) && own.iter().any(is_of_other) && !is_gapped(own)
    };
    !is_exchanged(&own.patient, &other.patient)
        && !is_exchanged(&own.rest, &other.rest)
        && (!differ(&own.agent, &other.agent) || is_gapped(&own.agent))
}

/// Whether a predicate has another number or date in the place of one of the claim, which is elsewhere in the sentence.
fn lacks_value(claim: &Statement, shown: &Statement, predicate: &Predicate) -> bool {
    let is_here = |at: &usize| predicate.extent.contains(at);
    let numbers = |wanted: bool| {
        let is_said = |value: f64| claim.values.numbers.iter().any(|own| own.value == value);
        let found = shown.values.numbers.iter().filter(move |number| is_said(number.value) == wanted);
        found.filter(|number| !number.ordinal).map(|number| number.at.start).collect::<Vec<usize>>()
    };
    let dates = |wanted: bool| {
        let is_said = |date| claim.values.dates.iter().any(|(own, _)| own == date);
        let found = shown.values.dates.iter().filter(move |(date, _)| is_said(date) == wanted);
        found.filter_map(|(_, place)| *place).collect::<Vec<usize>>()
    };
    let lacks = |said: Vec<usize>, others: Vec<usize>| {
        !said.is_empty() && !said.iter().any(is_here) && others.iter().any(is_here)
    };
    lacks(numbers(true), numbers(false)) || lacks(dates(true), dates(false))
}

/// Whether a number of a claim is in the sentence in a clause with another date, and the date of the claim in one with another number:
/// "grew by 12% in 2020 and by 8% in 2021" does not support "8% in 2020".
pub(super) fn is_of_another_date(claim: &Statement, shown: &Statement) -> bool {
    let clause = |at: usize| shown.clauses.clause(at);
    let (numbers, others): (Vec<_>, Vec<_>) = (shown.values.numbers.iter().filter(|number| !number.ordinal))
        .partition(|number| claim.values.numbers.iter().any(|own| own.value == number.value));
    let dated = shown.values.dates.iter().filter_map(|(date, place)| Some((date, clause((*place)?))));
    let (dates, rivals): (Vec<_>, Vec<_>) =
        dated.partition(|(date, _)| claim.values.dates.iter().any(|(own, _)| date.bears_out(own)));
    let is_split = |number: &&Number| {
        let of_number = clause(number.at.start);
        !dates.iter().any(|(_, of_date)| *of_date == of_number)
            && rivals.iter().any(|(_, of_date)| *of_date == of_number)
            && (dates.iter()).any(|(_, of_date)| others.iter().any(|other| clause(other.at.start) == *of_date))
    };
    !numbers.is_empty() && numbers.iter().all(is_split)
}

/// The stems of words that are no numbers, dates or negations.
fn stems(text: &Statement, range: Range<usize>) -> impl Iterator<Item = String> {
    let is_plain = |at: &usize| !text.values.dated[*at] && !text.words[*at].number && !text.clauses.negates(*at);
    range.filter(is_plain).filter_map(|at| text.words[at].stem.clone())
}

fn predicates(text: &Statement) -> Vec<Predicate> {
    let (words, clauses) = (&text.words[..], &text.clauses);
    let verbs: Vec<usize> = (0..words.len()).filter(|at| is_predicate(words, clauses, *at)).collect();
    let mut found: Vec<Predicate> = Vec::new();
    // The surface subject of the verb before.
    let mut subject = BTreeSet::new();
    for (index, &at) in verbs.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| verbs[before]);
        let start = subject_start(clauses, at, before);
        let end = verbs.get(index + 1).map_or(words.len(), |next| subject_start(clauses, *next, Some(at)).max(at + 1));
        let group = start..at;
        // "A farmer's son" is no farmer.
        let own = group.clone().filter(|at| !words[*at].lower.ends_with("'s"));
        let own: BTreeSet<String> = own.flat_map(|at| stems(text, at..at + 1)).collect();
        let has_own = !own.is_empty();
        let has = |list: &[&str]| group.clone().any(|at| list.contains(&words[at].lower.as_str()));
        let has_pronoun = || {
            let is_of_clause = |at: &usize| clauses.clause(*at) == clauses.clause(verbs[index]);
            group.clone().filter(is_of_clause).any(|at| SUBJECTS.contains(&words[at].lower.as_str()))
        };
        subject = match () {
            () if has_pronoun() => BTreeSet::new(),
            () if has_own => own,
            () if has(&RELATIVE) => antecedent(text, start),
            () => subject,
        };
        let mut rest: BTreeSet<String> = stems(text, at + 1..end).collect();
        let by = (at + 1..end).find(|at| words[*at].lower == "by");
        let is_passive = is_past(&words[at].lower) && (at == 0 || by == Some(at + 1) || has(&BEING));
        let agent_behind = || {
            let phrase = by.map_or(end..end, |by| by + 1..end);
            let is_of_phrase = |at: &usize| !words[*at].is_function() || PHRASE.contains(&words[*at].lower.as_str());
            phrase.take_while(is_of_phrase).flat_map(|at| stems(text, at..at + 1)).collect::<BTreeSet<String>>()
        };
        let behind = words.get(at + 1).map_or("", |next| next.lower.as_str());
        let (agent, patient) = if is_passive {
            let agent = agent_behind();
            rest.retain(|stem| !agent.contains(stem));
            // "The ballet Chopiniana, choreographed by Ann"
            let is_reduced = !has_own && !has(&BEING);
            (agent, if is_reduced { BTreeSet::new() } else { subject.clone() })
        } else if PREPOSITIONS.contains(&behind) {
            (subject.clone(), BTreeSet::new())
        } else {
            // "The letter that Frank had written"
            if has_own && has(&RELATIVE) {
                rest.extend(antecedent(text, start));
            }
            (subject.clone(), std::mem::take(&mut rest))
        };
        let verb = match FORMS_OF_BE.contains(&words[at].lower.as_str()) {
            true => BE.to_owned(),
            false => words[at].stem.clone().unwrap_or_default(),
        };
        found.push(Predicate { verb, at, agent, patient, rest, extent: start..end });
    }
    found
}

/// Whether a word is the main verb of its clause, by its form and the words beside it.
fn is_predicate(words: &[Word], clauses: &Clauses, at: usize) -> bool {
    let word = &words[at];
    let lower = word.lower.as_str();
    let is_auxiliary =
        |other: &usize| clauses.clause(*other) == clauses.clause(at) && HELPING.contains(&words[*other].lower.as_str());
    let is_helped = || (at.saturating_sub(3)..at).any(|other| is_auxiliary(&other));
    if FORMS_OF_BE.contains(&lower) {
        let is_form = |word: &Word| is_past(&word.lower) || word.lower.ends_with("ing");
        return !words[at + 1..].iter().take(2).any(is_form);
    }
    if word.capital && at > 0 || word.number || word.stem.is_none() {
        return false;
    }
    let before = at.checked_sub(1).map(|before| &words[before]);
    // "Anna lives in Rome"
    let is_present = || {
        let follows = |next: &Word| next.is_function() || next.capital || next.number;
        let is_name = |word: &Word| word.capital && word.stem.is_some();
        let has_subject = before.is_some_and(|word| is_name(word) || SUBJECTS.contains(&word.lower.as_str()));
        lower.len() > 3
            && lower.ends_with('s')
            && !lower.ends_with("ss")
            && has_subject
            && words.get(at + 1).is_none_or(follows)
    };
    match is_past(lower) || lower.ends_with("ing") {
        true => is_helped() || at == 0 && is_past(lower) || is_verb(words, at, &|_| true),
        false => is_verb(words, at, &|_| true) || is_present(),
    }
}

/// Where the subject of a verb can begin: at its clause, or at the clauses without a verb before it.
fn subject_start(clauses: &Clauses, at: usize, before: Option<usize>) -> usize {
    let first = before.map_or(0, |before| clauses.clause(before) + 1).min(clauses.clause(at));
    let start = (0..at).find(|at| clauses.clause(*at) >= first).unwrap_or(at);
    before.map_or(start, |before| start.max(before + 1))
}

/// The words directly before a relative pronoun.
fn antecedent(text: &Statement, start: usize) -> BTreeSet<String> {
    let is_content = |at: &usize| text.words[*at].stem.is_some();
    (0..start).rev().take_while(is_content).flat_map(|at| stems(text, at..at + 1)).collect()
}

const BE: &str = "be";
const FORMS_OF_BE: [&str; 4] = ["is", "are", "was", "were"];
const BEING: [&str; 6] = ["is", "are", "was", "were", "been", "being"];
const HELPING: [&str; 9] = ["is", "are", "was", "were", "been", "being", "has", "have", "had"];
const RELATIVE: [&str; 3] = ["who", "which", "that"];

/// Function words inside the phrase behind "by".
const PHRASE: [&str; 8] = ["a", "an", "the", "his", "her", "its", "their", "of"];
