//! Aggregation: the most common words of a numbered list (cwe), and the most frequent of coded words (fwe).

use super::{Materials, Sample};
use crate::Random;

/// Common words of a list, which the question asks for.
const COMMON: usize = 10;
/// Below this length, in tokens, words are repeated less.
const SHORT_TOKENS: usize = 4096;

/// A list of `size` different words, ten of them common.
pub(super) fn common(materials: &Materials, size: usize, length: usize, random: &mut Random) -> Sample {
    let (often, seldom) = if length < SHORT_TOKENS { (6, 1) } else { (30, 3) };
    let size = size.clamp(COMMON + 1, materials.words.len());
    let mut words = materials.words.clone();
    random.shuffle(&mut words);
    words.truncate(size);
    let repeated = words
        .iter()
        .enumerate()
        .flat_map(|(number, word)| std::iter::repeat_n(word.clone(), if number < COMMON { often } else { seldom }));
    let mut list: Vec<String> = repeated.collect();
    random.shuffle(&mut list);
    let lines = (1..).zip(&list).map(|(number, word)| format!("{number}. {word}"));
    let text = lines.collect::<Vec<_>>().join(" ");
    words.truncate(COMMON);
    let question = "The text is a numbered list of words, some of which are more common than others. \
                    What are the 10 most common words in the list?";
    Sample { text, question: question.to_owned(), golds: words, evidence: Vec::new() }
}

/// A text of about `size` coded words whose counts follow Zipf's law with exponent 2; the most frequent is noise.
pub(super) fn frequent(size: usize, length: usize, random: &mut Random) -> Sample {
    const ZETA_2: f64 = std::f64::consts::PI * std::f64::consts::PI / 6.0;
    let mut vocabulary: Vec<String> = Vec::new();
    while vocabulary.len() < (length / 50).max(8) {
        let word: String = (0..6).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
        if !vocabulary.contains(&word) {
            vocabulary.push(word);
        }
    }
    // Enough for the requested ranks to differ.
    let size = size.max(64) as f64;
    let mut words: Vec<String> = Vec::new();
    for (rank, word) in (1..).zip(&vocabulary) {
        // A count is not negative.
        #[allow(clippy::cast_sign_loss)]
        let count = (size / f64::from(rank * rank) / ZETA_2) as usize;
        let shown = if rank == 1 { "..." } else { word };
        words.extend(std::iter::repeat_n(shown.to_owned(), count));
    }
    random.shuffle(&mut words);
    let question = "The text is of coded words; the dots `...` are none. What are the three most frequently appeared \
                    words in the coded text?";
    let golds = vocabulary[1..4].to_vec();
    Sample { text: words.join(" "), question: question.to_owned(), golds, evidence: Vec::new() }
}
