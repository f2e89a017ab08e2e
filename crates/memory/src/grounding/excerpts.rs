//! The parts of the evidence that a model with a short attention is shown, and where its answer is in the evidence.

use std::collections::BTreeSet;

use super::candidates::Place;
use super::passage::Passage;
use super::question::Question;
use crate::core::cite::sentences;

/// Sentences that are shown before and after one that matches the question.
const NEIGHBOURS: usize = 1;

/// Runs of sentences around those that match the question best, in the order of the evidence: about `most` bytes of them,
/// or all of the evidence if it is not longer.
pub fn excerpts(question: &str, evidence: &[&str], most: usize) -> Vec<Place> {
    if evidence.iter().map(|text| text.len()).sum::<usize>() <= most {
        let whole = |(text, all): (usize, &&str)| Place { text, start: 0, end: all.len() };
        return evidence.iter().enumerate().filter(|(_, all)| !all.trim().is_empty()).map(whole).collect();
    }
    let passage = Passage::read(&Question::parse(question), evidence);
    let sentences = &passage.sentences;
    let mut best: Vec<usize> = (0..sentences.len()).collect();
    best.sort_by_key(|at| sentences[*at].rank);
    let (mut shown, mut bytes) = (BTreeSet::new(), 0);
    for at in best {
        let in_text = |near: &usize| sentences[*near].text == sentences[at].text;
        let near = (at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(sentences.len())).filter(in_text);
        let new: Vec<usize> = near.filter(|near| !shown.contains(near)).collect();
        let more: usize = new.iter().map(|near| sentences[*near].range.len()).sum();
        if bytes + more > most && !shown.is_empty() {
            break;
        }
        bytes += more;
        shown.extend(new);
    }
    let shown: Vec<usize> = shown.into_iter().collect();
    let runs = shown.chunk_by(|a, b| a + 1 == *b && sentences[*a].text == sentences[*b].text);
    runs.map(|run| {
        let (first, last) = (&sentences[run[0]], &sentences[run[run.len() - 1]]);
        Place { text: first.text, start: first.range.start, end: last.range.end }
    })
    .collect()
}

/// All of the evidence in parts of about `most` bytes, in its order; texts are cut between sentences.
pub fn parts(evidence: &[&str], most: usize) -> Vec<Vec<Place>> {
    let mut parts: Vec<Vec<Place>> = Vec::new();
    let mut bytes = most;
    for (text, whole) in evidence.iter().enumerate() {
        for sentence in sentences(whole) {
            let fits = bytes + sentence.len() <= most;
            bytes = if fits { bytes + sentence.len() } else { sentence.len() };
            if !fits || parts.is_empty() {
                parts.push(Vec::new());
            }
            let Some(part) = parts.last_mut() else { continue };
            match part.last_mut().filter(|place| place.text == text) {
                Some(place) => place.end = sentence.end,
                None => part.push(Place { text, start: sentence.start, end: sentence.end }),
            }
        }
    }
    parts
}

/// Where an answer occurs in the evidence as whole words, whatever the case and the white space; first in the sentences that
/// match the question best.
pub fn occurrences(question: &str, evidence: &[&str], answer: &str) -> Vec<Place> {
    let passage = Passage::read(&Question::parse(question), evidence);
    let rank = |place: &Place| {
        let holds = passage.sentences.iter().filter(|s| s.text == place.text && s.range.end > place.start);
        holds.map(|s| s.rank).next().unwrap_or(usize::MAX)
    };
    let found = evidence.iter().enumerate().flat_map(|(text, whole)| {
        find_words(whole, answer).into_iter().map(move |(start, end)| Place { text, start, end })
    });
    let mut places: Vec<Place> = found.collect();
    places.sort_by_key(rank);
    places
}

/// Byte ranges of a phrase in a text.
fn find_words(text: &str, phrase: &str) -> Vec<(usize, usize)> {
    let (folded, offsets) = fold(text);
    let (phrase, _) = fold(phrase.trim());
    if phrase.is_empty() {
        return Vec::new();
    }
    let is_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric());
    let ends_inside = |at: usize, first: char| at > 0 && is_word(folded.get(at - 1)) && first.is_alphanumeric();
    let mut found = Vec::new();
    for at in 0..(folded.len() + 1).saturating_sub(phrase.len()) {
        let end = at + phrase.len();
        let cut = ends_inside(at, phrase[0]) || is_word(folded.get(end)) && is_word(phrase.last());
        if folded[at..end] == phrase[..] && !cut {
            found.push((offsets[at].0, offsets[end - 1].1));
        }
    }
    found
}

/// The characters of a text in lower case, with one blank for each run of white space, and the bytes of each.
fn fold(text: &str) -> (Vec<char>, Vec<(usize, usize)>) {
    let (mut folded, mut offsets) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if c.is_whitespace() {
            if folded.last() == Some(&' ') {
                continue;
            }
            folded.push(' ');
            offsets.push((at, end));
        } else {
            let c = if c == '\u{2019}' { '\'' } else { c };
            for lower in c.to_lowercase() {
                folded.push(lower);
                offsets.push((at, end));
            }
        }
    }
    (folded, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "Jim sold the watch.  He was poor. They lived in a flat. The stairs were dark. The door was\n\
        green. It rained for days. Della paid $21 for a platinum fob chain. She ran home. The street was cold.";

    fn text(place: Place) -> &'static str {
        &STORY[place.start..place.end]
    }

    #[test]
    fn excerpts_are_runs_around_the_best_sentences_in_the_order_of_the_text() {
        let shown = excerpts("What did Della pay for the chain?", &[STORY], 130);
        assert_eq!(shown.len(), 1);
        assert!(text(shown[0]).starts_with("The door was\ngreen.") && text(shown[0]).ends_with("The street was cold."));
        let both = excerpts("Who sold the watch that Della paid the chain for?", &[STORY], 200);
        assert_eq!(both.len(), 2);
        assert!(text(both[0]).starts_with("Jim sold the watch.") && both[0].end < both[1].start);
        assert_eq!(excerpts("What?", &[STORY, " ", "b"], 1000).len(), 2, "short evidence is shown whole");
    }

    #[test]
    fn parts_are_all_of_the_evidence_cut_between_sentences() {
        let texts = [STORY, "A short text.", "Another one."];
        let parts = parts(&texts, 110);
        let shown: Vec<Vec<&str>> = parts
            .iter()
            .map(|part| part.iter().map(|place| &texts[place.text][place.start..place.end]).collect())
            .collect();
        assert_eq!(shown.len(), 3, "{shown:?}");
        assert!(shown[0][0].starts_with("Jim sold") && shown[0][0].ends_with("dark."), "{shown:?}");
        assert_eq!(shown[2], ["She ran home. The street was cold.", "A short text.", "Another one."]);
        assert!(super::parts(&[" ", ""], 100).is_empty());
    }

    #[test]
    fn answers_are_found_as_whole_words_whatever_their_case_and_blanks() {
        let places = occurrences("What was green?", &[STORY], " the Door was green ");
        assert_eq!(places.iter().map(|place| text(*place)).collect::<Vec<_>>(), ["The door was\ngreen"]);
        assert_eq!(text(occurrences("How much?", &[STORY], "$21")[0]), "$21");
        assert!(occurrences("Who?", &[STORY], "old").is_empty() && occurrences("Who?", &[STORY], " ").is_empty());
        // The place that matches the question comes first.
        let twice = ["It was Tom. Later the bridge was built by Tom."];
        assert_eq!(occurrences("Who built the bridge?", &twice, "tom")[0].start, 42);
    }
}
