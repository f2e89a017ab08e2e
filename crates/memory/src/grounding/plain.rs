//! Sentences that are a question with its answer, as a statement: "The law was repealed in 1931."

use std::collections::BTreeSet;

use super::cells::Cell;
use super::checked::check;
use super::negation::Clauses;
use super::question::{Kind, Question};
use super::stated::{Stating, sentence_of};
use super::verdict::{Checks, Verdict};
use super::words::words;

/// Whether the clause that holds an answer, or the sentence up to the next statement in it, has all content words of
/// the question and beside the answer no others, and supports the question with the answer: no other phrase there can
/// be the answer. So does a cell of a table if the question has only words of its row and of the name of its column.
pub fn states_plainly(question: &str, stating: &Stating<'_>) -> bool {
    let Some(range) = sentence_of(stating) else { return false };
    let (sentence, answer) = (&stating.text[range.clone()], &stating.text[stating.answer.clone()]);
    if Cell::at(stating.text, &stating.answer).is_some_and(|cell| cell.is_asked_for(question, answer)) {
        return true;
    }
    let (given, parsed) = (words(sentence), Question::parse(question));
    let clauses = Clauses::read(&given, sentence);
    let is_of_answer = |at: usize| stating.answer.contains(&(range.start + given[at].range.start));
    let Some(place) = (0..given.len()).find(|at| is_of_answer(*at)) else { return false };
    // "1931" is a year, but Turku need not be a city.
    let is_typed = matches!(parsed.kind, Kind::Time | Kind::Count);
    let asked: BTreeSet<&String> = parsed.terms.iter().collect();
    let has_only_these = |is_here: &dyn Fn(usize) -> bool| {
        let content = |is_of: bool| {
            let here = (0..given.len()).filter(move |at| is_here(*at) && (is_of || !is_of_answer(*at)));
            here.filter_map(|at| given[at].stem.as_ref()).collect::<BTreeSet<&String>>()
        };
        let (all, mut rest) = (content(true), content(false));
        let has_focus = parsed.focus.as_ref().is_none_or(|focus| is_typed || all.contains(focus));
        if let Some(focus) = &parsed.focus {
            rest.remove(focus);
        }
        has_focus && rest == asked
    };
    let is_plain = has_only_these(&|at| clauses.clause(at) == clauses.clause(place))
        || has_only_these(&|at| clauses.segment(at) == clauses.segment(place));
    let is_supported = || {
        let checked = check(question, answer, &[sentence], Checks::default());
        !checked.is_empty() && checked.iter().all(|checked| matches!(checked.verdict, Verdict::Supported(_)))
    };
    !asked.is_empty() && is_plain && is_supported()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_without_other_words_than_those_of_question_and_answer_is_plain() {
        let is_plain = |question: &str, sentence: &str, answer: &str| {
            let start = sentence.find(answer).unwrap();
            let answer = start..start + answer.len();
            states_plainly(question, &Stating { text: sentence, heading: "", quote: 0..sentence.len(), answer })
        };
        for (question, sentence, answer) in [
            ("Who founded Apple?", "Steve Jobs founded Apple.", "Steve Jobs"),
            ("Who founded Apple?", "Apple was founded by Steve Jobs.", "Steve Jobs"),
            ("When was the law repealed?", "The law was repealed in 1931.", "1931"),
            ("In what year was the law repealed?", "In 1931, the law was repealed.", "1931"),
            ("Where was Marta born?", "Marta was born in Ghent.", "Ghent"),
            ("What did Jim sell?", "Jim sold his gold watch because he was poor.", "his gold watch"),
            ("What is the capital of France?", "Paris is the capital of France.", "Paris"),
        ] {
            assert!(is_plain(question, sentence, answer), "{question} {answer}");
        }
        for (question, sentence, answer) in [
            ("Who founded Apple?", "Steve Jobs founded Apple with Steve Wozniak.", "Steve Wozniak"),
            ("Who founded Apple?", "Apple hired Steve Jobs.", "Steve Jobs"),
            ("When was the law repealed?", "The law was passed in 1922.", "1922"),
            ("When was the law repealed?", "Some say the law was repealed in 1931.", "1931"),
            ("When was the law repealed?", "The law was not repealed in 1931.", "1931"),
            ("Where was Marta born?", "She was born in Ghent.", "Ghent"),
            ("What did Ann buy?", "Ann bought in Rome.", "Rome"),
            ("Which king won the cup?", "Turku won the cup.", "Turku"),
            ("Who was killed?", "Ann was killed by Bob.", "Bob"),
        ] {
            assert!(!is_plain(question, sentence, answer), "{question} {answer}");
        }
    }
}
