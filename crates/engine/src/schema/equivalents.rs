//! Keywords that llguidance lacks, in the form of others that it has.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::extent::{Extent, is_irregular};
use super::patterns;

/// Maximum number of keys of which one must be present, each of which becomes an alternative.
const MAX_ALTERNATIVES: usize = 8;

pub(crate) fn required(fields: &Map<String, Value>) -> Vec<&str> {
    fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// True if no keys but the named ones are allowed.
pub(crate) fn is_closed(fields: &Map<String, Value>) -> bool {
    fields.get("additionalProperties") == Some(&json!(false)) && !fields.contains_key("patternProperties")
}

/// True if every named key is required: llguidance counts keys only then.
pub(crate) fn names_are_required(fields: &Map<String, Value>) -> bool {
    let required = required(fields);
    let properties = fields.get("properties").and_then(Value::as_object);
    // Names that are limited may become properties.
    !fields.contains_key("propertyNames")
        && properties.is_none_or(|properties| properties.keys().all(|name| required.contains(&name.as_str())))
}

pub(crate) fn has_one_item_at_most(fields: &Map<String, Value>) -> bool {
    fields.get("maxItems").and_then(Value::as_u64).is_some_and(|most| most <= 1)
}

/// An equivalent of `minProperties: 1` if all keys are named and some are optional.
pub(crate) fn at_least_one(key: &str, value: &Value, fields: &Map<String, Value>) -> Option<Value> {
    let properties = fields.get("properties").and_then(Value::as_object)?;
    if key != "minProperties" || value != &json!(1) || names_are_required(fields) {
        return None;
    }
    if !required(fields).is_empty() {
        return Some(json!(true));
    }
    let alternatives: Vec<Value> = properties.keys().map(|name| json!({ "required": [name] })).collect();
    (is_closed(fields) && alternatives.len() <= MAX_ALTERNATIVES).then(|| json!({ "anyOf": alternatives }))
}

/// A whole number without a fraction of zero.
pub(crate) fn whole(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if !value.is_u64() && number.fract() == 0.0 && (0.0..9e15).contains(&number) => {
            format!("{number:.0}").parse::<u64>().map_or_else(|_| value.clone(), Value::from)
        }
        _ => value.clone(),
    }
}

/// The types of JSON values.
const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// The negation of a schema, if it is simple.
pub(crate) fn complement(schema: &Value) -> Option<Value> {
    match schema {
        Value::Bool(value) => return Some(Value::Bool(!value)),
        Value::Object(fields) if fields.is_empty() => return Some(Value::Bool(false)),
        _ => {}
    }
    let mut fields = schema.as_object()?.iter();
    let ((key, value), None) = (fields.next()?, fields.next()) else { return None };
    match (key.as_str(), value) {
        ("type", Value::String(name)) => without(&[name.as_str()]),
        ("type", Value::Array(names)) => without(&names.iter().filter_map(Value::as_str).collect::<Vec<_>>()),
        // A value of another type has what is required of objects.
        ("required", Value::Array(names)) if names.len() == 1 => {
            Some(json!({ "type": "object", "properties": { names[0].as_str()?: false } }))
        }
        ("anyOf", Value::Array(all)) => {
            let all = all.iter().map(complement).collect::<Option<Vec<Value>>>()?;
            Some(json!({ "allOf": all }))
        }
        _ => None,
    }
}

/// What all values have in common that do not satisfy a schema, if their types tell.
pub(crate) fn beyond_complement(schema: &Value) -> Option<Value> {
    let types = refused_types(schema);
    // Without any the schema is impossible, which llguidance refuses even for keys that may be absent.
    (!types.is_empty() && types.len() < TYPES.len()).then(|| json!({ "type": types }))
}

/// The types of the values that a schema can refuse.
fn refused_types(schema: &Value) -> Vec<&'static str> {
    let Some(fields) = schema.as_object() else {
        return if schema == &json!(true) { Vec::new() } else { TYPES.to_vec() };
    };
    let branches = |value: &Value| -> Vec<Vec<&'static str>> {
        value.as_array().into_iter().flatten().map(refused_types).collect()
    };
    let is_refused = |name: &&'static str| {
        fields.iter().any(|(key, value)| match key.as_str() {
            "type" => {
                let allowed = |allowed: &Value| allowed == *name;
                !(allowed(value) || value.as_array().is_some_and(|all| all.iter().any(allowed)))
            }
            "anyOf" => branches(value).iter().all(|refused| refused.contains(name)),
            "allOf" => branches(value).iter().any(|refused| refused.contains(name)),
            "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => *name == "number",
            "minLength" | "maxLength" | "pattern" | "format" => *name == "string",
            "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => *name == "array",
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "propertyNames"
            | "required"
            | "minProperties"
            | "maxProperties" => *name == "object",
            "title" | "description" | "$comment" | "default" | "examples" => false,
            _ => true,
        })
    };
    TYPES.into_iter().filter(is_refused).collect()
}

/// A value of none of these types; integers alone cannot be excluded.
pub(crate) fn without(types: &[&str]) -> Option<Value> {
    let known = types.iter().all(|name| TYPES.contains(name));
    let rest: Vec<&str> = TYPES.into_iter().filter(|name| !types.contains(name)).collect();
    (known && !rest.is_empty()).then(|| json!({ "type": rest }))
}

/// An equivalent of `propertyNames` if there are no other rules for names and their pattern can be enforced.
pub(crate) fn names(schema: &Value, fields: &Map<String, Value>, extent: Extent) -> Option<Value> {
    if schema == &json!(true) || schema == &json!({}) {
        return Some(json!({}));
    }
    if fields.contains_key("properties") || fields.contains_key("patternProperties") {
        return None;
    }
    let rest = fields.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
    let names = schema.as_object()?;
    let (mut pattern, mut only, mut least, mut most) = (None, None, 0, None);
    for (key, value) in names {
        match key.as_str() {
            "type" if value == "string" => {}
            "pattern" if is_irregular(value, extent) => return None,
            "pattern" => pattern = Some(patterns::plain(value.as_str()?)),
            "enum" => only = Some(value.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?),
            "minLength" => least = value.as_u64()?,
            "maxLength" => most = Some(value.as_u64()?),
            _ => return None,
        }
    }
    let lengths = least > 0 || most.is_some();
    match (pattern, only, lengths) {
        (Some(pattern), None, false) => {
            Some(json!({ "patternProperties": { pattern: rest }, "additionalProperties": false }))
        }
        (None, Some(names), false) => {
            let properties: Map<String, Value> =
                names.into_iter().map(|name| (name.to_owned(), rest.clone())).collect();
            Some(json!({ "properties": properties, "additionalProperties": false }))
        }
        (None, None, true) => {
            let mut pattern = format!("^[^\\n\\r]{{{least},");
            if let Some(most) = most {
                let _ = write!(pattern, "{most}");
            }
            pattern.push_str("}$");
            Some(json!({ "patternProperties": { pattern: rest }, "additionalProperties": false }))
        }
        _ => None,
    }
}

/// What an integer satisfies besides, so that it is not written as `-0`: JSON allows it, but many parsers read it as a
/// fraction.
pub(crate) fn without_negative_zero(fields: &Map<String, Value>) -> Option<Value> {
    let types = fields.get("type")?;
    let is_integer = |name: &Value| name == "integer";
    let allows = match types {
        Value::Array(types) => types.iter().any(is_integer) && !types.contains(&json!("number")),
        one => is_integer(one),
    };
    let has_values = fields.contains_key("enum") || fields.contains_key("const");
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    let has_sign = bound("minimum").is_none_or(|least| least < 0.0)
        && bound("exclusiveMinimum").is_none_or(|least| least < -1.0)
        && bound("maximum").is_none_or(|most| most >= 0.0)
        && bound("exclusiveMaximum").is_none_or(|most| most > 0.0);
    (allows && !has_values && has_sign)
        .then(|| json!({ "anyOf": [{ "type": types, "minimum": 0 }, { "type": "integer", "maximum": -1 }] }))
}
