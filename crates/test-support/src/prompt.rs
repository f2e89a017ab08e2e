//! Readers of prompts, for scripted models.

use calls::{Call, OutputFormat, Role};
use serde_json::Value;

/// The headings of inputs.
const NAMES: [&str; 9] = [
    "QUESTION",
    "REQUEST",
    "TRIED_REQUESTS",
    "MEMORY",
    "RESULT",
    "RESULT_SOURCES",
    "EVIDENCE_CONTEXT",
    "INPUT_MESSAGE",
    "CONTEXT",
];

/// The text under a heading of the prompt, up to the next heading or to the last paragraph.
pub fn input(call: &Call, name: &str) -> String {
    let messages = call.prompt.messages();
    let turn = messages.iter().find(|message| message.role == Role::User).expect("a message of the user");
    let heading = format!("{name}:\n");
    let at = |(at, _): &(usize, &str)| *at == 0 || turn.content[..*at].ends_with("\n\n");
    let start = turn.content.match_indices(&heading).find(at).map_or_else(|| panic!("no {name}"), |(at, _)| at);
    let rest = &turn.content[start + heading.len()..];
    let next = NAMES.iter().filter_map(|name| rest.find(&format!("\n\n{name}:\n"))).min();
    rest[..next.or_else(|| rest.rfind("\n\n")).unwrap_or(rest.len())].trim().to_owned()
}

/// The schema that a call's answer must match.
pub fn schema(call: &Call) -> &Value {
    match &call.output_format {
        OutputFormat::Json(schema) => schema,
        other => panic!("{} has the output_format {other:?}", call.step),
    }
}
