//! Prompts that a user may choose in a client.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

/// Name, description, arguments with descriptions, and the text, in which arguments stand between braces.
type Written = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const PROMPTS: [Written; 2] = [
    (
        "answer",
        "Answer a question from a corpus, with quotes from its documents.",
        &[("corpus", "Name of the corpus"), ("question", "The question")],
        "Answer this question from the corpus `{corpus}`: {question}\n\nCall the tool `ask` with it. Give the answer, and \
         after each statement the quote that supports it with the name of its document. Say which statements have none. \
         If a quote is too short to judge, read around it with `read_source`.",
    ),
    (
        "keep",
        "Keep what this conversation has established in a corpus.",
        &[("corpus", "Name of the corpus"), ("name", "What the text is to be known by")],
        "Write down what this conversation has established: facts, decisions with their reasons, and open questions, each as \
         a sentence that can be understood without the conversation. Then keep the text with the tool `remember` in the \
         corpus `{corpus}` under the name `{name}`.",
    ),
];

pub(super) fn all() -> Vec<Prompt> {
    let argument = |(name, says): &(&str, &str)| PromptArgument::new(*name).with_description(*says).with_required(true);
    let prompt = |(name, says, arguments, _): &Written| {
        Prompt::new(*name, Some(*says), Some(arguments.iter().map(argument).collect()))
    };
    PROMPTS.iter().map(prompt).collect()
}

/// A prompt with its arguments in place.
pub(super) fn written(name: &str, given: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let invalid = |message: String| ErrorData::invalid_params(message, None);
    let (_, says, arguments, text) = PROMPTS
        .iter()
        .find(|(known, ..)| *known == name)
        .ok_or_else(|| invalid(format!("there is no prompt `{name}`")))?;
    let mut parts = text.split(['{', '}']);
    let mut written = parts.next().unwrap_or_default().to_owned();
    // Names and texts alternate.
    while let (Some(argument), Some(text)) = (parts.next(), parts.next()) {
        debug_assert!(arguments.iter().any(|(known, _)| *known == argument), "{argument}");
        let value = given.get(argument).and_then(Value::as_str).filter(|value| !value.trim().is_empty());
        written += value.ok_or_else(|| invalid(format!("the prompt `{name}` needs the argument `{argument}`")))?;
        written += text;
    }
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, written)]).with_description(*says))
}
