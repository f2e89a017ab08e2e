//! Where an answer occurs in the evidence.

use super::candidates::Place;
use super::numbers::{Number, is_equal};
use super::passage::{Passage, Sentence};
use super::question::Question;
use super::values::{Values, only_number};
use super::words::words;

/// Where an answer occurs in the evidence as whole words, whatever the case, the white space and an article before it; first in the
/// sentences that match the question best. Of an answer that begins with an article, the article of the text is part. A number
/// that occurs nowhere as it is written is looked for by its value: "22" in "he was twenty-two".
pub fn occurrences(question: &str, evidence: &[&str], answer: &str) -> Vec<Place> {
    let passage = Passage::read(&Question::parse(question), evidence);
    let rank = |place: &Place| {
        let holds = passage.sentences.iter().filter(|s| s.text == place.text && s.range.end > place.start);
        holds.map(|s| s.rank).next().unwrap_or(usize::MAX)
    };
    let bare = without_article(answer);
    let has_article = bare.len() < answer.trim().len();
    let found = evidence.iter().enumerate().flat_map(|(text, whole)| {
        find_words(whole, bare).into_iter().map(move |(start, end)| {
            let start = if has_article { start_of_article(whole, start).unwrap_or(start) } else { start };
            Place { text, start, end }
        })
    });
    let mut places: Vec<Place> = found.collect();
    if places.is_empty()
        && let Some(value) = only_number(answer)
    {
        places = same_numbers(&passage, value);
    }
    places.sort_by_key(rank);
    places
}

/// The numbers of the evidence that have a value.
fn same_numbers(passage: &Passage<'_>, value: f64) -> Vec<Place> {
    let in_sentence = |sentence: &Sentence| {
        let (text, start) = (sentence.text, sentence.range.start);
        let sentence = &passage.texts[text][sentence.range.clone()];
        let words = words(sentence);
        let numbers = Values::read(sentence, &|_| false).numbers;
        let same = numbers.into_iter().filter(|number| !number.ordinal && is_equal(number.value, value));
        let bytes =
            |number: Number| start + words[number.at.start].range.start..start + words[number.at.end - 1].range.end;
        same.map(bytes).map(|range| Place { text, start: range.start, end: range.end }).collect::<Vec<_>>()
    };
    passage.sentences.iter().flat_map(in_sentence).collect()
}

const ARTICLES: [&str; 3] = ["the", "an", "a"];

fn is_article(word: &str) -> bool {
    ARTICLES.iter().any(|article| word.eq_ignore_ascii_case(article))
}

/// A phrase without the article that it begins with.
fn without_article(phrase: &str) -> &str {
    let phrase = phrase.trim();
    match phrase.split_once(char::is_whitespace) {
        Some((first, rest)) if is_article(first) => rest.trim_start(),
        _ => phrase,
    }
}

/// Where the article begins that is the word before a place.
fn start_of_article(text: &str, place: usize) -> Option<usize> {
    let before = text[..place].trim_end();
    let start = before.char_indices().rev().find(|(_, c)| !c.is_alphanumeric()).map_or(0, |(at, c)| at + c.len_utf8());
    (before.len() < place && is_article(&before[start..])).then_some(start)
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
    fn answers_are_found_as_whole_words_whatever_their_case_and_blanks() {
        let places = occurrences("What was green?", &[STORY], " the Door was green ");
        assert_eq!(places.iter().map(|place| text(*place)).collect::<Vec<_>>(), ["The door was\ngreen"]);
        assert_eq!(text(occurrences("How much?", &[STORY], "$21")[0]), "$21");
        assert!(occurrences("Who?", &[STORY], "old").is_empty() && occurrences("Who?", &[STORY], " ").is_empty());
        // Articles may differ; the text's own is taken.
        assert_eq!(text(occurrences("What did Jim sell?", &[STORY], "a watch")[0]), "the watch");
        assert_eq!(text(occurrences("What did Jim sell?", &[STORY], "watch")[0]), "watch");
        assert_eq!(text(occurrences("Who was poor?", &[STORY], "the Jim")[0]), "Jim");
        // The place that matches the question comes first.
        let twice = ["It was Tom. Later the bridge was built by Tom."];
        assert_eq!(occurrences("Who built the bridge?", &twice, "tom")[0].start, 42);
    }

    #[test]
    fn a_number_that_is_not_there_as_it_is_written_is_found_by_its_value() {
        let text = "Poor fellow, he was only twenty-two--and to be burdened with a family! She was 21.";
        let found = |answer: &str| occurrences("How old?", &[text], answer).first().map(|p| &text[p.start..p.end]);
        assert_eq!(
            [found("22"), found("22 years old"), found("twenty-one")],
            [Some("twenty-two"), Some("twenty-two"), Some("21")]
        );
        assert_eq!([found("23"), found("$22"), found("22 miles"), found("22 and a dog")], [None; 4]);
    }
}
