//! An answer as claims: its sentences, cut where they join two statements.

use std::ops::Range;

use super::words::{is_past, words};
use crate::core::cite::sentences;

/// A statement of an answer that can be right or wrong by itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Claim {
    /// As the answer has it.
    pub text: String,
    /// Bytes of the answer.
    pub start: usize,
    pub end: usize,
    /// Which sentence of the answer, from 0.
    pub sentence: usize,
}

/// The claims of an answer in their order.
pub fn claims(answer: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (sentence, range) in sentences(answer).into_iter().enumerate() {
        for part in parts(&answer[range.clone()]) {
            let (start, end) = (range.start + part.start, range.start + part.end);
            claims.push(Claim { text: answer[start..end].to_owned(), start, end, sentence });
        }
    }
    claims
}

/// Ranges between semicolons, and between a comma with "and" or "but" if what follows has a subject and a verb of its own.
fn parts(sentence: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in sentence.match_indices([';', ',']) {
        let after = &sentence[at + 1..];
        let joint = [" and ", " but "].iter().find(|joint| after.starts_with(**joint));
        let skip = match (&sentence[at..=at], joint) {
            (";", _) => 1,
            (",", Some(joint)) if is_clause(&after[joint.len()..]) && is_clause(&sentence[from..at]) => joint.len() + 1,
            _ => continue,
        };
        parts.push(trim(sentence, from..at));
        from = at + skip;
    }
    parts.push(trim(sentence, from..sentence.len()));
    parts.retain(|part| !part.is_empty());
    parts
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let start = range.start + (piece.len() - piece.trim_start().len());
    start..start + piece.trim().len()
}

/// Begins with a subject (a pronoun or a capitalised word) and has a second word that can be its verb.
fn is_clause(text: &str) -> bool {
    let words = words(text);
    let Some(first) = words.first() else { return false };
    let pronoun = SUBJECTS.contains(&first.lower.as_str());
    words.len() >= 3 && (pronoun || first.capital) && (pronoun || words[1..].iter().any(|word| is_verb(&word.lower)))
}

/// A few words without a verb. Verbs are known in English only, so a text in a script without spaces is none; neither are
/// three words or more that begin with a pronoun as subject.
pub(super) fn is_fragment(text: &str) -> bool {
    let words = words(text);
    let has_subject = words.len() >= 3 && words.first().is_some_and(|word| SUBJECTS.contains(&word.lower.as_str()));
    let unspaced = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
    !has_subject && words.len() <= 8 && !text.contains(unspaced) && !words.iter().any(|word| is_verb(&word.lower))
}

fn is_verb(lower: &str) -> bool {
    VERBS.contains(&lower) || is_past(lower)
}

/// Pronouns that begin a clause as its subject.
pub(super) const SUBJECTS: [&str; 9] = ["he", "she", "it", "they", "we", "i", "you", "there", "this"];

const VERBS: [&str; 13] =
    ["is", "are", "was", "were", "has", "have", "had", "does", "did", "can", "could", "will", "would"];

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(answer: &str) -> Vec<String> {
        claims(answer).into_iter().map(|claim| claim.text).collect()
    }

    #[test]
    fn an_answer_is_cut_into_statements() {
        let answer =
            "Jim sold his watch; he was poor. Della sold her hair, and she bought a chain. It was red, white and blue.";
        let want = [
            "Jim sold his watch",
            "he was poor.",
            "Della sold her hair",
            "she bought a chain.",
            "It was red, white and blue.",
        ];
        assert_eq!(texts(answer), want);
        assert!(claims(answer).iter().all(|claim| answer[claim.start..claim.end] == claim.text));
        assert_eq!(claims(answer)[4].sentence, 2);
        assert!(claims("  ").is_empty());
    }
}
