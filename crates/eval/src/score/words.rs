//! Texts as words, normalised in the three ways of the papers' scorers, and the overlap of two bags of words.

use std::collections::HashMap;

/// LoCoMo's: without commas and ASCII punctuation, in lower case, without `a`, `an`, `the` and `and`.
pub fn locomo_words(text: &str) -> Vec<String> {
    let text = without_punctuation(&text.replace(',', "").to_lowercase());
    split(&without_words(&text, &["a", "an", "the", "and"]))
}

/// SQuAD's: in lower case, without ASCII punctuation, without `a`, `an` and `the`.
pub(crate) fn squad_words(text: &str) -> Vec<String> {
    split(&without_words(&without_punctuation(&text.to_lowercase()), &["a", "an", "the"]))
}

/// GAM's: in lower case, every mark a space, without `a`, `an` and `the` between two spaces. Of two articles with one
/// space between them only the first is removed, because its match has consumed the space.
pub(super) fn gam_words(text: &str) -> Vec<String> {
    let spaced = |c: char| if is_word(c) || c.is_whitespace() { c } else { ' ' };
    let chars: Vec<char> = text.to_lowercase().chars().map(spaced).collect();
    let (mut kept, mut at) = (String::new(), 0);
    while at < chars.len() {
        let end = article(&chars, at);
        kept.push(end.map_or(chars[at], |_| ' '));
        at = end.unwrap_or(at + 1);
    }
    split(&kept)
}

/// The end of `(^|\s)(a|an|the)(\s|$)` at a place, if it matches there.
fn article(chars: &[char], at: usize) -> Option<usize> {
    let from = |start: usize| {
        let word = chars[start..].iter().take_while(|c| !c.is_whitespace()).count();
        let is_article =
            ["a", "an", "the"].iter().any(|article| article.chars().eq(chars[start..start + word].iter().copied()));
        is_article.then(|| (start + word + 1).min(chars.len()))
    };
    let at_start = (at == 0).then(|| from(0)).flatten();
    at_start.or_else(|| chars[at].is_whitespace().then(|| from(at + 1)).flatten())
}

fn without_punctuation(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_punctuation()).collect()
}

/// Replaces whole words by spaces.
fn without_words(text: &str, words: &[&str]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        kept.push_str(if words.contains(&&rest[..end]) { " " } else { &rest[..end] });
        rest = &rest[end..];
    }
    kept
}

/// The character class `\w` of regular expressions.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Common words of two bags, each as often as it is in both.
pub(super) fn shared(a: &[String], b: &[String]) -> usize {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in a {
        *counts.entry(word).or_default() += 1;
    }
    let mut taken = |word: &&String| counts.get_mut(word.as_str()).filter(|left| **left > 0).map(|left| *left -= 1);
    b.iter().filter(|word| taken(word).is_some()).count()
}

/// The harmonic mean of precision and recall of two bags of words; 0 if they share none.
pub(super) fn f1(prediction: &[String], gold: &[String]) -> f64 {
    let shared = shared(prediction, gold) as f64;
    if shared == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (shared / prediction.len() as f64, shared / gold.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

/// Whether the SQuAD words of a gold answer occur in these words as one run; a gold answer without words never does.
pub(crate) fn contains_answer(words: &[String], gold: &str) -> bool {
    let gold = squad_words(gold);
    !gold.is_empty() && words.windows(gold.len()).any(|run| run == gold)
}

/// The best score over several gold answers.
pub(super) fn best(golds: &[String], score: impl Fn(&str) -> f64) -> f64 {
    golds.iter().map(|gold| score(gold)).fold(0.0, f64::max)
}
