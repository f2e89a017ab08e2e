//! A scripted model whose replies have the format of the call and no meaning: the first value of an enum, one item of an
//! array, the last of several schemas.

use calls::schema::QUOTE_OF;
use calls::{Call, OutputFormat};
use serde_json::{Map, Value, json};

/// A reply in the format of the call.
pub fn reply(call: &Call) -> String {
    match &call.output_format {
        OutputFormat::Text => "A word was said.".to_owned(),
        OutputFormat::Choice(options) => options.first().cloned().unwrap_or_default(),
        OutputFormat::Json(schema) => filled(schema).to_string(),
    }
}

fn filled(schema: &Value) -> Value {
    let list = |key: &str| schema[key].as_array();
    if let Some(value) = schema.get("const").or_else(|| list("enum")?.first()) {
        return value.clone();
    }
    if let Some(form) = list("anyOf").and_then(|forms| forms.last()) {
        return filled(form);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(key, field)| (key.clone(), filled(field))).collect::<Map<_, _>>())
        }
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            let items = least.max(schema["maxItems"].as_u64().unwrap_or(1).min(1));
            (0..items).map(|_| filled(&schema["items"])).collect()
        }
        Some("boolean") => json!(true),
        Some("integer") => schema["minimum"].clone(),
        _ => {
            let words = schema[QUOTE_OF].as_str().and_then(|text| text.split_whitespace().next());
            json!(words.unwrap_or("word"))
        }
    }
}
