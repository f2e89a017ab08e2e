//! Model-free features of a candidate span: its surface, its neighbours, and the distance of the question's words.

use super::passage::{Passage, Sentence};
use super::question::{KINDS, Question};
use super::words::{CURRENCIES, Word, is_number_word, is_past};

/// The surface of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    Date,
    Number,
    Money,
    Percent,
    Quantity,
    Name,
    FullName,
    MixedName,
    Quoted,
    Word,
    Phrase,
    Clause,
}

pub(super) const SHAPES: usize = 12;

/// Names of the features that do not depend on kind and shape, in their order.
pub(super) const PLAIN: [&str; 47] = [
    "coverage",
    "context",
    "first_sentence",
    "rank_discount",
    "overlap_share",
    "overlap_any",
    "all_overlap",
    "proximity",
    "nearest",
    "verb_distance",
    "verb_left",
    "verb_right",
    "focus_inside",
    "focus_last",
    "focus_beside",
    "term_left",
    "term_right",
    "after_preposition",
    "after_verb",
    "after_article",
    "after_comma",
    "at_start",
    "before_comma",
    "at_end",
    "before_verb",
    "before_of",
    "before_preposition",
    "cut_left",
    "cut_right",
    "cut_name_left",
    "cut_name_right",
    "words_1",
    "words_2",
    "words_3",
    "words_4",
    "words_5_6",
    "words_7_up",
    "function_share",
    "has_verb",
    "has_comma",
    "has_past",
    "object_after_verb",
    "object_before_verb",
    "subject_before_verb",
    "subject_after_verb",
    "is_option",
    "repeats",
];

/// How many features a candidate has.
pub const FEATURES: usize = PLAIN.len() + KINDS * SHAPES;

/// The names of the features, in their order; those of kind and shape by their numbers.
pub fn names() -> Vec<String> {
    let pairs = (0..KINDS).flat_map(|kind| (0..SHAPES).map(move |shape| format!("kind_{kind}_shape_{shape}")));
    PLAIN.iter().map(|name| (*name).to_owned()).chain(pairs).collect()
}

/// The features of the words `from..to` of a sentence, and their shape.
pub(super) fn features(
    question: &Question,
    passage: &Passage<'_>,
    sentence: &Sentence,
    (from, to): (usize, usize),
    is_option: bool,
) -> (Vec<f32>, Shape) {
    let (words, inside) = (&sentence.words, &sentence.words[from..to]);
    let text = passage.texts[sentence.text];
    let gap = |left: usize| &text[words[left].range.end..words[left + 1].range.start];
    let left = from.checked_sub(1).filter(|at| is_soft(gap(*at)));
    let right = Some(to).filter(|at| *at < words.len() && is_soft(gap(to - 1)));
    let (left_word, right_word) = (left.map(|at| &words[at]), right.map(|at| &words[at]));
    let lower = |word: Option<&Word>| word.map_or(String::new(), |word| word.lower.clone());
    let (left_lower, right_lower) = (lower(left_word), lower(right_word));
    let is = |on: bool| f32::from(u8::from(on));

    let asked = |word: &Word| word.stem.as_ref().is_some_and(|stem| question.terms.contains(stem));
    let content = inside.iter().filter(|word| word.stem.is_some()).count().max(1) as f32;
    let overlap = inside.iter().filter(|word| asked(word)).count() as f32;
    let is_focus = |word: &Word| question.focus.is_some() && word.stem == question.focus;
    let is_verb = |word: &Word| question.verb.is_some() && word.stem == question.verb;
    let distance = |at: usize| distance(at, from, to);

    let (proximity, nearest) = nearness(question, passage, sentence, (from, to));
    let verb_at = words.iter().enumerate().filter(|(_, word)| is_verb(word)).map(|(at, _)| at);
    let verb_at = verb_at.min_by(|a, b| distance(*a).total_cmp(&distance(*b)));
    // How near the verb of the question is, on one side of the span.
    let beside_verb =
        |before: bool| verb_at.filter(|at| (*at < from) == before).map_or(0.0, |at| 1.0 / (1.0 + distance(at)));
    let length = to - from;
    let shape = shape(passage, sentence, from, to);
    let functions = inside.iter().filter(|word| word.stem.is_none()).count() as f32;
    let named = |word: Option<&Word>| word.is_some_and(|word| word.capital && word.stem.is_some());
    let plain = [
        sentence.coverage,
        sentence.context,
        is(sentence.rank == 0),
        1.0 / (1.0 + sentence.rank as f32),
        overlap / content,
        is(overlap > 0.0),
        is(overlap >= content),
        proximity,
        1.0 / (1.0 + nearest),
        verb_at.map_or(0.0, |at| 1.0 / (1.0 + distance(at))),
        is(verb_at.is_some_and(|at| at < from)),
        is(verb_at.is_some_and(|at| at >= to)),
        is(inside.iter().any(is_focus)),
        is(inside.last().is_some_and(is_focus)),
        is(left_word.is_some_and(is_focus) || right_word.is_some_and(is_focus)),
        is(left_word.is_some_and(asked)),
        is(right_word.is_some_and(asked)),
        is(PREPOSITIONS.contains(&left_lower.as_str())),
        is(VERBS.contains(&left_lower.as_str())),
        is(ARTICLES.contains(&left_lower.as_str())),
        is(from > 0 && gap(from - 1).contains(',')),
        is(from == 0),
        is(to < words.len() && gap(to - 1).contains(',')),
        is(to == words.len()),
        is(VERBS.contains(&right_lower.as_str())),
        is(right_lower == "of"),
        is(right_lower != "of" && PREPOSITIONS.contains(&right_lower.as_str())),
        is(left_word.is_some_and(|word| word.stem.is_some())),
        is(right_word.is_some_and(|word| word.stem.is_some())),
        is(named(left_word) && named(inside.first())),
        is(named(right_word) && named(inside.last())),
        is(length == 1),
        is(length == 2),
        is(length == 3),
        is(length == 4),
        is((5..=6).contains(&length)),
        is(length > 6),
        functions / length as f32,
        is(inside.iter().any(|word| VERBS.contains(&word.lower.as_str()))),
        is((from..to - 1).any(|at| gap(at).contains(','))),
        is(inside.iter().any(|word| is_past(&word.lower))),
        is(question.asks_object) * beside_verb(true),
        is(question.asks_object) * beside_verb(false),
        is(!question.asks_object) * beside_verb(false),
        is(!question.asks_object) * beside_verb(true),
        is(is_option),
        0.0,
    ];
    let mut features = vec![0.0; FEATURES];
    features[..PLAIN.len()].copy_from_slice(&plain);
    features[PLAIN.len() + question.kind as usize * SHAPES + shape as usize] = 1.0;
    (features, shape)
}

/// Words between a place and a span.
fn distance(at: usize, from: usize, to: usize) -> f32 {
    if at < from { (from - at) as f32 } else { (at + 1).saturating_sub(to) as f32 }
}

/// How near the question's terms are to a span, weighted by rarity, 0 to 1, and the distance of the nearest one. Each term
/// counts by its closest occurrence outside the span.
fn nearness(question: &Question, passage: &Passage<'_>, sentence: &Sentence, (from, to): (usize, usize)) -> (f32, f32) {
    let (mut near, mut total, mut nearest) = (0.0, f32::MIN_POSITIVE, FARTHEST);
    for term in &question.terms {
        let idf = passage.idf(term);
        total += idf;
        let outside = sentence.words.iter().enumerate().filter(|(at, _)| *at < from || *at >= to);
        let places = outside.filter(|(_, word)| word.stem.as_ref() == Some(term));
        if let Some(closest) = places.map(|(at, _)| distance(at, from, to)).min_by(f32::total_cmp) {
            near += idf / (1.0 + 0.25 * closest);
            nearest = nearest.min(closest);
        }
    }
    (near / total, nearest)
}

/// The distance of a term that is not in the sentence.
const FARTHEST: f32 = 20.0;

/// The place of the feature that counts occurrences, known only once duplicates are merged.
pub(super) const REPEATS: usize = PLAIN.len() - 1;

/// The place of the feature that marks an option of the question.
pub(super) const IS_OPTION: usize = PLAIN.len() - 2;

/// True if only white space, or a hyphen, is between two words.
fn is_soft(gap: &str) -> bool {
    gap.chars().all(|c| c.is_whitespace() || c == '-' || c == '–')
}

fn shape(passage: &Passage<'_>, sentence: &Sentence, from: usize, to: usize) -> Shape {
    let (text, words) = (passage.texts[sentence.text], &sentence.words[from..to]);
    let (first, last) = (&words[0], &words[words.len() - 1]);
    let quoted = text[..first.range.start].ends_with(OPENING)
        && text[last.range.end..].trim_start_matches([',', '.']).starts_with(CLOSING);
    let slice = |word: &Word| &text[word.range.clone()];
    let numbers = words.iter().filter(|word| word.number).count();
    let is_name = |at: usize| {
        let word = &sentence.words[at];
        word.capital && (at > 0 || passage.is_name(&word.lower) || at + 1 < to && sentence.words[at + 1].capital)
    };
    let content = || (from..to).filter(|at| sentence.words[*at].stem.is_some());
    let capitals = content().filter(|at| is_name(*at)).count();
    match () {
        () if words.iter().any(|word| CLAUSE_WORDS.contains(&word.lower.as_str())) => Shape::Clause,
        () if quoted => Shape::Quoted,
        () if words.iter().any(|word| slice(word).starts_with(CURRENCIES)) => Shape::Money,
        () if slice(last).ends_with('%') || matches!(last.lower.as_str(), "percent" | "percentage") => Shape::Percent,
        () if words.iter().any(is_year) && words.iter().all(is_date_word) => Shape::Date,
        () if numbers > 0 && words.iter().any(is_month) && words.iter().all(is_date_word) => Shape::Date,
        () if words.iter().all(|word| word.number || word.stem.is_none()) => Shape::Number,
        () if first.number && capitals == 0 => Shape::Quantity,
        () if capitals > 0 && capitals == content().count() && words.len() == 1 => Shape::Name,
        () if capitals > 0 && capitals == content().count() => Shape::FullName,
        () if capitals > 0 => Shape::MixedName,
        () if words.len() == 1 => Shape::Word,
        () => Shape::Phrase,
    }
}

/// A number from 1000 to 2099, or a decade.
pub(super) fn is_year(word: &Word) -> bool {
    let digits = word.lower.trim_end_matches("'s").trim_end_matches('s');
    digits.len() == 4 && digits.parse::<u32>().is_ok_and(|year| (1000..2100).contains(&year))
}

pub(super) fn is_month(word: &Word) -> bool {
    word.capital && MONTHS.contains(&word.lower.as_str())
}

fn is_date_word(word: &Word) -> bool {
    is_year(word)
        || is_month(word)
        || word.number && !is_number_word(&word.lower)
        || ["early", "late", "mid", "of", "the", "bc", "ad", "century", "centuries", "to", "and", "through"]
            .contains(&word.lower.as_str())
}

pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const OPENING: [char; 5] = ['"', '“', '‘', '«', '`'];
const CLOSING: [char; 4] = ['"', '”', '’', '»'];
const ARTICLES: [&str; 6] = ["the", "a", "an", "his", "her", "their"];
const PREPOSITIONS: [&str; 19] = [
    "in", "at", "on", "by", "from", "of", "for", "to", "with", "as", "into", "between", "during", "after", "before",
    "through", "about", "like", "than",
];
const VERBS: [&str; 16] = [
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "can", "will",
    "would",
];
const CLAUSE_WORDS: [&str; 30] = [
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "can", "could", "will",
    "would", "he", "she", "it", "they", "i", "you", "we", "that", "which", "who", "while", "when", "because", "if",
];
