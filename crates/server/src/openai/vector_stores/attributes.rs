//! The attributes of a file of a vector store: values by names, for the client's own use.

use serde_json::{Map, Value};

use super::super::metadata::check;
use crate::error::{Result, ServerError};

/// Checks attributes; `null` are none.
///
/// # Errors
/// [`ServerError::Invalid`] with both numbers of a limit.
pub(super) fn checked(attributes: Value) -> Result<Value> {
    let refused = |message: String| ServerError::invalid(message, "attributes");
    let attributes = match attributes {
        Value::Null => Map::new(),
        Value::Object(attributes) => attributes,
        _ => return Err(refused("`attributes` must be an object".to_owned())),
    };
    check("attributes", attributes.iter().map(|(key, value)| (key, value.as_str()))).map_err(refused)?;
    let is_allowed = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    match attributes.iter().find(|(_, value)| !is_allowed(value)) {
        Some((key, _)) => Err(refused(format!("the attribute `{key}` must be a string, a number or a boolean"))),
        None => Ok(attributes.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::checked;

    #[test]
    fn attributes_beyond_a_limit_are_refused_with_both_numbers() {
        let keys = |number: usize| (0..number).map(|key| (key.to_string(), json!(true))).collect::<Value>();
        let named = |chars: usize| json!({ "é".repeat(chars): 1.5 });
        let valued = |chars: usize| json!({ "a": "é".repeat(chars) });
        for allowed in [json!({}), keys(16), named(64), valued(512)] {
            assert_eq!(checked(allowed.clone()).ok(), Some(allowed));
        }
        assert_eq!(checked(Value::Null).ok(), Some(json!({})));
        let refused = |attributes: Value| checked(attributes).expect_err("it is beyond a limit").to_string();
        for (message, numbers) in [
            (refused(keys(17)), ["17", "16"]),
            (refused(named(65)), ["65", "64"]),
            (refused(valued(513)), ["513", "512"]),
        ] {
            assert!(numbers.iter().all(|number| message.contains(number)), "{message}");
        }
        for wrong in [json!([]), json!("a"), json!({ "a": null }), json!({ "a": [] }), json!({ "a": {} })] {
            assert!(checked(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
