//! Whether a sentence relates what a claim states to the same time or cause: "before the war" is not "after the war".

use std::collections::BTreeSet;

use super::predicates::has_predicate;
use super::statement::Statement;
use super::words::Word;

/// A preposition or conjunction of time or cause with the next word that has a meaning.
struct Relation {
    at: usize,
    /// In lower case; "since" for "because", as it can mean both.
    lower: &'static str,
    object: String,
}

/// Whether a time of a claim is in the sentence with another relation, is that of another part of it, or is what the claim says to be
/// timed: "The treaty was signed after the war had ended" does not state that the war had ended after the treaty was signed.
pub(super) fn is_at_another_time(claim: &Statement, shown: &Statement) -> bool {
    let (said, given) = (relations(&claim.words), relations(&shown.words));
    let segment = |at: usize| shown.clauses.segment(at);
    said.iter().any(|own| {
        let of_object: Vec<&Relation> = given.iter().filter(|other| other.object == own.object).collect();
        let same: Vec<&&Relation> = of_object.iter().filter(|other| other.lower == own.lower).collect();
        if same.is_empty() {
            let clause = |at: usize| claim.clauses.clause(at);
            let is_behind = |object: &String| {
                let mut behind = (own.at + 1..claim.words.len()).take_while(|at| clause(*at) == clause(own.at));
                behind.any(|at| claim.words[at].stem.as_ref() == Some(object))
            };
            let is_turned = |other: &Relation| {
                other.lower == own.lower && claim.terms.contains(&other.object) && !is_behind(&other.object)
            };
            return !of_object.is_empty() || given.iter().any(is_turned);
        }
        // "Before the war she worked in Paris; after it, in Lyon": a part without a verb has that of another.
        let of_segment = |part: usize| (0..shown.words.len()).filter(move |at| segment(*at) == part);
        let has = |part: usize, stem: &String| of_segment(part).any(|at| shown.words[at].stem.as_ref() == Some(stem));
        let is_timed = |part: usize| given.iter().any(|other| segment(other.at) == part);
        let is_of_other = |part: usize| {
            let clauses: BTreeSet<usize> = of_segment(part).map(|at| shown.clauses.clause(at)).collect();
            if part == 0 || clauses.into_iter().any(|clause| has_predicate(shown, clause)) {
                let others: Vec<usize> = (0..shown.words.len()).map(segment).filter(|at| is_timed(*at)).collect();
                let is_elsewhere = |stem: &String| !has(part, stem) && others.iter().any(|other| has(*other, stem));
                return claim.terms.iter().filter(|stem| **stem != own.object).any(is_elsewhere);
            }
            let mut content = of_segment(part).filter_map(|at| shown.words[at].stem.as_ref());
            content.any(|stem| *stem != own.object && !claim.terms.contains(stem))
        };
        same.iter().all(|other| is_of_other(segment(other.at)))
    })
}

/// The relations of a text. A pronoun has the object of the one before.
fn relations(words: &[Word]) -> Vec<Relation> {
    let mut found: Vec<Relation> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(&(own, lower)) = RELATIONS.iter().find(|(own, _)| *own == word.lower) else { continue };
        let next = words.get(at + 1).map_or("", |next| next.lower.as_str());
        // "It" of "because it" does not refer to a time.
        let is_pronoun = own == lower && PRONOUNS.contains(&next);
        let known = found.last().filter(|_| is_pronoun).map(|before| before.object.clone());
        let behind = words[at + 1..].iter().find_map(|word| word.stem.clone());
        if let Some(object) = known.or(behind) {
            found.push(Relation { at, lower, object });
        }
    }
    found
}

/// Each with the relation that it is compared as: "since" is a time or a cause.
const RELATIONS: [(&str, &str); 7] = [
    ("after", "after"),
    ("because", "since"),
    ("before", "before"),
    ("during", "during"),
    ("since", "since"),
    ("till", "till"),
    ("until", "until"),
];

const PRONOUNS: [&str; 4] = ["it", "that", "then", "this"];
