//! The agent and object of each verb: "The council approved the budget, although the mayor opposed it" has two, and does not state that
//! the mayor approved it. Verbs of English are known by their forms; of one that is not known nothing is compared.

use std::collections::BTreeSet;
use std::ops::Range;

use super::claims::{DETERMINERS, PREPOSITIONS, SUBJECTS, is_verb};
use super::negation::Clauses;
use super::numbers::Number;
use super::question::{ASKING, FORMS_OF_BE};
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
    /// Whether "he", "she" or "they" acts.
    has_pronoun: bool,
    /// Words behind it that are neither: "was born in Linz", "lives in Rome".
    rest: BTreeSet<String>,
    /// The subject directly before a verb in the passive; empty where it is that of another verb, and in the active.
    passive: BTreeSet<String>,
    /// Whether the object of a verb in the active follows at once: a name or a phrase with an article.
    has_object: bool,
    /// Its words with those of its subject, if it has its own, up to the next verb.
    extent: Range<usize>,
}

/// Whether a verb of a claim is in the sentence said of others only: of another agent or object, or with another number or date,
/// and what the claim has instead belongs to another verb.
pub(super) fn is_of_another_verb(claim: &Statement, shown: &Statement) -> bool {
    let given = predicates(shown);
    // A question with its answer behind it is in the order of no statement.
    if !claim.answer.is_empty() && claim.words.iter().any(|word| ASKING.contains(&bare(&word.lower))) {
        return answers_another_verb(claim, shown, &given);
    }
    let said = predicates(claim);
    said.iter().any(|own| {
        let same = || given.iter().filter(|other| other.verb == own.verb);
        let mut fitting = same().filter(|other| fits(own, other, &given, claim, shown)).peekable();
        let is_fitting = fitting.peek().is_some();
        same().next().is_some()
            && (!is_fitting
                || said.len() == 1
                    && (fitting.all(|other| lacks_value(claim, shown, other))
                        || has_name_of_another(claim, own, &given, shown)))
    })
}

/// Whether an answer to a question is in the sentence with verbs that the question does not have, and not with one that it has: "Clara
/// grew up in Graz, but she was born in Linz" does not answer "Where was Clara born?" by "Graz".
fn answers_another_verb(claim: &Statement, shown: &Statement, given: &[Predicate]) -> bool {
    let words = &shown.words;
    let is_asked = |verb: &&Predicate| claim.terms.contains(&verb.verb) && !claim.answer.contains(&verb.verb);
    let (asked, others): (Vec<_>, Vec<_>) = given.iter().partition(is_asked);
    let is_of_answer = |at: &usize| words[*at].stem.as_ref().is_some_and(|stem| claim.answer.contains(stem));
    let places: Vec<usize> = (0..words.len()).filter(is_of_answer).collect();
    let clause = |at: usize| shown.clauses.clause(at);
    // "He was killed and buried in Rome"
    let shares = |verb: &&Predicate| (verb.at + 1..verb.extent.end).all(|at| words[at].stem.is_none());
    let is_of = |at: usize, verb: &Predicate| {
        let is_argument = |stem: &String| verb.agent.contains(stem) || verb.patient.contains(stem);
        clause(at) == clause(verb.at) || words[at].stem.as_ref().is_some_and(is_argument)
    };
    // Neither a participle, nor "that was called Eton" behind "he attended a school".
    let has_subject = |verb: &Predicate| {
        let first = (0..words.len()).find(|at| clause(*at) == clause(verb.at)).unwrap_or(verb.at);
        let first_verb = given.iter().find(|other| clause(other.at) == clause(verb.at)).map_or(verb.at, |verb| verb.at);
        let tells_more =
            RELATIVE.contains(&words[first].lower.as_str()) && asked.iter().any(|other| other.at < verb.at);
        first < first_verb && !tells_more
    };
    // The name that the pronoun before the asked verb refers to.
    let is_meant = |at: usize, verb: &Predicate| at < verb.at && asked.iter().any(|asked| asked.agent.is_empty());
    // A plural behind a name has the form of a verb too: "Welsh schools".
    let is_certain = |verb: &Predicate| verb.verb == BE || is_verb(words, verb.at, &|_| true);
    let is_of_other = |at: usize| {
        let holds = |verb: &&&Predicate| {
            is_certain(verb) && clause(at) == clause(verb.at) && has_subject(verb) && !is_meant(at, verb)
        };
        is_whole(words, at)
            || !asked.iter().any(|verb| is_of(at, verb))
                && others.iter().filter(holds).any(|verb| !is_of_answer(&verb.at))
    };
    !asked.is_empty() && !asked.iter().any(shares) && !places.is_empty() && places.into_iter().all(is_of_other)
}

/// Whether a name that is the object of a verb, or one of several, is in the sentence only with other verbs that have a subject: "Eva
/// speaks Polish and she is learning Greek" does not support "Eva speaks Polish and Greek".
fn has_name_of_another(claim: &Statement, own: &Predicate, given: &[Predicate], shown: &Statement) -> bool {
    let clause = |at: usize| shown.clauses.clause(at);
    let is_subject = |at: usize, verb: &Predicate| {
        clause(at) == clause(verb.at) && at < verb.at && SUBJECTS.contains(&shown.words[at].lower.as_str())
    };
    let is_of_other = |at: usize| {
        let holds = |verb: &&Predicate| clause(at) == clause(verb.at) && verb.at < at;
        let mut verbs = given.iter().filter(holds).peekable();
        verbs.peek().is_some() && verbs.all(|verb| verb.verb != own.verb && (0..verb.at).any(|at| is_subject(at, verb)))
    };
    let names = claim.words.iter().filter(|word| word.capital).filter_map(|word| word.stem.as_ref());
    names.filter(|stem| own.patient.contains(*stem)).any(|stem| {
        let mut places = (0..shown.words.len()).filter(|at| shown.words[*at].stem.as_ref() == Some(stem)).peekable();
        places.peek().is_some() && places.all(is_of_other)
    })
}

/// Whether the word at a place is the number of a whole whose part has another number: "31 of the 40 students".
pub(super) fn is_whole(words: &[Word], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map_or("", |before| words[before].lower.as_str());
    words[at].number && (at == 1 && before(1) == "of" || before(2) == "of" && WHOLE.contains(&before(1)))
}

/// Whether a predicate of a sentence can be that of a claim.
fn fits(own: &Predicate, other: &Predicate, given: &[Predicate], claim: &Statement, shown: &Statement) -> bool {
    let all: BTreeSet<String> = stems(shown, 0..shown.words.len()).collect();
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
        // "The app is free for students; others pay."
        let clause = |at: usize| shown.clauses.clause(at);
        let acts_at = |at: usize| given.iter().any(|verb| at + 1 == verb.at && clause(at) == clause(verb.at));
        let acts = |stem: &String| {
            let mut places = (0..shown.words.len()).filter(|at| shown.words[*at].stem.as_ref() == Some(stem));
            all.contains(stem) && places.all(|at| clause(at) != clause(other.at) && acts_at(at))
        };
        if claim.answer.is_empty() && own.patient.iter().any(acts) {
            return false;
        }
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
    // "Ordered Bauer to pay to Klein" is not what Klein is ordered.
    let is_receiver = || {
        let is_article = |at: usize| DETERMINERS.contains(&shown.words[at].lower.as_str());
        let is_behind_to = |at: usize| {
            let before = (other.at..at).rev().find(|before| !is_article(*before));
            before.is_some_and(|before| shown.words[before].lower == "to")
        };
        let mut places = (other.at + 1..other.extent.end)
            .filter(|at| shown.words[*at].stem.as_ref().is_some_and(|stem| own.patient.contains(stem)))
            .peekable();
        own.agent.is_empty() && !other.agent.is_empty() && places.peek().is_some() && places.all(is_behind_to)
    };
    // "Her father joined the firm" is not in "She joined the firm of Karl Holm, who knew her father". In "When she joined the
    // firm, Ann was 20" the pronoun is that of the name behind it.
    let is_object = || {
        let is_behind = |stem: &String| {
            let mut places =
                (0..shown.words.len()).filter(|at| shown.words[*at].stem.as_ref() == Some(stem)).peekable();
            places.peek().is_some() && places.all(|at| at > other.at)
        };
        let clause = shown.clauses.clause(other.at);
        let is_main = !SUBORDINATE.iter().any(|word| shown.clauses.begins_with(clause, &shown.words, word));
        other.has_pronoun
            && is_main
            && !own.agent.is_empty()
            && own.agent.iter().all(is_behind)
            && !is_gapped(&own.agent)
    };
    // "Rome was built" is not in "The bridge was built in Rome".
    let has_other_subject = differ(&own.passive, &other.passive) && !is_gapped(&own.passive);
    !is_receiver()
        && !is_object()
        && !has_other_subject
        && !is_turned(own, other)
        && !is_turned(other, own)
        && !is_exchanged(&own.patient, &other.patient)
        && !is_exchanged(&own.rest, &other.rest)
        && (!differ(&own.agent, &other.agent) || is_gapped(&own.agent))
}

/// Whether the agent of one predicate is acted on in the other: "Ann killed Bob" does not state that Ann was killed,
/// nor "Ann was arrested with Bob" that Ann arrested Bob.
fn is_turned(active: &Predicate, passive: &Predicate) -> bool {
    active.has_object
        && !active.agent.is_disjoint(&passive.passive)
        && active.agent.is_disjoint(&passive.agent)
        && active.patient.is_disjoint(&passive.passive)
}

/// Whether a predicate has another number or date in the place of one of the claim, which is elsewhere in the sentence.
fn lacks_value(claim: &Statement, shown: &Statement, predicate: &Predicate) -> bool {
    let is_here = |at: &usize| predicate.extent.contains(at) && !is_whole(&shown.words, *at);
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
    let verbs = verbs(words, clauses);
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
        let has_subject = |list: &[&str]| {
            let is_of_clause = |at: &usize| clauses.clause(*at) == clauses.clause(verbs[index]);
            group.clone().filter(is_of_clause).any(|at| list.contains(&words[at].lower.as_str()))
        };
        subject = match () {
            () if has_subject(&SUBJECTS) || is_inverted(words, start, at) => BTreeSet::new(),
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
        let is_phrase = |next: &Word| next.capital && next.stem.is_some() || DETERMINERS.contains(&next.lower.as_str());
        let has_object = !is_passive && words.get(at + 1).is_some_and(is_phrase);
        let has_pronoun = !is_passive && has_subject(&PERSONS);
        let passive = if is_passive && has_own { subject.clone() } else { BTreeSet::new() };
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
        found.push(Predicate { verb, at, agent, has_pronoun, patient, rest, passive, has_object, extent: start..end });
    }
    found
}

/// The main verbs of a text.
pub(super) fn verbs(words: &[Word], clauses: &Clauses) -> Vec<usize> {
    (0..words.len()).filter(|at| is_predicate(words, clauses, *at)).collect()
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
        let is_name = |word: &Word| word.capital && word.stem.is_some() && !word.number;
        let has_subject = before.is_some_and(|word| is_name(word) || SUBJECTS.contains(&word.lower.as_str()));
        lower.len() > 3
            && lower.ends_with('s')
            && !lower.ends_with("ss")
            && has_subject
            && words.get(at + 1).is_none_or(follows)
    };
    // "Others pay 5 euros"
    let is_plural = || {
        let has_object = |next: &Word| {
            let lower = next.lower.as_str();
            next.number || PREPOSITIONS.contains(&lower) || DETERMINERS.contains(&lower)
        };
        // "what we label as force"
        let is_asked = |at: usize| ASKING.contains(&words[at].lower.as_str());
        before.is_some_and(|word| PLURAL.contains(&word.lower.as_str()))
            && !at.checked_sub(2).is_some_and(is_asked)
            && words.get(at + 1).is_some_and(has_object)
    };
    match is_past(lower) || lower.ends_with("ing") {
        true => is_helped() || at == 0 && is_past(lower) || is_verb(words, at, &|_| true),
        false => is_verb(words, at, &|_| true) || is_present() || is_plural(),
    }
}

/// Whether the subject can be behind the verb: "Just outside stood two tall soldiers."
fn is_inverted(words: &[Word], start: usize, at: usize) -> bool {
    let first = words[start..at].iter().find(|word| word.lower != "just");
    let is_place = |word: &Word| {
        let lower = word.lower.as_str();
        PREPOSITIONS.contains(&lower) || PLACES.contains(&lower)
    };
    let inverts = words[at].stem.as_deref().is_some_and(|stem| INVERTED.contains(&stem));
    inverts && first.is_some_and(is_place)
}

/// Whether a clause has a verb.
pub(super) fn has_predicate(text: &Statement, clause: usize) -> bool {
    let is_of_clause = |at: &usize| text.clauses.clause(*at) == clause;
    (0..text.words.len()).filter(is_of_clause).any(|at| is_predicate(&text.words, &text.clauses, at))
}

/// Where the subject of a verb can begin: at its clause, or at the clauses without a verb before it.
pub(super) fn subject_start(clauses: &Clauses, at: usize, before: Option<usize>) -> usize {
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
const BEING: [&str; 6] = ["is", "are", "was", "were", "been", "being"];
const HELPING: [&str; 9] = ["is", "are", "was", "were", "been", "being", "has", "have", "had"];
const RELATIVE: [&str; 3] = ["who", "which", "that"];

/// Pronouns that act in a sentence.
const PERSONS: [&str; 3] = ["he", "she", "they"];

/// Words that begin a clause whose pronoun can be that of a name behind it.
const SUBORDINATE: [&str; 12] =
    ["after", "although", "as", "because", "before", "if", "once", "since", "though", "until", "when", "while"];

/// Function words inside the phrase behind "by".
const PHRASE: [&str; 8] = ["a", "an", "the", "his", "her", "its", "their", "of"];

/// Words between "of" and the number of a whole.
const WHOLE: [&str; 8] = ["the", "these", "those", "its", "his", "her", "their", "all"];

/// Subjects of verbs in the plural.
const PLURAL: [&str; 5] = ["they", "we", "you", "i", "others"];

/// Words beside prepositions that a sentence can begin with before its verb and subject.
const PLACES: [&str; 10] =
    ["above", "behind", "below", "beside", "here", "inside", "near", "outside", "there", "under"];

/// Stems of verbs that come before their subject then.
const INVERTED: [&str; 7] = ["stand", "sit", "lie", "hang", "come", "go", "live"];
