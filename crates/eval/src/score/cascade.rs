//! mindgraph:cascade: rules that accept a free answer before a judge is asked (MindGraph, section 4.2 and appendix D.4;
//! gaps in the paper are filled as the documentation of the methods describes).
//!
//! A rule can only accept. An answer that no rule accepts goes to the judge.

use calls::number_words::value;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::words::f1;

/// The rule that accepted an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Equal when normalised.
    Equal,
    /// Both are the same number.
    Number,
    /// The gold answer occurs in the prediction without a `not` before it.
    Contained,
    /// One of the rules above, applied to the prediction's first sentence.
    FirstSentence,
    /// Half of the words that matter.
    KeyPhrase,
}

/// The first rule that accepts a prediction for any of the gold answers.
pub fn cascade(prediction: &str, golds: &[String]) -> Option<Rung> {
    let first = first_sentence(prediction);
    let accepted = golds.iter().filter_map(|gold| {
        let rung = whole(prediction, gold);
        let rung = rung.or_else(|| whole(first, gold).map(|_| Rung::FirstSentence));
        rung.or_else(|| shares_key_words(prediction, gold).then_some(Rung::KeyPhrase))
    });
    accepted.min_by_key(|rung| *rung as usize)
}

fn whole(prediction: &str, gold: &str) -> Option<Rung> {
    let (said, wanted) = (normal(prediction), normal(gold));
    if said == wanted && !wanted.is_empty() {
        return Some(Rung::Equal);
    }
    if let (Some(a), Some(b)) = (number(prediction), number(gold)) {
        return (a == b).then_some(Rung::Number);
    }
    contains(&said, &wanted).then_some(Rung::Contained)
}

/// NFKC, lower case, no punctuation, no articles.
fn normal(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect::<String>().to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| !matches!(*word, "a" | "an" | "the")).map(str::to_owned).collect()
}

fn contains(said: &[String], wanted: &[String]) -> bool {
    if wanted.is_empty() {
        return false;
    }
    let mut windows = said.windows(wanted.len()).enumerate();
    windows.any(|(at, window)| window == wanted && (at == 0 || said[at - 1] != "not"))
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let ends = |(at, c): (usize, char)| {
        let end = at + c.len_utf8();
        (matches!(c, '.' | '!' | '?') && text[end..].starts_with(char::is_whitespace) || c == '\n').then_some(end)
    };
    &text[..text.char_indices().find_map(ends).unwrap_or(text.len())]
}

/// The number that a text is and nothing else: digits with separators, a percentage, or a word up to ninety-nine.
fn number(text: &str) -> Option<f64> {
    let text = text.nfkc().collect::<String>().to_lowercase();
    let text = text.trim().trim_end_matches(['.', '%']).trim_end_matches(" percent").trim();
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return text.replace([',', '_'], "").parse().ok();
    }
    match text.split(['-', ' ']).collect::<Vec<_>>()[..] {
        [word] => value(word),
        [ten, one] => {
            let (ten, one) = (value(ten), value(one));
            Some(ten.filter(|ten| *ten >= 20)? + one.filter(|one| (1..10).contains(one))?)
        }
        _ => None,
    }
    .map(f64::from)
}

/// Words without which a phrase means the same.
const STOP_WORDS: &str = "a an and are as at be been but by did do does for from had has have he her his i in into is it \
its of on or our she so than that the their them then there these they this those to was we were what when where which \
who whom why will with would you your";

/// Half of the words that matter, and both or neither deny.
fn shares_key_words(prediction: &str, gold: &str) -> bool {
    let (said, wanted) = (key_words(prediction), key_words(gold));
    let denies = |words: &[String]| words.iter().any(|word| matches!(word.as_str(), "not" | "no" | "never"));
    f1(&said, &wanted) >= 0.5 && denies(&said) == denies(&wanted)
}

fn key_words(text: &str) -> Vec<String> {
    let mut words = normal(text);
    words.retain(|word| !STOP_WORDS.split(' ').any(|stop| stop == word));
    words
}
