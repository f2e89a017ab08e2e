//! Names of a text, and the sentences that tell what they name: "Ann Lee (born 1950) is an actress."

use std::collections::BTreeSet;
use std::ops::Range;

use super::candidates::Place;
use super::features::MONTHS;
use super::question::FORMS_OF_BE;
use super::values::weekday;
use super::words::{Word, words};
use crate::core::cite::sentences;

/// Words that the subject of a sentence without a form of "be" may have beside the name.
const BESIDE: usize = 4;

/// Words that end what a sentence says of its subject by a form of "be".
const ENDS: &str = "although because but that when where which while who whom whose";

/// A sentence that tells what something is.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    /// The sentence.
    pub place: Place,
    /// From behind the form of "be" to the next clause.
    pub complement: &'a str,
}

/// The stems of a name; `None` without a capitalised one: "the war" may be another one in each sentence.
pub(super) fn stems_of_name(name: &str) -> Option<Vec<String>> {
    let words = words(name);
    let is_name = words.iter().any(|word| word.capital && word.stem.is_some());
    is_name.then(|| words.into_iter().filter_map(|word| word.stem).collect())
}

/// The bytes of a name in a sentence that begins with it: "Ann Mary Lee" for "Ann Lee", but not "The Guest House" for "The Guest".
pub(super) fn subject(name: &[String], words: &[Word], sentence: &str) -> Option<Range<usize>> {
    let be = words.iter().position(is_form_of_be);
    let until = be.unwrap_or(words.len().min(name.len() + BESIDE));
    let first = words[..until].iter().position(|word| word.stem.is_some())?;
    let is_of_name = |word: &Word| word.stem.as_ref().is_some_and(|stem| name.contains(stem));
    let has_all = |last: &usize| {
        let run = &words[first..=*last];
        name.iter().all(|part| run.iter().any(|word| word.stem.as_ref() == Some(part)))
    };
    let last = (first..until).find(has_all).filter(|_| is_of_name(&words[first]))?;
    let goes_on = words.get(last + 1).is_some_and(|next| {
        let gap = &sentence[words[last].range.end..next.range.start];
        next.capital && next.stem.is_some() && gap.chars().all(|c| c == ' ')
    });
    (!goes_on).then(|| words[first].range.start..words[last].range.end)
}

fn is_form_of_be(word: &Word) -> bool {
    FORMS_OF_BE.contains(&word.lower.as_str())
}

/// The first sentence of the evidence that tells by a form of "be" what a name is of. The first sentence of a text, each of which is
/// given with its heading, tells what its heading names.
pub(super) fn definition<'a>(name: &str, evidence: &[(&'a str, &'a str)]) -> Option<Definition<'a>> {
    let name = stems_of_name(name)?;
    let in_sentence = |text: usize, at: usize, range: Range<usize>| {
        let (heading, whole) = evidence[text];
        let sentence = &whole[range.clone()];
        let words = words(sentence);
        let is_about = || at == 0 && is_name_of(&name, heading) || subject(&name, &words, sentence).is_some();
        let be = words.iter().position(is_form_of_be).filter(|_| is_about())?;
        let ends = words[be + 1..].iter().find(|word| ENDS.split_ascii_whitespace().any(|end| end == word.lower));
        let complement = &sentence[words[be].range.end..ends.map_or(sentence.len(), |end| end.range.start)];
        let place = Place { text, start: range.start, end: range.end };
        (!complement.trim().is_empty()).then_some(Definition { place, complement })
    };
    let mut texts = evidence.iter().enumerate();
    texts.find_map(|(text, (_, whole))| {
        let mut all = sentences(whole).into_iter().enumerate();
        all.find_map(|(at, range)| in_sentence(text, at, range))
    })
}

/// Whether a heading is a name and no more.
pub(super) fn is_name_of(name: &[String], heading: &str) -> bool {
    let heading: Vec<String> = words(heading).into_iter().filter_map(|word| word.stem).collect();
    name == heading
}

/// Runs of capitalised words of a text, as it has them, each once: names, and the first words of sentences. Those that have only
/// known stems are left out, and those of the calendar.
pub(super) fn names<'a>(text: &'a str, known: &BTreeSet<String>) -> Vec<&'a str> {
    let words = words(text);
    let is_part = |at: usize| {
        let Word { capital, stem, lower, .. } = &words[at];
        *capital && stem.is_some() && !MONTHS.contains(&lower.as_str()) && weekday(lower).is_none()
    };
    let touches = |at: usize| &text[words[at - 1].range.end..words[at].range.start] == " ";
    let is_link = |at: usize| matches!(words[at].lower.as_str(), "of" | "the") && touches(at);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..words.len()).filter(|at| is_part(*at)) {
        match runs.last_mut() {
            Some(run) if run.end == at && touches(at) => run.end = at + 1,
            // "House of Lords"
            Some(run) if run.end + 1 == at && is_link(at - 1) && touches(at) => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    let is_known = |word: &Word| word.stem.as_ref().is_none_or(|stem| known.contains(stem));
    runs.retain(|run| !words[run.clone()].iter().all(is_known));
    let mut names = Vec::new();
    for run in runs {
        let name = &text[words[run.start].range.start..words[run.end - 1].range.end];
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether a text with its heading is about one of several names, each as its stems: the heading has it or is part of it, or a
/// sentence begins with it.
pub(super) fn is_about_any(names: &[Vec<String>], heading: &str, text: &str) -> bool {
    let heading: Vec<String> = words(heading).into_iter().filter_map(|word| word.stem).collect();
    let has = |all: &[String], parts: &[String]| parts.iter().all(|part| all.contains(part));
    let is_headed = |name: &Vec<String>| !heading.is_empty() && (has(&heading, name) || has(name, &heading));
    let begins = |range: Range<usize>| {
        let sentence = &text[range];
        let words = words(sentence);
        names.iter().any(|name| subject(name, &words, sentence).is_some())
    };
    names.iter().any(is_headed) || sentences(text).into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIDENCE: [(&str, &str); 3] = [
        ("", "It rained. Ann Mary Lee (born 1950) is an American actress who sings. Ann Lee was in Rome."),
        ("musa", "The film of Kim Park was a success of 2001. It is long."),
        ("", "Musa\nMusa Hill is a hill."),
    ];

    #[test]
    fn a_definition_begins_with_the_name_or_is_the_first_sentence_below_it() {
        let found = |name: &str| definition(name, &EVIDENCE).map(|found| (found.place.text, found.complement.trim()));
        assert_eq!(found("Ann Lee"), Some((0, "an American actress")));
        assert_eq!(found("Musa"), Some((1, "a success of 2001.")));
        assert_eq!([found("Bo Lee"), found("rain"), found("It")], [None; 3]);
    }

    #[test]
    fn names_are_runs_of_capitalised_words_that_are_not_known() {
        let known: BTreeSet<String> = stems_of_name("Ann Lee").into_iter().flatten().collect();
        let text = "Ann Lee left the House of Lords in May 1950. She met Kim Park, Bo and Kim Park on Monday.";
        assert_eq!(names(text, &known), ["House of Lords", "Kim Park", "Bo"]);
        assert!(names("It rained.", &known).is_empty());
    }

    #[test]
    fn a_text_is_about_a_name_in_its_heading_or_at_the_start_of_a_sentence() {
        let about = |name: &str, heading: &str, text: &str| {
            is_about_any(&[stems_of_name(name).expect("it is capitalised")], heading, text)
        };
        assert!(about("Kim Park", "Kim Park (director)", "") && about("Kim Park", "park", "It rained."));
        assert!(about("Kim Park", "", "It rained. Kim Park made a film."));
        assert!(!about("Kim Park", "", "It rained. A film by Kim Park was long."));
    }
}
