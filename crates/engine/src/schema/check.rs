//! What replies must satisfy beyond the grammar.

use std::cmp::Reverse;

use schema_check::{InvalidSchema, MAX_VISITS, Schema, Violations};
use serde_json::{Map, Value};

use super::Prepared;
use super::equivalents::is_closed;
use super::keys::{self, OpenKey};

/// Judges texts in a format that the grammar does not fully enforce.
pub(crate) struct Check {
    /// Absent if the grammar enforces every keyword.
    validator: Option<Schema>,
    /// What the grammar does not enforce, for errors.
    keywords: String,
    has_unique_keys: bool,
    /// Scalar values that the schema mentions, as JSON, and patterns that are texts: what a keyword requires is often one of
    /// them.
    pub literals: Vec<String>,
}

impl Check {
    /// The check of a schema; none if its grammar enforces everything.
    ///
    /// # Errors
    /// If the schema is not valid.
    pub fn new(schema: &Value, prepared: &Prepared) -> Result<Option<Check>, String> {
        let has_unique_keys = may_repeat_keys(&prepared.schema);
        if prepared.unchecked.is_empty() && !has_unique_keys {
            return Ok(None);
        }
        let (mut validator, mut literals) = (None, Vec::new());
        if !prepared.unchecked.is_empty() {
            validator = Some(Schema::new(schema).map_err(|error| invalid(&error))?);
            beside(&prepared.unchecked, schema).for_each(|part| collect_literals(part, &mut literals));
            collect_literals(schema, &mut literals);
        }
        Ok(Some(Check { validator, keywords: listed(&prepared.unchecked), has_unique_keys, literals }))
    }

    /// True if keywords of the schema are validated.
    pub fn validates(&self) -> bool {
        self.validator.is_some()
    }

    /// What is validated and not enforced by the grammar, for errors.
    pub fn keywords(&self) -> &str {
        &self.keywords
    }

    /// True if a text cannot be validated, because its schema's references multiply.
    pub fn is_too_much_work(&self, text: &[u8]) -> bool {
        self.violations(text).visits >= MAX_VISITS
    }

    /// A measure of what is wrong with a complete text (0 if it is valid), and of the work of finding it.
    pub fn violations(&self, text: &[u8]) -> Violations {
        let repeated = if self.has_unique_keys { keys::repeated(text) } else { 0 };
        let Some(validator) = &self.validator else { return Violations { count: repeated, visits: 1 } };
        let Ok(value) = serde_json::from_slice::<Value>(text) else {
            return Violations { count: UNREADABLE, visits: 1 };
        };
        let found = validator.violations(&value);
        Violations { count: repeated + found.count, ..found }
    }

    /// The key in which a text ends, if it must not repeat another.
    pub fn open_key(&self, text: &[u8]) -> Option<OpenKey> {
        if self.has_unique_keys { OpenKey::of(text) } else { None }
    }
}

/// The first of these keywords, each once; unique keys if there are none.
fn listed(keywords: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for keyword in keywords {
        if !distinct.contains(&keyword.as_str()) {
            distinct.push(keyword);
        }
    }
    match distinct.get(..MAX_LISTED) {
        _ if distinct.is_empty() => "unique keys".to_owned(),
        Some(first) if distinct.len() > MAX_LISTED => format!("{} and others", first.join(", ")),
        _ => distinct.join(", "),
    }
}

/// Maximum number of keywords that an error lists.
const MAX_LISTED: usize = 5;

/// Why a schema is not one, without its text, which may be long.
fn invalid(InvalidSchema { location, masked, .. }: &InvalidSchema) -> String {
    format!("{location}: the schema itself is not valid: {masked}")
}

/// The parts of a schema that have these keywords, the innermost first.
fn beside<'a>(keywords: &[String], schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let mut places: Vec<&str> = keywords.iter().filter_map(|at| Some(at.rsplit_once('/')?.0)).collect();
    places.sort_by_key(|place| Reverse(place.matches('/').count()));
    places.dedup();
    places.into_iter().filter_map(|place| schema.pointer(place))
}

/// The measure of a text that no parser reads, such as a number beyond the range of 64-bit floats.
const UNREADABLE: usize = 1_000;

/// Maximum number of values that a schema mentions and that are tried.
const MAX_LITERALS: usize = 64;

fn collect_literals(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    (
                        "properties" | "dependentRequired" | "dependentSchemas" | "dependencies",
                        Value::Object(named),
                    ) => {
                        named.keys().for_each(|name| add_literal(Value::from(name.as_str()).to_string(), found));
                    }
                    ("const", Value::Object(_) | Value::Array(_)) => add_literal(value.to_string(), found),
                    ("pattern", Value::String(text)) if is_plain(text) => add_literal(text.clone(), found),
                    _ => {}
                }
                if !PROSE.contains(&key.as_str()) {
                    collect_literals(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_literals(value, found)),
        scalar => add_literal(scalar.to_string(), found),
    }
}

/// Keywords whose values are no values of replies.
const PROSE: [&str; 9] = ["$schema", "$id", "$ref", "$comment", "title", "description", "type", "pattern", "format"];

/// True if a pattern is a text that values contain.
fn is_plain(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_ ".contains(&byte))
}

fn add_literal(text: String, found: &mut Vec<String>) {
    if found.len() < MAX_LITERALS && !found.contains(&text) {
        found.push(text);
    }
}

/// True if the grammar of a rewritten schema allows an object with keys of free choice, and so the same key twice.
fn may_repeat_keys(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return schema == &Value::Bool(true) };
    let has = |key: &str| fields.contains_key(key);
    let in_definitions = fields.get("$defs").and_then(Value::as_object);
    if in_definitions.is_some_and(|definitions| definitions.values().any(may_repeat_keys)) {
        return true;
    }
    if has("const") || has("enum") {
        return false;
    }
    let may_be = |name: &str| match fields.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|known| known == name),
        _ => true,
    };
    let is_typed = has("type");
    let delegates = ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| has(key));
    let describes_object = OBJECT_KEYWORDS.iter().any(|key| has(key));
    let describes_array = has("items") || has("prefixItems");
    if !is_typed && !delegates && !describes_object && !describes_array {
        return true;
    }
    if may_be("object") && (describes_object || is_typed && !delegates) && !is_closed(fields) {
        return true;
    }
    if may_be("array") && !has("items") && (describes_array || is_typed && !delegates) {
        return true;
    }
    children(fields).any(may_repeat_keys)
}

const OBJECT_KEYWORDS: [&str; 5] =
    ["properties", "patternProperties", "additionalProperties", "required", "minProperties"];

/// The schemas directly within a rewritten schema, its definitions apart.
pub(super) fn children(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    fields.iter().flat_map(|(key, value)| -> Box<dyn Iterator<Item = &Value>> {
        match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(named)) => Box::new(named.values()),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" | "additionalItems", Value::Array(all)) => {
                Box::new(all.iter())
            }
            ("items" | "additionalItems" | "additionalProperties", one) => Box::new(std::iter::once(one)),
            _ => Box::new(std::iter::empty()),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Extent, prepare};
    use super::*;

    fn check(schema: Value) -> Option<Check> {
        Check::new(&schema, &prepare(&schema, Extent::Full).unwrap()).unwrap()
    }

    #[test]
    fn a_check_measures_how_far_a_text_is_from_being_valid() {
        let check = check(json!({ "properties": { "a": { "uniqueItems": true } } })).unwrap();
        assert_eq!(check.keywords(), "/properties/a/uniqueItems");
        for (text, want) in
            [(r#"{"a":[1,2]}"#, 0), (r#"{"a":[1,1,2,2]}"#, 2), (r#"{"a":1,"a":1}"#, 1), ("[1e999]", UNREADABLE)]
        {
            assert_eq!(check.violations(text.as_bytes()).count, want, "{text}");
        }
    }

    #[test]
    fn an_error_lists_the_first_keywords_once() {
        let keywords = |names: &str| names.split(' ').map(|name| format!("/{name}")).collect::<Vec<_>>();
        assert_eq!(listed(&[]), "unique keys");
        assert_eq!(listed(&keywords("a b a")), "/a, /b");
        assert_eq!(listed(&keywords("a b c d e")), "/a, /b, /c, /d, /e");
        assert_eq!(listed(&keywords("a b c d e a f")), "/a, /b, /c, /d, /e and others");
    }

    #[test]
    fn literals_beside_what_no_grammar_enforces_come_first() {
        let many: Vec<String> = (0..MAX_LITERALS).map(|number| format!("word {number}")).collect();
        let schema = json!({ "properties": { "a": { "enum": many },
            "b": { "pattern": "(?=x-1)", "examples": ["x-1"], "not": { "pattern": "x-2" } } } });
        let literals = check(schema).unwrap().literals;
        assert_eq!(literals[..3], [r#""x-1""#, "x-2", r#""a""#]);
        assert_eq!(literals.len(), MAX_LITERALS);
    }

    #[test]
    fn only_formats_with_free_keys_are_searched_for_repeated_ones() {
        let closed =
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
        for schema in [
            closed.clone(),
            json!({ "type": "array", "items": closed }),
            json!({ "anyOf": [{ "type": "null" }, closed] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": closed } }),
            json!({ "enum": [{ "a": 1 }] }),
        ] {
            assert!(check(schema.clone()).is_none(), "{schema}");
        }
        for schema in [
            json!({}),
            json!({ "type": "object" }),
            json!({ "type": "array" }),
            json!({ "items": closed, "type": ["array", "object"] }),
            json!({ "type": "array", "items": { "properties": { "a": closed } } }),
            json!({ "type": "object", "patternProperties": { "^x$": closed }, "additionalProperties": false }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object" } } }),
        ] {
            assert!(check(schema.clone()).is_some_and(|check| !check.validates()), "{schema}");
        }
    }
}
