//! The dimension that a measure is of: "1.2 km long and 30 m wide".

use std::ops::Range;

use super::numbers::Number;
use super::words::Word;

/// Whether a measure of a claim is in a sentence as the measure of another dimension. `asks` tells whether the claim is a question with
/// its answer, whose dimension is behind "how".
pub(super) fn is_of_another_dimension(claim: (&[Word], &Number), shown: (&[Word], &Number), asks: bool) -> bool {
    let (said, given) = (dimension(claim.0, claim.1), dimension(shown.0, shown.1));
    let said = said.or_else(|| asked(claim.0).filter(|_| asks));
    said.is_some() && given.is_some() && said != given
}

/// Whether a question asks for one dimension, and an answer, or the word behind it, names another: "25 m long" does not tell how deep a
/// pool is. `answer` is its bytes in the sentence.
pub(super) fn names_another_dimension(question: &[Word], sentence: &[Word], answer: &Range<usize>) -> bool {
    let Some(asked) = asked(question) else { return false };
    let Some(last) = sentence.iter().rposition(|word| answer.contains(&word.range.start)) else { return false };
    // No mark is between them.
    let is_next = |next: &&Word| next.range.start == sentence[last].range.end + 1;
    let behind = sentence.get(last + 1).filter(is_next);
    let mut named = [Some(&sentence[last]), behind].into_iter().flatten().filter_map(|word| dimension_of(&word.lower));
    named.any(|dimension| dimension != asked)
}

/// The dimension that the words beside a number name: "30 m wide", "30 m in width", "a width of 30 m".
fn dimension(words: &[Word], number: &Number) -> Option<usize> {
    let lower = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let end = number.at.end.max(number.unit_at.end);
    let behind = dimension_of(lower(end + usize::from(lower(end) == "in")));
    let of = number.at.start.checked_sub(2).filter(|at| lower(at + 1) == "of");
    behind.or_else(|| dimension_of(lower(of?)))
}

/// The dimension that a question asks for.
fn asked(words: &[Word]) -> Option<usize> {
    let how = words.iter().position(|word| word.lower == "how")?;
    dimension_of(&words.get(how + 1)?.lower)
}

fn dimension_of(lower: &str) -> Option<usize> {
    DIMENSIONS.iter().position(|names| names.contains(&lower))
}

/// The adjective that names the dimension of a lower-case word: "long" of "length".
pub(super) fn adjective_of(lower: &str) -> Option<&'static str> {
    dimension_of(lower).map(|at| DIMENSIONS[at][0])
}

/// Whether a lower-case word names a dimension.
pub(super) fn names_dimension(lower: &str) -> bool {
    dimension_of(lower).is_some()
}

const DIMENSIONS: [&[&str]; 5] = [
    &["long", "length"],
    &["wide", "broad", "width", "breadth"],
    &["high", "tall", "height"],
    &["deep", "depth"],
    &["thick", "thickness"],
];
