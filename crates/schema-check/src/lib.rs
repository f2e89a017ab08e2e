//! Validation of JSON values against JSON schemas with their `format` keywords, and a measure of what is wrong with them.
//!
//! A crate of its own because jsonschema is generic over the type of values: each crate that calls it compiles 1 MB of it.
//!
//! Not here: what a grammar enforces of a schema (`engine`).

mod visits;

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;
use visits::Visits;

/// A schema, compiled. It refers to no other document: jsonschema is built without retrieval of files and URLs.
///
/// A value is not valid if its validation could take more than [`MAX_VISITS`] applications of subschemas, which references can
/// cause that multiply with each level of a value.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    visits: Visits,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violations {
    /// A measure of it, at least 1 unless the value is valid.
    pub count: usize,
    /// Applications of subschemas that finding it could take.
    pub visits: usize,
}

/// Maximum applications of subschemas to a value and its parts.
pub const MAX_VISITS: usize = 1_000_000;
/// The same for a value whose violations are counted; those of others count as one.
const MAX_COUNTED: usize = 10_000;

/// Why a schema is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSchema {
    /// JSON pointer into the schema.
    pub location: String,
    /// The reason, with the part of the schema that is wrong.
    pub reason: String,
    /// The reason without the schema's text, which may be long.
    pub masked: String,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn new(schema: &Value) -> Result<Schema, InvalidSchema> {
        let built = jsonschema::options().should_validate_formats(true).build(schema);
        let validator = built.map_err(|error| InvalidSchema {
            location: error.instance_path().to_string(),
            reason: error.to_string(),
            masked: error.masked().to_string(),
        })?;
        let visits = Visits::new(schema).map_err(|error| InvalidSchema {
            location: String::new(),
            reason: error.to_string(),
            masked: "its references cannot be resolved".to_owned(),
        })?;
        Ok(Schema { validator, visits })
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.visits.count(value, MAX_VISITS) < MAX_VISITS && self.validator.is_valid(value)
    }

    /// What is wrong with a value.
    pub fn violations(&self, value: &Value) -> Violations {
        let visits = self.visits.count(value, MAX_VISITS);
        let count = if visits == MAX_VISITS {
            LARGE
        } else if self.validator.is_valid(value) {
            0
        } else if visits > MAX_COUNTED {
            1
        } else {
            self.validator.iter_errors(value).map(|error| weight(&error)).sum::<usize>().max(1)
        };
        Violations { count, visits }
    }

    /// The JSON pointer of the first value that the schema does not allow; of the whole value beyond [`MAX_VISITS`].
    pub fn first_violation(&self, value: &Value) -> Option<String> {
        if self.visits.count(value, MAX_VISITS) == MAX_VISITS {
            return Some(String::new());
        }
        self.validator.validate(value).err().map(|error| error.instance_path().to_string())
    }
}

/// The weight of a violation whose size is not known.
const LARGE: usize = 1_000;

/// How far a value is from satisfying a keyword.
fn weight(error: &ValidationError<'_>) -> usize {
    let missing = |limit: u64, present: usize| usize::try_from(limit).unwrap_or(LARGE).saturating_sub(present).max(1);
    match (error.kind(), &**error.instance()) {
        (Kind::UniqueItems, Value::Array(items)) => {
            let distinct: HashSet<String> = items.iter().map(Value::to_string).collect();
            (items.len() - distinct.len()).max(1)
        }
        (Kind::MinProperties { limit }, Value::Object(fields)) => missing(*limit, fields.len()),
        (Kind::MinItems { limit }, Value::Array(items)) => missing(*limit, items.len()),
        (Kind::AnyOf { context } | Kind::OneOfNotValid { context }, _) => {
            1 + context.iter().map(|errors| errors.iter().map(weight).sum()).min().unwrap_or(0)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_grow_with_the_distance_from_the_schema() {
        let schema =
            Schema::new(&json!({ "minItems": 3, "uniqueItems": true, "items": { "format": "date" } })).unwrap();
        for (value, violations) in [
            (json!(["2026-01-01", "2026-01-02", "2026-01-03"]), 0),
            (json!(["2026-01-01", "2026-01-02"]), 1),
            (json!([]), 3),
            (json!([1, 1, 1, 1]), 3),
            (json!(["2026-01-01", "2026-01-02", "2026-13-03"]), 1),
        ] {
            assert_eq!(schema.violations(&value).count, violations, "{value}");
            assert_eq!(schema.is_valid(&value), violations == 0, "{value}");
        }
    }

    /// Found by damaged schemas, round 70009350.
    #[test]
    fn validation_ends_where_references_multiply() {
        let twice = json!([{ "$ref": "#" }, { "$ref": "#" }]);
        let schema = Schema::new(&json!({ "properties": { "a": { "allOf": twice } }, "required": ["b"] })).unwrap();
        let (mut value, mut counts) = (json!({}), Vec::new());
        for _ in 0..30 {
            counts.push(schema.violations(&value).count);
            value = json!({ "a": value });
        }
        assert_eq!(counts[..3], [1, 3, 7]);
        assert_eq!(counts[12], 1, "valid or not, and no more");
        assert_eq!(counts[29], LARGE);
        assert!(!schema.is_valid(&value));
        assert_eq!(schema.first_violation(&value).as_deref(), Some(""));
    }

    #[test]
    fn the_first_violation_is_a_pointer() {
        let schema = Schema::new(&json!({ "properties": { "a": { "items": { "type": "string" } } } })).unwrap();
        assert_eq!(schema.first_violation(&json!({ "a": ["b", 1] })), Some("/a/1".to_owned()));
        assert_eq!(schema.first_violation(&json!({ "a": ["b"] })), None);
    }

    #[test]
    fn an_invalid_schema_is_located_and_its_text_can_be_left_out() {
        let error = Schema::new(&json!({ "properties": { "a": { "type": "colour" } } })).unwrap_err();
        assert_eq!(error.location, "/properties/a/type");
        assert!(error.reason.contains("colour") && !error.masked.contains("colour"), "{error:?}");
        assert!(Schema::new(&json!({ "$ref": "file:///etc/hostname" })).is_err());
    }
}
