//! The few JSON schema forms that agents need, all closed: every key required, in this order, and nothing else.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

/// An object with exactly these keys, written in this order.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
    let properties: Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Any string of at most `max_chars` characters.
pub fn string(max_chars: usize) -> Value {
    json!({ "type": "string", "maxLength": max_chars })
}

/// A string of at least one and at most `max_chars` characters.
pub fn phrase(max_chars: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max_chars })
}

/// `true` or `false`.
pub fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// An array of at most `max_items` values.
pub fn array(items: Value, max_items: usize) -> Value {
    Value::Object(Map::from_iter([
        ("type".to_owned(), "array".into()),
        ("items".to_owned(), items),
        ("maxItems".to_owned(), max_items.into()),
    ]))
}

/// The same array, but not empty.
pub fn at_least_one(mut array: Value) -> Value {
    array["minItems"] = json!(1);
    array
}

/// An array of up to `max_items` of the given values; only the empty array if there are none.
///
/// This is how ids are limited to those that were shown.
pub fn array_of<T: Into<Value>>(allowed: impl IntoIterator<Item = T>, max_items: usize) -> Value {
    let allowed: Vec<Value> = allowed.into_iter().map(Into::into).collect();
    if allowed.is_empty() {
        return json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 });
    }
    array(json!({ "enum": allowed }), max_items)
}

/// Exactly this string.
pub fn constant(text: &str) -> Value {
    json!({ "const": text })
}

/// One of these values; there must be any.
pub fn one_of<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    json!({ "enum": values })
}

/// A value of any of these forms.
pub fn any_of(forms: Vec<Value>) -> Value {
    json!({ "anyOf": forms })
}

/// A name in snake_case of at most `max_chars` characters.
pub fn identifier(max_chars: usize) -> Value {
    json!({ "type": "string", "pattern": format!("^[a-z][a-z0-9_]{{0,{}}}$", max_chars.max(1) - 1) })
}

/// A whole number from `least` to `most`.
pub fn integer(least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

/// The keyword of [`quote_of`]: its value is the text that is quoted from.
pub const QUOTE_OF: &str = "x-quote-of";

/// A run of whole words of `text`, character by character, of about `chars` characters, that begins with a letter or a digit. Of a
/// text without such a run any part can be quoted except white space alone.
///
/// It makes quotes exact. The keyword is memlocal's own: the engine enforces it, any other caller sees a string.
pub fn quote_of(text: &str, chars: RangeInclusive<usize>) -> Value {
    let longest = text.find(char::is_alphanumeric).map_or("", |start| text[start..].trim_end()).chars().count();
    let least = if longest < *chars.start() { 1 } else { *chars.start() };
    json!({ "type": "string", "minLength": least, "maxLength": chars.end(), QUOTE_OF: text })
}
