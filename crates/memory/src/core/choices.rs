//! The options of a multiple-choice question. Only the answering prompt has them; planning, search and notes do not
//! (ComoRAG, section 3.1, and kept to by the other methods).

use calls::{OutputFormat, Stability};

use crate::core::method::Settings;
use crate::core::prompt::Input;

/// The labels of the options: `[A]`, `[B]` and so on; empty for an open question.
pub(crate) fn labels(settings: &Settings) -> Vec<String> {
    (0..settings.choices.len()).map(label).collect()
}

fn label(place: usize) -> String {
    match u8::try_from(place) {
        Ok(letter @ 0..26) => format!("[{}]", char::from(b'A' + letter)),
        _ => format!("[{}]", place + 1),
    }
}

/// The options as an input of the answering prompt; none for an open question.
pub(crate) fn input(settings: &Settings) -> Option<Input> {
    let lines = labels(settings).into_iter().zip(&settings.choices).map(|(label, option)| format!("{label} {option}"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    (!lines.is_empty()).then(|| Input::new("OPTIONS", Stability::Volatile, lines))
}

/// The output format of an answer that is not JSON: one of the labels; free text for an open question.
pub(crate) fn output_format(settings: &Settings) -> OutputFormat {
    if settings.choices.is_empty() { OutputFormat::Text } else { OutputFormat::Choice(labels(settings)) }
}

/// An answer without the label of an option before it.
pub(crate) fn without_label<'a>(answer: &'a str, settings: &Settings) -> &'a str {
    labels(settings).iter().find_map(|label| answer.strip_prefix(label.as_str())).map_or(answer, str::trim_start)
}

/// Appends the option's text to an answer that is a label; any other answer is unchanged.
pub(crate) fn with_text(answer: &str, settings: &Settings) -> String {
    let answer = answer.trim();
    let option = labels(settings).iter().position(|label| label == answer).map(|place| &settings.choices[place]);
    option.map_or_else(|| answer.to_owned(), |option| format!("{answer} {option}"))
}
