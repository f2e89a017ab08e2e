//! Detects replies that repeat themselves, by the rule that the engine applies to tokens ([`calls::loops`]).
//!
//! The tokenizer is on the other machine, so the rule compares the pieces of [`tokens::spans`], which are about as many
//! as tokens: a loop is detected here if it is detected there, within one repetition. As in the engine, free text is
//! checked as a whole and JSON string by string. The reply is already complete: it is marked and nothing of it is
//! removed.

use std::collections::HashMap;

use calls::OutputFormat;
use calls::loops::LoopDetector;
use serde_json::Value;

use crate::tokens;

/// Whether a reply of this output format, already validated, repeats itself.
pub(crate) fn loops(output_format: &OutputFormat, text: &str) -> bool {
    match output_format {
        OutputFormat::Choice(_) => false,
        OutputFormat::Text => text_loops(text),
        OutputFormat::Json(_) => serde_json::from_str(text).is_ok_and(|value| value_loops(&value)),
    }
}

/// Whether any string of a JSON value loops.
fn value_loops(value: &Value) -> bool {
    match value {
        Value::String(text) => text_loops(text),
        Value::Array(values) => values.iter().any(value_loops),
        Value::Object(fields) => fields.iter().any(|(key, value)| text_loops(key) || value_loops(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn text_loops(text: &str) -> bool {
    let (mut ids, mut detector) = (HashMap::new(), LoopDetector::default());
    let mut id = |piece| {
        let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        *ids.entry(piece).or_insert(next)
    };
    tokens::spans(text).into_iter().any(|span| detector.push(id(&text[span])).is_some())
}

#[cfg(test)]
mod tests {
    use calls::schema;

    use super::*;

    #[test]
    fn loops_are_found_in_text_and_in_single_strings() {
        let form = OutputFormat::Json(schema::object([("a", schema::string(1000))]));
        let check = |output_format: &OutputFormat, text: &str, want: bool| {
            assert_eq!(loops(output_format, text), want, "{text}");
        };
        check(&OutputFormat::Text, &"the sea and ".repeat(40), true);
        check(&OutputFormat::Text, &"the sea and ".repeat(3), false);
        check(&OutputFormat::Text, "", false);
        check(&form, &format!(r#"{{"a":"{}"}}"#, "the sea and ".repeat(40)), true);
        check(&form, &format!(r#"{{"a":[{{"b":"{}"}}]}}"#, "again ".repeat(40)), true);
        let items = vec![r#"{"useful":false}"#; 200].join(",");
        check(&form, &format!(r#"{{"a":[{items}]}}"#), false);
        check(&OutputFormat::Choice(vec!["la ".repeat(50)]), &"la ".repeat(50), false);
    }
}
