//! Output formats with quotes: a JSON schema with [`calls::schema::QUOTE_OF`] as a grammar in which a quote can only be
//! a run of whole words of its text.
//!
//! llguidance supports such runs (the paths of a suffix automaton) in its own grammar language and not in JSON schemas,
//! so the objects, arrays and alternatives around a quote are written out as rules; parts without quotes remain
//! schemas.

use std::collections::HashMap;

use calls::schema::QUOTE_OF;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

/// A character as JSON escapes it.
const CHARACTER: &str = r"[^\\]|\\u[0-9a-f]{4}|\\[^u]";

/// Whether a format contains quotes.
pub(crate) fn quotes(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key(QUOTE_OF) || map.values().any(quotes),
        Value::Array(values) => values.iter().any(quotes),
        _ => false,
    }
}

/// The grammar of a format.
///
/// # Errors
/// A sentence that states what cannot be enforced.
pub(crate) fn lark(schema: &Value) -> Result<String, String> {
    let mut rules = Rules::default();
    let start = rules.rule(schema)?;
    Ok(format!("start: {start}\n{}", rules.lines.concat()))
}

/// The rules so far, one per distinct schema.
#[derive(Default)]
struct Rules {
    lines: Vec<String>,
    names: HashMap<String, String>,
}

impl Rules {
    /// The name of the rule for a schema.
    fn rule(&mut self, schema: &Value) -> Result<String, String> {
        let key = schema.to_string();
        if let Some(name) = self.names.get(&key) {
            return Ok(name.clone());
        }
        let body = self.body(schema)?;
        let name = format!("r{}", self.names.len());
        self.lines.push(format!("{name}: {body}\n"));
        self.names.insert(key, name.clone());
        Ok(name)
    }

    fn body(&mut self, schema: &Value) -> Result<String, String> {
        if let Some(text) = schema.get(QUOTE_OF) {
            let text = text.as_str().ok_or("a quote needs a text")?;
            return Ok(self.quote(text, schema["minLength"].as_u64(), schema["maxLength"].as_u64()));
        }
        // Objects that are alternatives to a quoting one must start with the same lexemes: the lexer takes the longest
        // lexeme, so a schema's `{` would never match where `{"op":` is a lexeme too.
        if !quotes(schema) && !is_closed_object(schema) {
            return json_rule(schema);
        }
        match (schema["type"].as_str(), schema["anyOf"].as_array()) {
            (Some("object"), None) => self.object(schema),
            (Some("array"), None) => self.array(schema),
            (None, Some(forms)) => {
                let forms = forms.iter().map(|form| self.rule(form)).collect::<Result<Vec<_>, _>>()?;
                Ok(forms.join(" | "))
            }
            _ => Err("a quote can only be part of closed objects, arrays and alternatives".into()),
        }
    }

    /// All keys in their order and no others.
    fn object(&mut self, schema: &Value) -> Result<String, String> {
        let properties = schema["properties"].as_object().ok_or("an object has properties")?;
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let closed = schema["additionalProperties"] == json!(false);
        if !closed || !properties.keys().eq(required.iter().filter_map(Value::as_str)) {
            return Err("an object that holds a quote must have all of its keys and no others".into());
        }
        let mut parts = Vec::new();
        let mut before = "{".to_owned();
        for (key, form) in properties {
            parts.push(literal(&format!("{before}{}:", Value::from(key.as_str()))));
            parts.push(self.rule(form)?);
            ",".clone_into(&mut before);
        }
        parts.push(literal("}"));
        Ok(parts.join(" "))
    }

    fn array(&mut self, schema: &Value) -> Result<String, String> {
        let items = self.rule(&schema["items"])?;
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().ok_or("an array that holds a quote needs maxItems")?;
        let (open, comma, close) = (literal("["), literal(","), literal("]"));
        if most == 0 || most < least {
            return Err("an array that holds a quote must have room for one".into());
        }
        let some = format!("{items} ({comma} {items}){{{},{}}}", least.max(1) - 1, most - 1);
        Ok(if least == 0 { format!("{open} ({some})? {close}") } else { format!("{open} {some} {close}") })
    }

    /// A run of words, escaped for JSON.
    fn quote(&mut self, text: &str, least_chars: Option<u64>, most_chars: Option<u64>) -> String {
        let number = self.lines.len();
        let words: Vec<String> = text.split_word_bounds().map(in_json).collect();
        let least = least_chars.unwrap_or(1).max(1);
        let most = most_chars.unwrap_or(u64::from(u16::MAX)).max(least);
        // The text from its first letter is a quote, if it is long enough.
        let from_letter = text.find(char::is_alphanumeric).map_or("", |start| text[start..].trim_end());
        let (first, least) = match from_letter.chars().count() as u64 >= least {
            true => (r"[\p{L}\p{N}]", least),
            false => (r#"([^\s\\]|\\["\\])"#, 1),
        };
        let (least, most) = (least - 1, most - 1);
        self.lines.push(format!("WORDS{number}: %regex {}\n", json!({ "substring_chunks": words })));
        self.lines.push(format!("QUOTE{number}: WORDS{number} & /{first}({CHARACTER}){{{least},{most}}}/\n"));
        format!("{quote} QUOTE{number} {quote}", quote = literal("\""))
    }
}

/// True for an object with all of its keys required and no others.
fn is_closed_object(schema: &Value) -> bool {
    let keys = schema["properties"].as_object().map(|properties| properties.keys().collect::<Vec<_>>());
    let required = schema["required"].as_array().map(|required| required.iter().filter_map(Value::as_str));
    let all_required =
        keys.zip(required).is_some_and(|(keys, required)| !keys.is_empty() && keys.into_iter().eq(required));
    schema["type"] == "object" && schema["additionalProperties"] == json!(false) && all_required
}

fn json_rule(schema: &Value) -> Result<String, String> {
    let mut schema = schema.clone();
    let object = schema.as_object_mut().ok_or("a JSON schema is an object")?;
    object.insert("x-guidance".into(), json!({ "whitespace_flexible": false }));
    Ok(format!("%json {schema}"))
}

/// A text as a literal of the grammar language.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// A text escaped for the inside of a JSON string.
fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use calls::schema;

    use super::*;

    #[test]
    fn forms_around_a_quote_become_rules() {
        let edge = schema::object([("a", schema::boolean()), ("src", schema::quote_of("one \"two\"", 4..=10))]);
        let form = schema::object([("list", schema::array(schema::any_of(vec![edge, schema::boolean()]), 3))]);
        let want = r#"start: r5
r0: %json {"type":"boolean","x-guidance":{"whitespace_flexible":false}}
WORDS1: %regex {"substring_chunks":["one"," ","\\\"","two","\\\""]}
QUOTE1: WORDS1 & /[\p{L}\p{N}]([^\\]|\\u[0-9a-f]{4}|\\[^u]){3,9}/
r1: "\"" QUOTE1 "\""
r2: "{\"a\":" r0 ",\"src\":" r1 "}"
r3: r2 | r0
r4: "[" (r3 ("," r3){0,2})? "]"
r5: "{\"list\":" r4 "}"
"#;
        assert_eq!(lark(&form).expect("the form is closed"), want);
    }

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let quote = || schema::quote_of("text", 1..=10);
        let check = |form: Value| assert!(quotes(&form) && lark(&form).is_err(), "{form}");
        check(
            json!({ "type": "object", "properties": { "a": quote() }, "required": [], "additionalProperties": false }),
        );
        check(json!({ "type": "object", "properties": { "a": quote() }, "required": ["a"] }));
        check(json!({ "type": "array", "items": quote() }));
        check(json!({ "type": "array", "items": quote(), "maxItems": 0 }));
        check(json!({ "oneOf": [quote()] }));
        check(json!({ "$ref": "#/a", "a": quote() }));
        check(json!({ QUOTE_OF: 3 }));
        assert!(!quotes(&schema::object([("a", schema::string(3))])));
    }
}
