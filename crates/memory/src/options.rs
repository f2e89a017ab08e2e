//! The options of a multiple-choice question. Only the call that answers is shown them: plans, searches and notes are made
//! without (ComoRAG promises it; the other methods keep to it too).

use calls::{Shape, Stability};

use crate::prompt::Input;
use crate::settings::Settings;

/// How the options are called: `[A]`, `[B]` and so on; none where the question is answered freely.
pub(crate) fn labels(settings: &Settings) -> Vec<String> {
    (0..settings.options.len()).map(label).collect()
}

fn label(place: usize) -> String {
    match u8::try_from(place) {
        Ok(letter @ 0..26) => format!("[{}]", char::from(b'A' + letter)),
        _ => format!("[{}]", place + 1),
    }
}

/// The options as whoever answers is shown them; none where there are none.
pub(crate) fn input(settings: &Settings) -> Option<Input> {
    let lines = labels(settings).into_iter().zip(&settings.options).map(|(label, option)| format!("{label} {option}"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    (!lines.is_empty()).then(|| Input::new("OPTIONS", Stability::Volatile, lines))
}

/// The form of an answer that is not JSON: one of the labels, or of what else may be said; free text without options.
pub(crate) fn shape(settings: &Settings, else_said: &[&str]) -> Shape {
    match settings.options.is_empty() {
        true => Shape::Text,
        false => {
            Shape::Choice(labels(settings).into_iter().chain(else_said.iter().map(|said| (*said).to_owned())).collect())
        }
    }
}

/// An answer that is a label with its option behind it; any other as it is.
pub(crate) fn with_text(answer: &str, settings: &Settings) -> String {
    let answer = answer.trim();
    let option = labels(settings).iter().position(|label| label == answer).map(|place| &settings.options[place]);
    option.map_or_else(|| answer.to_owned(), |option| format!("{answer} {option}"))
}
