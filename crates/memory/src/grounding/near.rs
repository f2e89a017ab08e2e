//! Words of a text that an answer misspells: "Kayann Short" for "Kawann Short".

use std::ops::Range;

use super::words::{Word, words};

/// The least similarity of an answer and the words of a text: 1 - edits / length of the longer.
const LEAST: f64 = 0.8;

/// Longer answers are often sentences in words of their own, and not copies.
const MOST_WORDS: usize = 6;

/// The run of words of a text that is spelled most like an answer, in bytes, and how similar it is; `None` if more than a few letters
/// differ. Numbers must be the same.
pub fn nearest_spelling(text: &str, answer: &str) -> Option<(f64, Range<usize>)> {
    let (answer, text) = (words(answer), words(text));
    if answer.is_empty() || answer.len() > MOST_WORDS {
        return None;
    }
    let joined = |run: &[Word]| run.iter().map(|word| word.lower.as_str()).collect::<Vec<_>>().join(" ");
    let wanted = joined(&answer);
    let lengths = (answer.len() - 1).max(1)..=answer.len() + 1;
    let runs = lengths.flat_map(|length| text.windows(length)).filter(|run| numbers(run).eq(numbers(&answer)));
    let rated = runs.map(|run| (strsim::normalized_levenshtein(&wanted, &joined(run)), run));
    let (similarity, run) =
        rated.filter(|(similarity, _)| *similarity >= LEAST).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((similarity, run[0].range.start..run[run.len() - 1].range.end))
}

fn numbers(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().filter(|word| word.number).map(|word| word.lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::nearest_spelling;

    #[test]
    fn misspelled_answers_are_found_as_the_text_spells_them() {
        let text =
            "Kawann Short led the team with 11 sacks. The Dutch name is Amazoneregenwoud; Ann Short came in 1985.";
        let found = |answer: &str| nearest_spelling(text, answer).map(|(_, range)| &text[range]);
        assert_eq!(found("Kayann Short"), Some("Kawann Short"));
        assert_eq!(found("amazoniregenwoud"), Some("Amazoneregenwoud"));
        assert_eq!(found("the Dutch names"), Some("The Dutch name"));
        assert_eq!([found("12 sacks"), found("1986"), found("a team of others"), found("")], [None; 4]);
        assert_eq!(found("Kayann Short led the team with 11"), None, "more words than a short answer has");
    }
}
