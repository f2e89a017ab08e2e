//! The forms of answers: how an endpoint is asked for one, and whether what came has it.

use calls::schema::QUOTE_OF;
use calls::{Call, Shape};
use serde_json::{Value, json};

/// `response_format` of a call; none for free text. A choice is a string that is one of several.
pub(crate) fn response_format(call: &Call) -> Option<Value> {
    let schema = match &call.shape {
        Shape::Text => return None,
        Shape::Choice(options) => json!({ "type": "string", "enum": options }),
        Shape::Json(schema) => plain(schema),
    };
    let name: String = call.step.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    Some(json!({ "type": "json_schema", "json_schema": { "name": name, "strict": true, "schema": schema } }))
}

/// The schema without our own keyword, which others may refuse.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != QUOTE_OF).map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Value::Array(values) => values.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// The answer, if it has the form of its call. A choice loses its quotation marks.
///
/// # Errors
/// What is wrong with it, in words that hold none of the answer's.
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
            let validator = jsonschema::validator_for(&plain(schema))
                .map_err(|error| format!("the schema itself is not valid ({error})"))?;
            match validator.iter_errors(&value).next() {
                None => Ok(text),
                Some(error) => Err(format!("`{}` is not what the schema allows there", error.instance_path())),
            }
        }
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
    fn others_do_not_see_our_keyword() {
        let form = schema::object([("quote", schema::quote_of("the lamp was out", 3..=9))]);
        let call = Call { shape: Shape::Json(form), ..Call::new(Role::Builder, "mindgraph.read", Prompt::new(), 9) };
        let asked = response_format(&call).unwrap_or_default();
        assert_eq!(asked["json_schema"]["name"], "mindgraph_read");
        let quote = &asked["json_schema"]["schema"]["properties"]["quote"];
        assert_eq!(*quote, json!({ "type": "string", "minLength": 3, "maxLength": 9 }));
    }
}
