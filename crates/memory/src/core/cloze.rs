//! Questions without a model: a sentence in which a question word takes the place of the answer (cloze questions: Lewis, Denoyer
//! and Riedel 2019, arXiv 1906.04980, without their translation). In English; other languages get English question words.

use std::ops::{Range, RangeInclusive};

use crate::core::cite::sentences;
use crate::grounding::Shape;

/// Words of a sentence beside the span: fewer say too little, more ask for too many things at once.
const WORDS: RangeInclusive<usize> = 3..=40;

/// Signs at the end of a sentence, which the question mark replaces.
const ENDS: [char; 6] = ['.', '!', '?', ';', ':', ' '];

/// The question that a span answers, which has this shape; `None` if its sentence is too long or too short.
pub(crate) fn question(text: &str, span: Range<usize>, shape: Shape) -> Option<String> {
    let sentence = sentences(text).into_iter().find(|range| range.start <= span.start && span.end <= range.end)?;
    let (before, after) = (&text[sentence.start..span.start], text[span.end..sentence.end].trim_end_matches(ENDS));
    let words = before.split_whitespace().count() + after.split_whitespace().count();
    if !WORDS.contains(&words) {
        return None;
    }
    let asked = question_words(&text[span], shape, after);
    let whole = format!("{before}{asked}{after}?");
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = line.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).collect())
}

fn question_words(answer: &str, shape: Shape, after: &str) -> &'static str {
    let is_year = answer.len() == 4 && answer.bytes().all(|byte| byte.is_ascii_digit());
    let counts = after.strip_prefix(' ').is_some_and(|rest| rest.starts_with(char::is_lowercase));
    match shape {
        Shape::Date if is_year => "what year",
        Shape::Date => "what date",
        Shape::Number if counts => "how many",
        Shape::Number => "what number",
        Shape::Money | Shape::Quantity => "how much",
        Shape::Percent => "what percentage",
        Shape::Name | Shape::FullName | Shape::MixedName => "who or what",
        Shape::Quoted | Shape::Word | Shape::Phrase | Shape::Clause => "what",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_word_takes_the_place_of_the_answer() {
        let text = "It came from Paris. In 1911 Ada Brook\nbought 12 lamps in Pell.";
        let of = |answer: &str, shape| {
            let start = text.find(answer).unwrap();
            question(text, start..start + answer.len(), shape)
        };
        assert_eq!(of("1911", Shape::Date).unwrap(), "In what year Ada Brook bought 12 lamps in Pell?");
        assert_eq!(of("12", Shape::Number).unwrap(), "In 1911 Ada Brook bought how many lamps in Pell?");
        assert_eq!(of("Pell", Shape::Name).unwrap(), "In 1911 Ada Brook bought 12 lamps in who or what?");
        assert_eq!(of("It", Shape::Word).unwrap(), "What came from Paris?");
        assert_eq!(of("In 1911 Ada Brook\nbought 12 lamps in", Shape::Phrase), None);
    }
}
