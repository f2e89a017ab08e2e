//! Sentences that hold the words of a statement without stating it: "Jim may sell his watch.", "Did Jim sell his watch?". Hedges
//! are known in English only, and are compared by clause, as negations are.

use super::negation::Clauses;
use super::words::{Word, is_past};

/// Whether a sentence only considers what a claim states: every clause that has most of the words of a clause of the claim
/// has a hedge or is beside an adverb between marks that is one, and the claim has none.
pub(super) fn only_considers(claim: (&[Word], &Clauses), shown: (&[Word], &Clauses)) -> bool {
    let ((said, said_clauses), (given, given_clauses)) = (claim, shown);
    let is_of_the_past = said.iter().any(|word| is_past(&word.lower) || PAST.contains(&word.lower.as_str()));
    let is_hedged = (0..said.len()).any(|at| is_hedge(said, at) || ABLE.contains(&said[at].lower.as_str()));
    let is_open = |at: usize| {
        let lower = given[at].lower.as_str();
        is_other_duty(lower, claim, given)
            || !is_hedged
                && match is_of_the_past {
                    true => is_hedge(given, at) || FUTURE.contains(&lower),
                    false => is_hedge(given, at) || is_former(given, at),
                }
    };
    // "May" is no "may".
    let is_alike = |a: &Word, b: &Word| a.lower == b.lower && a.capital == b.capital;
    // "What may he deny?" asks for what he may have denied.
    let is_same = |a: &Word, b: &Word| is_alike(a, b) || a.stem.is_some() && a.stem == b.stem;
    let is_said = |at: &usize| said.iter().any(|word| is_same(word, &given[*at]));
    let hedged = (0..given.len()).filter(|at| is_open(*at) && !is_said(at));
    let hedged: Vec<usize> = hedged.map(|at| given_clauses.clause(at)).collect();
    // "Jim, | supposedly, | sold his watch."
    let is_between_marks = |clause: usize| {
        let mut own = (0..given.len()).filter(|at| given_clauses.clause(*at) == clause);
        hedged.contains(&clause) && own.all(|at| is_adverb(&given[at].lower))
    };
    // "It is possible | that Jim sold his watch."
    let holds = |clause: usize| {
        let is_reported = || clause > 0 && given_clauses.begins_with(clause, given, "that");
        hedged.contains(&clause)
            || is_reported() && hedged.contains(&(clause - 1))
            || clause.checked_sub(1).is_some_and(is_between_marks)
            || is_between_marks(clause + 1)
    };
    !hedged.is_empty()
        && (0..said_clauses.count()).any(|clause| {
            let best = given_clauses.best_for(&said_clauses.stems_of(clause, said), given);
            !best.is_empty() && best.into_iter().all(holds)
        })
}

/// Whether a sentence ends with a question mark.
pub(super) fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '\'', '”', '’', ')', '»', ' ']).ends_with(['?', '？', '؟'])
}

/// Whether a word of a sentence makes a duty of what a claim permits, or permits what is a duty in the claim. Both deny the
/// same: "must not", "may not".
fn is_other_duty(lower: &str, (said, clauses): (&[Word], &Clauses), given: &[Word]) -> bool {
    let has = |words: &[Word], list: &[&str]| words.iter().any(|word| list.contains(&word.lower.as_str()));
    let (duty, permission) = (&["must"], &["can", "may"]);
    let is_other = |own: &[&str], other: &[&str]| other.contains(&lower) && has(said, own) && !has(given, own);
    !clauses.any() && (is_other(duty, permission) || is_other(permission, duty))
}

/// "Used" of "He used to be a teacher", but not of "It is used to cut wood".
fn is_former(words: &[Word], at: usize) -> bool {
    let lower = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let before = at.checked_sub(1).map_or("", lower);
    lower(at) == "used" && lower(at + 1) == "to" && !matches!(before, "is" | "are" | "be" | "been" | "being")
}

fn is_hedge(words: &[Word], at: usize) -> bool {
    let lower = words[at].lower.as_str();
    let begins_with_capital = at > 0 && words[at].capital;
    // "May" and "Might" inside a sentence are names.
    !begins_with_capital && words[at].stem.as_deref() != Some("may") && HEDGES.contains(&lower)
}

/// Whether a lower-case word can be a hedge of the clauses beside it.
fn is_adverb(lower: &str) -> bool {
    lower.ends_with("ly") || matches!(lower, "maybe" | "most" | "perhaps")
}

const HEDGES: [&str; 20] = [
    "allegedly",
    "apparently",
    "arguably",
    "could",
    "likely",
    "may",
    "maybe",
    "might",
    "perhaps",
    "possible",
    "possibly",
    "presumably",
    "probably",
    "purportedly",
    "reportedly",
    "seemingly",
    "should",
    "supposedly",
    "unlikely",
    "would",
];

/// Verbs of the future, which state nothing about the past.
const FUTURE: [&str; 2] = ["will", "shall"];

const PAST: [&str; 4] = ["was", "were", "had", "did"];

/// What a claim may have in place of a hedge.
const ABLE: [&str; 2] = ["able", "can"];

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn considers(claim: &str, shown: &str) -> bool {
        let (said, given) = (words(claim), words(shown));
        only_considers((&said, &Clauses::read(&said, claim)), (&given, &Clauses::read(&given, shown)))
    }

    #[test]
    fn a_hedge_in_the_clause_of_a_claim_leaves_it_open() {
        assert!(considers("Jim is a teacher.", "Jim used to be a teacher."));
        assert!(!considers("Jim was a teacher.", "Jim used to be a teacher."));
        assert!(!considers("The saw cuts wood.", "The saw is used to cut wood."));
        let claim = "Jim sold his watch.";
        for open in [
            "Jim may have sold his watch.",
            "Perhaps Jim sold his watch.",
            "Jim will sell his watch.",
            "It is possible that Jim sold his watch.",
            "Perhaps, Jim sold his watch.",
            "Jim, most likely, sold his watch.",
        ] {
            assert!(considers(claim, open), "{open}");
            assert!(!considers(open, open), "{open}");
        }
        for stated in [
            "Jim sold his watch.",
            "Jim sold his watch, so he may be rich.",
            "Jim sold his watch in May.",
            "Ann would be rich, but Jim sold his watch.",
            "Jim did sell his watch, if I remember.",
            "Jim sold his watch, going to Rome.",
            "Jim, if he could, sold his watch.",
        ] {
            assert!(!considers(claim, stated), "{stated}");
        }
        assert!(!considers("The office opens in May.", "The office will open in May."));
        assert!(considers("The office will open in May.", "The office may open in May."));
    }

    #[test]
    fn a_duty_is_no_permission() {
        let (duty, permission) = ("The owner must charge a fee.", "The owner may charge a fee.");
        assert!(considers(duty, permission) && considers(permission, duty));
        assert!(!considers(duty, duty) && !considers(permission, permission));
        assert!(considers(duty, "The owner can charge a fee."));
        assert!(!considers("The owner can charge a fee.", permission));
        assert!(!considers("The owner may not charge a fee.", "The owner must not charge a fee."));
        assert!(!considers("Members may swim.", "Members may swim, but must pay."));
    }

    #[test]
    fn a_question_ends_with_a_question_mark() {
        assert!(is_question("Did Jim sell it?") && is_question("“Did Jim sell it?” ") && !is_question("Jim sold it."));
    }
}
