//! Compares every response of a test with /openapi.json: it may have no field that is not documented there.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::host::{Answer, Host, says};

const DOCUMENT: &str = "/openapi.json";

/// The description, which is the same for all configurations.
fn document() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| Host::new(says("")).get(DOCUMENT).json())
}

/// Checks that the JSON of a response has the form that is documented for its status, and that the type of the request is
/// documented if it was accepted.
#[track_caller]
pub fn check(method: &str, path: &str, headers: &[(&str, &str)], answer: &Answer) {
    if path == DOCUMENT {
        return;
    }
    let Some(operation) = operation(method, path) else { return };
    let sent = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type")).map(|(_, kind)| bare(kind));
    let accepted = &operation["requestBody"]["content"];
    // Ollama's API takes the type that curl adds, which is no part of its interface.
    if let Some(sent) = sent
        && (200..300).contains(&answer.status)
        && accepted.is_object()
        && !path.starts_with("/api/")
    {
        assert!(accepted.get(sent).is_some(), "{method} {path} takes {sent}, which is not documented");
    }
    if answer.header("content-type").map(bare) != Some("application/json") || answer.text.is_empty() {
        return;
    }
    let responses = &operation["responses"];
    let response = responses.get(answer.status.to_string()).unwrap_or(&responses["default"]);
    let about = format!("{method} {path}, status {}", answer.status);
    let schema = response.pointer("/content/application~1json/schema");
    let schema = schema.unwrap_or_else(|| panic!("{about}: no JSON is documented: {}", answer.text));
    if let Err(problem) = compare(schema, &answer.json(), "") {
        panic!("{about}: {problem}: {}", answer.text);
    }
}

/// A content type without its parameters.
fn bare(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

/// The operation of a path: that with the fewest parameters, if several match.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path: Vec<&str> = path.split('?').next().unwrap_or_default().split('/').collect();
    let matches = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        template.len() == path.len()
            && template.iter().zip(&path).all(|(own, part)| own.starts_with('{') || own == part)
    };
    let paths = document()["paths"].as_object().expect("paths").iter().filter(|(template, _)| matches(template));
    paths.min_by_key(|(template, _)| template.matches('{').count())?.1.get(method.to_ascii_lowercase())
}

/// How a value differs from a schema.
fn compare(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    if let Some(path) = schema["$ref"].as_str() {
        return compare(document().pointer(path.trim_start_matches('#')).expect("a schema"), value, place);
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        let has_one = forms.iter().any(|form| compare(form, value, place).is_ok());
        return if has_one { Ok(()) } else { Err(format!("`{place}` has none of its forms")) };
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Err(format!("`{place}` is {value}, which is none of {allowed:?}"));
    }
    let is_allowed = match &schema["type"] {
        Value::String(kind) => is_of(value, kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is_of(value, kind)),
        _ => true,
    };
    if !is_allowed {
        return Err(format!("`{place}` is {value} in place of {}", schema["type"]));
    }
    match (value, &schema["properties"]) {
        (Value::Object(fields), Value::Object(known)) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
                return Err(format!("`{place}` has no `{missing}`"));
            }
            fields.iter().try_for_each(|(name, value)| match known.get(name) {
                Some(schema) => compare(schema, value, &format!("{place}/{name}")),
                None => Err(format!("`{place}/{name}` is not documented")),
            })
        }
        (Value::Array(items), _) => items.iter().try_for_each(|item| compare(&schema["items"], item, place)),
        _ => Ok(()),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("{other} is no type of JSON"),
    }
}

#[test]
fn a_field_that_is_not_documented_is_found() {
    let schema = json!({ "$ref": "#/components/schemas/PlainRefusal" });
    assert_eq!(compare(&schema, &json!({ "error": "no" }), ""), Ok(()));
    assert_eq!(compare(&schema, &json!({ "error": "no", "hint": "yes" }), ""), Err("`/hint` is not documented".into()));
    assert_eq!(compare(&schema, &json!({}), ""), Err("`` has no `error`".into()));
    assert_eq!(compare(&schema, &json!({ "error": 1 }), ""), Err("`/error` is 1 in place of \"string\"".into()));
}
