//! Short answers as texts.

use crate::grounding::ShortAnswer;

/// Whether a question was answered with yes or no.
pub(crate) fn is_polar(answer: &ShortAnswer) -> bool {
    matches!(answer.text.as_str(), "yes" | "no")
}

/// Several short answers as one text: "A, B and C".
pub(crate) fn listed(answers: &[ShortAnswer]) -> String {
    let texts: Vec<String> = answers.iter().map(|answer| one_line(&answer.text)).collect();
    match &texts[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
