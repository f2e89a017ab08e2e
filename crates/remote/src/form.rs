//! Output formats: how one is requested from an endpoint, and validation of the reply.

use calls::schema::QUOTE_OF;
use calls::{Call, Shape};
use jsonschema::{Retrieve, Uri};
use serde_json::{Value, json};

/// `response_format` of a call; none for free text. A choice is a string with enumerated values.
pub(crate) fn response_format(call: &Call) -> Option<Value> {
    let schema = match &call.shape {
        Shape::Text => return None,
        Shape::Choice(options) => json!({ "type": "string", "enum": options }),
        Shape::Json(schema) => plain(schema),
    };
    let name: String = call.step.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    Some(json!({ "type": "json_schema", "json_schema": { "name": name, "strict": true, "schema": schema } }))
}

/// The schema without our own keyword, which other servers may reject.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != QUOTE_OF).map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Value::Array(values) => values.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// The reply, if it has the output format of its call. The quotation marks of a choice are removed.
///
/// # Errors
/// What is wrong with it, in words that contain none of the reply's text.
pub(crate) fn checked(shape: &Shape, text: String) -> Result<String, String> {
    match shape {
        Shape::Text => Ok(text),
        Shape::Choice(options) => {
            let choice: String = serde_json::from_str(&text).map_err(|_| "it is no JSON string".to_owned())?;
            let known = options.contains(&choice);
            if known { Ok(choice) } else { Err(format!("it is none of the {} choices", options.len())) }
        }
        Shape::Json(schema) => {
            let value: Value =
                serde_json::from_str(&text).map_err(|error| format!("it is no JSON ({:?})", error.classify()))?;
            validate(plain(schema), &value)?;
            Ok(text)
        }
    }
}

/// Validates a value against a JSON schema.
///
/// # Errors
/// The location of the first value that the schema does not allow, or the defect of the schema.
fn validate(schema: Value, value: &Value) -> Result<(), String> {
    let options = jsonschema::options().should_validate_formats(true).with_retriever(NoDocuments);
    let validator = options.build(&schema).map_err(|error| format!("the schema itself is not valid ({error})"))?;
    validator
        .validate(value)
        .map_err(|error| format!("`{}` is not what the schema allows there", error.instance_path()))
}

/// Rejects references to other documents: a schema from a client must not open files.
struct NoDocuments;

impl Retrieve for NoDocuments {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is another document").into())
    }
}

#[cfg(test)]
mod tests {
    use calls::{Prompt, Role, schema};

    use super::*;

    #[test]
    fn answers_are_held_against_their_forms() {
        let check = |shape: &Shape, text: &str, want: Result<&str, &str>| {
            let found = checked(shape, text.to_owned());
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{text}");
        };
        check(&Shape::Text, "anything {", Ok("anything {"));
        let choice = Shape::Choice(vec!["yes".into(), "no".into()]);
        check(&choice, "\"no\"", Ok("no"));
        check(&choice, "no", Err("it is no JSON string"));
        check(&choice, "\"perhaps\"", Err("it is none of the 2 choices"));
        let form = Shape::Json(schema::object([("ids", schema::array_of([1, 2], 2))]));
        check(&form, "{\"ids\": [2]}", Ok("{\"ids\": [2]}"));
        check(&form, "{\"ids\": [2", Err("it is no JSON (Eof)"));
        check(&form, "{\"ids\": [1, 7]}", Err("`/ids/1` is not what the schema allows there"));
        check(&form, "{}", Err("`` is not what the schema allows there"));
    }

    #[test]
    fn schemas_of_clients_may_refer_to_themselves_and_to_nothing_else() {
        let tree = json!({ "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } },
            "additionalProperties": false } }, "$ref": "#/$defs/node" });
        let check = |text: &str| checked(&Shape::Json(tree.clone()), text.to_owned());
        assert!(check("{\"next\": {\"next\": {}}}").is_ok());
        assert_eq!(check("{\"next\": {\"last\": {}}}").unwrap_err(), "`/next` is not what the schema allows there");
        let elsewhere = Shape::Json(json!({ "$ref": "file:///etc/hostname" }));
        assert!(checked(&elsewhere, "1".into()).unwrap_err().starts_with("the schema itself is not valid"));
    }

    #[test]
    fn others_do_not_see_our_keyword() {
        let form = schema::object([("quote", schema::quote_of("the lamp was out", 3..=9))]);
        let call = Call { shape: Shape::Json(form), ..Call::new(Role::Builder, "mindgraph.read", Prompt::new(), 9) };
        let asked = response_format(&call).unwrap_or_default();
        assert_eq!(asked["json_schema"]["name"], "mindgraph_read");
        let quote = &asked["json_schema"]["schema"]["properties"]["quote"];
        assert_eq!(*quote, json!({ "type": "string", "minLength": 3, "maxLength": 9 }));
    }
}
