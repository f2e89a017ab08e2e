//! Needles in a haystack (NIAH): "One of the special magic numbers for KEY is: VALUE." among noise, a novel, or needles
//! for other keys.

use std::collections::BTreeSet;

use super::{Materials, Sample, joined};
use crate::Random;

/// The types of needle and haystack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needles {
    hay: Hay,
    keys: Value,
    values: Value,
    /// Keys that are inserted.
    hidden: usize,
    /// Values per key.
    each: usize,
    /// Keys that the question asks for.
    asked: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hay {
    Noise,
    Essay,
    Needles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Words,
    Numbers,
    Uuids,
}

const fn needles(hay: Hay, keys: Value, values: Value, [hidden, each, asked]: [usize; 3]) -> Needles {
    Needles { hay, keys, values, hidden, each, asked }
}

pub(super) const SINGLE_1: Needles = needles(Hay::Noise, Value::Words, Value::Numbers, [1, 1, 1]);
pub(super) const SINGLE_2: Needles = needles(Hay::Essay, Value::Words, Value::Numbers, [1, 1, 1]);
pub(super) const SINGLE_3: Needles = needles(Hay::Essay, Value::Words, Value::Uuids, [1, 1, 1]);
pub(super) const MULTIKEY_1: Needles = needles(Hay::Essay, Value::Words, Value::Numbers, [4, 1, 1]);
pub(super) const MULTIKEY_2: Needles = needles(Hay::Needles, Value::Words, Value::Numbers, [1, 1, 1]);
pub(super) const MULTIKEY_3: Needles = needles(Hay::Needles, Value::Uuids, Value::Uuids, [1, 1, 1]);
pub(super) const MULTIVALUE: Needles = needles(Hay::Essay, Value::Words, Value::Numbers, [1, 4, 1]);
pub(super) const MULTIQUERY: Needles = needles(Hay::Essay, Value::Words, Value::Numbers, [4, 1, 4]);

/// The group of sentences that noise repeats, one group a line.
pub(super) const NOISE: &str =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// Depths, as shares of the text, at which needles are inserted into a novel.
const DEPTHS: usize = 40;

/// A sample whose haystack has `size` lines, or words of a novel.
pub(super) fn make(needles: Needles, materials: &Materials, size: usize, random: &mut Random) -> Sample {
    let keys: Vec<String> = (0..needles.hidden).map(|_| needles.keys.draw(materials, random)).collect();
    let (mut hidden, mut golds) = (Vec::new(), Vec::new());
    for (number, key) in keys.iter().enumerate() {
        for _ in 0..needles.each {
            let value = needles.values.draw(materials, random);
            hidden.push((sentence(key, &value, needles.values), number < needles.asked));
            golds.extend((number < needles.asked).then_some(value));
        }
    }
    random.shuffle(&mut hidden);
    let (pieces, wanted) = match needles.hay {
        Hay::Noise => at_lines(vec![NOISE.to_owned(); size], hidden, random),
        Hay::Needles => {
            let mut line = || {
                let key = needles.keys.draw(materials, random);
                sentence(&key, &needles.values.draw(materials, random), needles.values)
            };
            let hay = (0..size).map(|_| line()).collect();
            at_lines(hay, hidden, random)
        }
        Hay::Essay => at_depths(novel(materials, size), hidden, random),
    };
    let seam = if needles.hay == Hay::Essay { " " } else { "\n" };
    let (text, evidence) = joined(&pieces, seam, &wanted);
    Sample { text, question: question(&keys[..needles.asked], needles), golds, evidence }
}

/// Inserts needles between lines; returns the spans of those that the question is about.
fn at_lines(mut hay: Vec<String>, hidden: Vec<(String, bool)>, random: &mut Random) -> (Vec<String>, Vec<usize>) {
    let asked: BTreeSet<String> = hidden.iter().filter(|(_, asked)| *asked).map(|(needle, _)| needle.clone()).collect();
    for (needle, _) in hidden {
        hay.insert(random.below(hay.len() + 1), needle);
    }
    let wanted = (0..hay.len()).filter(|place| asked.contains(&hay[*place])).collect();
    (hay, wanted)
}

/// Puts needles at depths drawn without replacement.
fn at_depths(hay: Vec<String>, hidden: Vec<(String, bool)>, random: &mut Random) -> (Vec<String>, Vec<usize>) {
    let mut depths: Vec<usize> = (0..DEPTHS).collect();
    random.shuffle(&mut depths);
    depths.truncate(hidden.len());
    depths.sort_unstable();
    let mut places: Vec<usize> = depths.iter().map(|depth| depth * hay.len() / (DEPTHS - 1)).collect();
    let (mut pieces, mut wanted) = (Vec::with_capacity(hay.len() + hidden.len()), Vec::new());
    let mut hidden = hidden.into_iter();
    let last = hay.len();
    for (number, sentence) in hay.into_iter().map(Some).chain([None]).enumerate() {
        while places.first().is_some_and(|place| *place <= number || number == last) {
            places.remove(0);
            if let Some((needle, asked)) = hidden.next() {
                wanted.extend(asked.then_some(pieces.len()));
                pieces.push(needle);
            }
        }
        pieces.extend(sentence);
    }
    (pieces, wanted)
}

/// Sentences of the novels with about this many words, from the beginning; repeated from there where they end.
fn novel(materials: &Materials, words: usize) -> Vec<String> {
    let mut left = words;
    let within = |sentence: &&String| {
        let fits = left > 0;
        left = left.saturating_sub(sentence.split(' ').count());
        fits
    };
    // Every sentence has a word, so the loop terminates.
    #[allow(clippy::maybe_infinite_iter)]
    let sentences = materials.sentences.iter().cycle().take_while(within).cloned().collect();
    sentences
}

impl Value {
    fn draw(self, materials: &Materials, random: &mut Random) -> String {
        match self {
            Value::Words => format!("{}-{}", random.pick(&materials.adjectives), random.pick(&materials.nouns)),
            Value::Numbers => (1_000_000 + random.below(9_000_000)).to_string(),
            Value::Uuids => uuid(random),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Value::Words => "words",
            Value::Numbers => "numbers",
            Value::Uuids => "uuids",
        }
    }
}

fn sentence(key: &str, value: &str, values: Value) -> String {
    format!("One of the special magic {} for {key} is: {value}.", values.name())
}

fn question(keys: &[String], needles: Needles) -> String {
    let query = match keys {
        [first @ .., last] if !first.is_empty() => format!("{}, and {last}", first.join(", ")),
        keys => keys.concat(),
    };
    let kind = needles.values.name();
    if needles.asked * needles.each == 1 {
        let kind = kind.trim_end_matches('s');
        return format!("What is the special magic {kind} for {query} mentioned in the provided text?");
    }
    format!("What are all the special magic {kind} for {query} mentioned in the provided text?")
}

/// A random UUID (version 4).
fn uuid(random: &mut Random) -> String {
    let digits = format!("{:016x}{:016x}", random.bits(), random.bits());
    [&digits[..8], &digits[8..12], &format!("4{}", &digits[13..16]), &format!("a{}", &digits[17..20]), &digits[20..]]
        .join("-")
}
