//! Output formats: how one is requested from an endpoint, and validation of the reply.

use calls::schema::QUOTE_OF;
use calls::{Call, OutputFormat, ToolCall};
use schema_check::Schema;
use serde_json::{Value, json};

/// `response_format` of a call; none for free text. A choice is a string with enumerated values.
pub(crate) fn response_format(call: &Call) -> Option<Value> {
    let schema = match &call.output_format {
        OutputFormat::Text => return None,
        OutputFormat::Choice(options) => json!({ "type": "string", "enum": options }),
        OutputFormat::Json(schema) => plain(schema),
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
pub(crate) fn checked(output_format: &OutputFormat, text: String) -> Result<String, String> {
    match output_format {
        OutputFormat::Text => Ok(text),
        OutputFormat::Choice(options) => {
            let choice: String = serde_json::from_str(&text).map_err(|_| "it is no JSON string".to_owned())?;
            let known = options.contains(&choice);
            if known { Ok(choice) } else { Err(format!("it is none of the {} choices", options.len())) }
        }
        OutputFormat::Json(schema) => {
            let value: Value =
                serde_json::from_str(&text).map_err(|error| format!("it is no JSON ({:?})", error.classify()))?;
            validate(&plain(schema), &value)?;
            Ok(text)
        }
    }
}

/// Whether the calls of a reply are of tools that may be called, with arguments that their schemas allow.
///
/// # Errors
/// What is wrong with the first that is not, in words that contain none of the reply's text.
pub(crate) fn checked_calls(call: &Call, tool_calls: &[ToolCall]) -> Result<(), String> {
    let Some(tool_use) = &call.tools else {
        return if tool_calls.is_empty() { Ok(()) } else { Err("it calls a tool that was not offered".to_owned()) };
    };
    if tool_calls.is_empty() && tool_use.required {
        return Err("it calls no tool".to_owned());
    }
    for ToolCall { name, arguments, .. } in tool_calls {
        let tool = call.prompt.tools().iter().find(|tool| tool.name == *name && tool_use.allows(tool));
        let tool = tool.ok_or("it calls a tool that was not offered")?;
        let of = |reason: String| format!("in the arguments for `{}`: {reason}", tool.name);
        checked(&OutputFormat::Json(tool.schema()), arguments.clone()).map_err(of)?;
    }
    Ok(())
}

/// Validates a value against a JSON schema.
///
/// # Errors
/// The location of the first value that the schema does not allow, or the defect of the schema.
fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = Schema::new(schema).map_err(|error| format!("the schema itself is not valid ({})", error.reason))?;
    match schema.first_violation(value) {
        None => Ok(()),
        Some(location) => Err(format!("`{location}` is not what the schema allows there")),
    }
}

#[cfg(test)]
mod tests {
    use calls::{Agent, Prompt, Tool, ToolUse, schema};

    use super::*;

    #[test]
    fn answers_are_held_against_their_forms() {
        let check = |output_format: &OutputFormat, text: &str, want: Result<&str, &str>| {
            let found = checked(output_format, text.to_owned());
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{text}");
        };
        check(&OutputFormat::Text, "anything {", Ok("anything {"));
        let choice = OutputFormat::Choice(vec!["yes".into(), "no".into()]);
        check(&choice, "\"no\"", Ok("no"));
        check(&choice, "no", Err("it is no JSON string"));
        check(&choice, "\"perhaps\"", Err("it is none of the 2 choices"));
        let form = OutputFormat::Json(schema::object([("ids", schema::array_of([1, 2], 2))]));
        check(&form, "{\"ids\": [2]}", Ok("{\"ids\": [2]}"));
        check(&form, "{\"ids\": [2", Err("it is no JSON (Eof)"));
        check(&form, "{\"ids\": [1, 7]}", Err("`/ids/1` is not what the schema allows there"));
        check(&form, "{}", Err("`` is not what the schema allows there"));
        let day = OutputFormat::Json(json!({ "type": "string", "format": "date" }));
        check(&day, "\"1905-12-25\"", Ok("\"1905-12-25\""));
        check(&day, "\"Christmas\"", Err("`` is not what the schema allows there"));
    }

    #[test]
    fn schemas_of_clients_may_refer_to_themselves_and_to_nothing_else() {
        let tree = json!({ "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } },
            "additionalProperties": false } }, "$ref": "#/$defs/node" });
        let check = |text: &str| checked(&OutputFormat::Json(tree.clone()), text.to_owned());
        assert!(check("{\"next\": {\"next\": {}}}").is_ok());
        assert_eq!(check("{\"next\": {\"last\": {}}}").unwrap_err(), "`/next` is not what the schema allows there");
        let elsewhere = OutputFormat::Json(json!({ "$ref": "file:///etc/hostname" }));
        assert!(checked(&elsewhere, "1".into()).unwrap_err().starts_with("the schema itself is not valid"));
    }

    #[test]
    fn calls_are_held_against_their_tools() {
        let parameters = json!({ "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"] });
        let tool = Tool { name: "look".into(), description: None, parameters: Some(parameters) };
        let check = |tools: Option<ToolUse>, calls: &[(&str, &str)], want: Result<(), &str>| {
            let prompt = Prompt::new().with_tools(vec![tool.clone()]);
            let call = Call { tools, ..Call::new(Agent::Responder, "chat", prompt, 9) };
            let made = |(name, arguments): &(&str, &str)| ToolCall {
                id: "a".into(),
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
            };
            let calls: Vec<ToolCall> = calls.iter().map(made).collect();
            assert_eq!(checked_calls(&call, &calls), want.map_err(str::to_owned));
        };
        let any = || Some(ToolUse::default());
        check(any(), &[("look", "{\"at\": 3}")], Ok(()));
        check(any(), &[], Ok(()));
        check(Some(ToolUse { required: true, ..ToolUse::default() }), &[], Err("it calls no tool"));
        check(any(), &[("paint", "{}")], Err("it calls a tool that was not offered"));
        check(None, &[("look", "{}")], Err("it calls a tool that was not offered"));
        let wrong = "in the arguments for `look`: `` is not what the schema allows there";
        check(any(), &[("look", "{}")], Err(wrong));
        check(any(), &[("look", "")], Err("in the arguments for `look`: it is no JSON (Eof)"));
    }

    #[test]
    fn our_own_keyword_is_not_sent_to_endpoints() {
        let form = schema::object([("quote", schema::quote_of("the lamp was out", 3..=9))]);
        let call = Call {
            output_format: OutputFormat::Json(form),
            ..Call::new(Agent::Builder, "mindgraph.read", Prompt::new(), 9)
        };
        let asked = response_format(&call).unwrap_or_default();
        assert_eq!(asked["json_schema"]["name"], "mindgraph_read");
        let quote = &asked["json_schema"]["schema"]["properties"]["quote"];
        assert_eq!(*quote, json!({ "type": "string", "minLength": 3, "maxLength": 9 }));
    }
}
