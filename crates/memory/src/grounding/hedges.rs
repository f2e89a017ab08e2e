//! Sentences that hold the words of a statement without stating it: "If Jim sold his watch, ...", "Jim may sell his watch.",
//! "Did Jim sell his watch?". Hedges are known in English only, and are compared by clause, as negations are.

use super::claims::DETERMINERS;
use super::negation::Clauses;
use super::words::{Word, is_past};

/// Whether a sentence only considers what a claim states: every clause that has most of the words of a clause of the claim
/// has a hedge, and the claim has none.
pub(super) fn only_considers(claim: (&[Word], &Clauses), shown: (&[Word], &Clauses)) -> bool {
    let ((said, said_clauses), (given, given_clauses)) = (claim, shown);
    let is_of_the_past = said.iter().any(|word| is_past(&word.lower) || PAST.contains(&word.lower.as_str()));
    let is_open = |at: usize| match is_of_the_past {
        true => is_hedge(given, at) || FUTURE.contains(&given[at].lower.as_str()),
        false => is_hedge(given, at) || is_former(given, at),
    };
    // "What did he deny?" asks for what he denied.
    let is_said = |at: &usize| given[*at].stem.is_some() && said.iter().any(|word| word.stem == given[*at].stem);
    let hedged = (0..given.len()).filter(|at| is_open(*at) && !is_said(at));
    let hedged: Vec<usize> = hedged.map(|at| given_clauses.clause(at)).collect();
    // "It is possible | that Jim sold his watch."
    let holds = |clause: usize| {
        let is_reported = || clause > 0 && given_clauses.begins_with(clause, given, "that");
        hedged.contains(&clause) || is_reported() && hedged.contains(&(clause - 1))
    };
    let is_hedged = (0..said.len()).any(|at| is_hedge(said, at) || ABLE.contains(&said[at].lower.as_str()));
    !hedged.is_empty()
        && !is_hedged
        && (0..said_clauses.count()).any(|clause| {
            let best = given_clauses.best_for(&said_clauses.stems_of(clause, said), given);
            !best.is_empty() && best.into_iter().all(holds)
        })
}

/// Whether a sentence ends with a question mark.
pub(super) fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '\'', '”', '’', ')', '»', ' ']).ends_with(['?', '？', '؟'])
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
    // "going to Rome" is no aim.
    let is_place = |word: &Word| word.capital || DETERMINERS.contains(&word.lower.as_str());
    let is_to = |at: usize| words.get(at).is_some_and(|word| word.lower == "to");
    let is_aim = || AIMS.contains(&lower) && is_to(at + 1) && words.get(at + 2).is_some_and(|word| !is_place(word));
    let is_report = || REPORTS.contains(&lower) && words.get(at + 1).is_some_and(|word| word.lower == "that");
    // "May" and "Might" inside a sentence are names.
    !begins_with_capital && words[at].stem.as_deref() != Some("may") && HEDGES.contains(&lower)
        || is_aim()
        || is_report()
}

const HEDGES: [&str; 24] = [
    "allegedly",
    "believe",
    "believed",
    "believes",
    "could",
    "if",
    "likely",
    "may",
    "maybe",
    "might",
    "perhaps",
    "possible",
    "possibly",
    "presumably",
    "probably",
    "reportedly",
    "rumoured",
    "should",
    "suppose",
    "supposedly",
    "unless",
    "unlikely",
    "whether",
    "would",
];

/// Verbs that "that" follows before what is not so, or is not known to be so.
const REPORTS: [&str; 14] = [
    "alleged", "alleges", "claimed", "claims", "denied", "denies", "doubted", "doubts", "hoped", "hopes", "promised",
    "promises", "thought", "wished",
];

/// Words that "to" follows before what is not done yet, or is only said to be so.
const AIMS: [&str; 38] = [
    "about",
    "aim",
    "aims",
    "alleged",
    "attempt",
    "attempted",
    "attempts",
    "expected",
    "expects",
    "forgets",
    "forgot",
    "going",
    "hope",
    "hoped",
    "hopes",
    "intended",
    "intends",
    "offered",
    "offers",
    "plan",
    "planned",
    "plans",
    "promised",
    "reported",
    "said",
    "supposed",
    "thought",
    "threatened",
    "tried",
    "tries",
    "try",
    "trying",
    "want",
    "wanted",
    "wants",
    "wish",
    "wished",
    "wishes",
];

/// Verbs of the future, which state nothing about the past.
const FUTURE: [&str; 2] = ["will", "shall"];

const PAST: [&str; 4] = ["was", "were", "had", "did"];

/// What a claim may have in place of a hedge.
const ABLE: [&str; 4] = ["able", "can", "will", "must"];

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
            "If Jim had sold his watch, he would be rich.",
            "Jim may have sold his watch.",
            "Perhaps Jim sold his watch.",
            "Jim wanted to sell his watch.",
            "Jim will sell his watch.",
            "It is possible that Jim sold his watch.",
            "Ann asked whether Jim sold his watch.",
            "Ann claimed that Jim sold his watch.",
            "Ann denied that Jim sold his watch.",
            "Jim was said to have sold his watch.",
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
        ] {
            assert!(!considers(claim, stated), "{stated}");
        }
        assert!(!considers("The office opens in May.", "The office will open in May."));
    }

    #[test]
    fn a_question_ends_with_a_question_mark() {
        assert!(is_question("Did Jim sell it?") && is_question("“Did Jim sell it?” ") && !is_question("Jim sold it."));
    }
}
