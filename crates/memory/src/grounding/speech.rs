//! Who says "I" in the direct speech of a story and in messages of mail.

use std::collections::HashSet;
use std::ops::Range;

use super::mail::{message_at, parts};
use super::values::Values;
use super::words::{Word, words};
use crate::core::cite::sentences;

/// The person that the first and second person of a sentence refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The lower-case words of the speaker's name.
    Named(Vec<String>),
    /// A person whose name the text does not give, neither in the narration nor above a message of mail.
    Unknown,
}

/// The speaker of a sentence that refers to persons in the first and second person only; `None` for any other sentence.
/// `sentence` is its bytes in `text`.
pub(super) fn speaker(text: &str, sentence: Range<usize>) -> Option<Speaker> {
    let own = paragraph(text, sentence.start);
    let pieces = pieces(&text[own.clone()]);
    let in_speech = |word: &Word| {
        pieces
            .iter()
            .any(|piece| piece.is_speech && piece.range.contains(&(sentence.start + word.range.start - own.start)))
    };
    let words = words(&text[sentence.clone()]);
    let first = words.iter().find(|word| FIRST.iter().chain(&SECOND).any(|person| *person == word.lower))?;
    let is_speech = in_speech(first);
    if words.iter().any(|word| is_third(&word.lower) && in_speech(word) == is_speech) {
        return None;
    }
    Some(match is_speech {
        true => attributed(text, own, &pieces),
        false => correspondent(text, sentence.start + first.range.start, &words),
    })
}

/// The sender of the message of mail that has a byte in its body, or its recipient if the words of the sentence have no first person.
fn correspondent(text: &str, at: usize, words: &[Word]) -> Speaker {
    let is_first = words.iter().any(|word| FIRST.contains(&word.lower.as_str()));
    let name = message_at(text, at).and_then(|message| if is_first { Some(message.sender) } else { message.recipient });
    name.map_or(Speaker::Unknown, |name| Speaker::Named(parts(name)))
}

/// The name that a paragraph with direct speech gives to its speaker: beside a verb such as "said", or, where that has "he" or
/// "she" as its subject, the one name of the narration before it, if the sentence with that name has such a pronoun too.
fn attributed(text: &str, paragraph: Range<usize>, pieces: &[Piece]) -> Speaker {
    let known = names_inside_sentences(text);
    let own = &text[paragraph.clone()];
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_speech) {
        let narration = &own[piece.range.clone()];
        let words = words(narration);
        let Some(verb) = words.iter().position(|word| SAYING.contains(&word.lower.as_str())) else { continue };
        let beside = [words.get(verb + 1), verb.checked_sub(1).and_then(|before| words.get(before))];
        for subject in beside.into_iter().flatten() {
            if let Some(gender) = GENDERS.iter().find(|gender| gender[0] == subject.lower) {
                let before = pieces[..at].iter().rev().filter(|piece| !piece.is_speech);
                let before = before.map(|piece| &own[piece.range.clone()]);
                let earlier = narration_before(text, paragraph.start);
                let named = before.chain(earlier).find_map(|narration| only_name(narration, gender, &known));
                return named.unwrap_or(Speaker::Unknown);
            }
            let holds_subject = |name: &Vec<String>| name.contains(&subject.lower);
            let mut names = Values::read(narration, &|lower| known.contains(lower)).names.into_iter();
            if let Some(name) = names.find(holds_subject) {
                return Speaker::Named(name);
            }
        }
    }
    Speaker::Unknown
}

/// The name of the last sentence of a narration that has one; unknown if it has several, or no pronoun of the gender.
fn only_name(narration: &str, gender: &[&str], known: &HashSet<String>) -> Option<Speaker> {
    sentences(narration).into_iter().rev().find_map(|range| {
        let sentence = &narration[range];
        let names = Values::read(sentence, &|lower| known.contains(lower)).names;
        let refers = || words(sentence).iter().any(|word| gender.contains(&word.lower.as_str()));
        match &names[..] {
            [] => None,
            [name] if refers() => Some(Speaker::Named(name.clone())),
            _ => Some(Speaker::Unknown),
        }
    })
}

/// What is outside of direct speech in the paragraph before a place, the last piece first.
fn narration_before(text: &str, start: usize) -> impl Iterator<Item = &str> {
    let end = text[..start].trim_end().len();
    let before = &text[paragraph(text, end.saturating_sub(1)).start..end];
    pieces(before).into_iter().rev().filter(|piece| !piece.is_speech).map(move |piece| &before[piece.range])
}

/// The bytes of the paragraph that a place is in. Paragraphs end at blank lines; in a text without these, at line breaks.
fn paragraph(text: &str, at: usize) -> Range<usize> {
    let end_mark = if text.contains("\n\n") { "\n\n" } else { "\n" };
    let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = text[..at].rfind(end_mark).map_or(0, |end| end + end_mark.len());
    let end = text[at..].find(end_mark).map_or(text.len(), |end| at + end);
    start..end
}

/// A stretch of a paragraph inside or outside of quotation marks.
struct Piece {
    range: Range<usize>,
    is_speech: bool,
}

fn pieces(paragraph: &str) -> Vec<Piece> {
    let (mut pieces, mut from, mut is_speech) = (Vec::new(), 0, false);
    for (at, mark) in paragraph.match_indices(['"', '\u{201c}', '\u{201d}']) {
        let opens = if mark == "\"" { !is_speech } else { mark == "\u{201c}" };
        pieces.push(Piece { range: from..at, is_speech });
        (from, is_speech) = (at + mark.len(), opens);
    }
    pieces.push(Piece { range: from..paragraph.len(), is_speech });
    pieces
}

/// Lower-case forms of words that are capitalised behind a word in lower case.
fn names_inside_sentences(text: &str) -> HashSet<String> {
    let words = words(text);
    let is_inside = |pair: &&[Word]| pair[1].capital && !pair[1].is_function() && !pair[0].capital;
    let is_near = |pair: &&[Word]| text[pair[0].range.end..pair[1].range.start].chars().all(char::is_whitespace);
    words.windows(2).filter(is_inside).filter(is_near).map(|pair| pair[1].lower.clone()).collect()
}

/// Whether a word is a pronoun for other persons.
pub(super) fn is_third(lower: &str) -> bool {
    GENDERS.iter().flatten().chain(&["they", "their", "them", "theirs"]).any(|word| *word == lower)
}

const GENDERS: [[&str; 5]; 2] = [["he", "his", "him", "himself", "he's"], ["she", "her", "hers", "herself", "she's"]];

pub(super) const FIRST: [&str; 16] = [
    "i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself", "we", "we're", "we've", "we'd", "us", "our",
    "ours",
];

pub(super) const SECOND: [&str; 7] = ["you", "your", "yours", "yourself", "you're", "you've", "yer"];

const SAYING: [&str; 24] = [
    "said",
    "says",
    "asked",
    "asks",
    "cried",
    "replied",
    "replies",
    "answered",
    "answers",
    "exclaimed",
    "whispered",
    "shouted",
    "added",
    "continued",
    "muttered",
    "murmured",
    "remarked",
    "observed",
    "returned",
    "called",
    "began",
    "repeated",
    "explained",
    "told",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker_of(text: &str, sentence: &str) -> Option<Speaker> {
        let at = text.find(sentence).unwrap();
        speaker(text, at..at + sentence.len())
    }

    fn named(name: &str) -> Speaker {
        Speaker::Named(name.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_name_beside_a_verb_of_speech_is_the_speaker() {
        let text = "It was late when Jim came. \"I sold the watch,\" said Jim to Della. \"I am poor.\"\n\n\
            Old Ada Brook replied, \"I know.\" \u{201c}We can go,\u{201d} the man said.";
        assert_eq!(speaker_of(text, "\"I sold the watch,\" said Jim to Della."), Some(named("jim")));
        assert_eq!(speaker_of(text, "\"I am poor.\""), Some(named("jim")));
        assert_eq!(speaker_of(text, "Old Ada Brook replied, \"I know.\""), Some(named("ada brook")));
    }

    #[test]
    fn a_pronoun_is_the_one_name_of_the_narration_before_it() {
        let text = "Instead of obeying, Jim tumbled down on the couch and put his hands under his head.\n\n\
            \"Dell,\" said he, \"let's put them away. I sold the watch to buy your combs.\"";
        assert_eq!(speaker_of(text, "I sold the watch to buy your combs.\""), Some(named("jim")));
        // Another gender, two names, none.
        for narration in ["Then Della put up her hair.", "Then Jim gave his hat to Tom.", "The night was cold."] {
            let text = format!("So it was Della or Jim or Tom. {narration}\n\n\"I sold the watch,\" he said.");
            assert_eq!(speaker_of(&text, "\"I sold the watch,\" he said."), Some(Speaker::Unknown), "{narration}");
        }
    }

    #[test]
    fn the_first_person_of_a_message_is_its_sender() {
        let text = "From: Ann Lee <a@x.example>\nTo: Tom <t@x.example>\n\nI moved. You may come. He slept.\n> I stay.";
        assert_eq!(speaker_of(text, "I moved."), Some(named("ann lee")));
        assert_eq!(speaker_of(text, "You may come."), Some(named("tom")));
        assert_eq!(speaker_of(text, "He slept."), None);
        assert_eq!(speaker_of(text, "I stay."), Some(Speaker::Unknown));
    }

    #[test]
    fn a_narrator_has_no_name_and_the_third_person_no_speaker() {
        let text = "Tom slept. I sold the watch. \"Go,\" said Ann. He sold my hat.";
        assert_eq!(speaker_of(text, "I sold the watch."), Some(Speaker::Unknown));
        assert_eq!(speaker_of(text, "He sold my hat."), None);
        assert_eq!(speaker_of(text, "Tom slept."), None);
    }
}
