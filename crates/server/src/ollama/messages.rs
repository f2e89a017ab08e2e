//! Messages of a chat, and the prompt built from them.

use calls::{Prompt, ResultOf, Role, Tool, ToolCall, Turn};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::options::Wishes;
use crate::error::{Result, ServerError};
use crate::warnings::Warnings;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaMessage {
    role: OllamaRole,
    content: Option<String>,
    /// What the model thought before this message.
    thinking: Option<String>,
    /// Refused unless empty.
    images: Option<Vec<Value>>,
    tool_calls: Option<Vec<OllamaToolCall>>,
    /// The tool that a message of a tool is from.
    tool_name: Option<String>,
    /// The call whose result it is.
    tool_call_id: Option<String>,
    #[serde(flatten)]
    #[schema(ignore)]
    unknown: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OllamaRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaToolCall {
    id: Option<String>,
    function: OllamaCalled,
}

#[derive(Debug, Deserialize, ToSchema)]
struct OllamaCalled {
    name: String,
    arguments: Option<Map<String, Value>>,
}

/// The chat as a prompt, every message a turn. A result without the id of its call belongs to the first call of its tool
/// that has none yet.
///
/// # Errors
/// If a message has images, or a field that would change its meaning.
pub(super) fn prompt(
    messages: Vec<OllamaMessage>,
    tools: Vec<Tool>,
    model: &str,
    warnings: &Warnings,
) -> Result<Prompt> {
    let mut prompt = Prompt::new().with_tools(tools);
    let (mut made, mut open): (usize, Vec<ResultOf>) = (0, Vec::new());
    for (number, message) in messages.into_iter().enumerate() {
        warnings.ignore(&message.unknown, &format!("messages[{number}]."))?;
        refuse_images(message.images.as_deref(), model)?;
        let mut turn = Turn { thought: message.thinking.filter(|text| !text.is_empty()), ..Turn::default() };
        for OllamaToolCall { id, function: OllamaCalled { name, arguments } } in message.tool_calls.unwrap_or_default()
        {
            let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call-{made}"));
            made += 1;
            open.push(ResultOf { id: id.clone(), name: Some(name.clone()) });
            let arguments = Value::Object(arguments.unwrap_or_default()).to_string();
            turn.tool_calls.push(ToolCall { id, name, arguments });
        }
        let role = match message.role {
            OllamaRole::System => Role::System,
            OllamaRole::User => Role::User,
            OllamaRole::Assistant => Role::Assistant,
            OllamaRole::Tool => Role::Tool,
        };
        if role == Role::Tool {
            let (id, name) = (message.tool_call_id, message.tool_name);
            let answers = |call: &ResultOf| match (&id, &name) {
                (Some(id), _) => call.id == *id,
                (None, Some(_)) => call.name == name,
                (None, None) => true,
            };
            let call = open.iter().position(answers).map(|place| open.remove(place));
            let call = call.unwrap_or_else(|| ResultOf { id: id.unwrap_or_default(), name });
            turn.result_of = Some(call);
        }
        prompt = prompt.turn(role, message.content.unwrap_or_default(), turn);
    }
    Ok(prompt)
}

/// The prompt whose reply continues the last message, as by Ollama, if that is the assistant's and has text only. An empty one
/// is left out unless it is the only one: there is nothing to continue.
///
/// # Errors
/// If the reply is to have a format or a thought.
pub(super) fn continued(prompt: Prompt, wishes: &Wishes) -> Result<Prompt> {
    let is_empty = prompt.segments().last().is_none_or(|last| last.text.is_empty());
    if !prompt.can_be_continued() || (is_empty && prompt.segments().len() == 1) {
        return Ok(prompt);
    }
    if !is_empty && wishes.format.as_ref().is_some_and(|format| format != "") {
        let message = "a reply that continues the last message is free text: omit that message or `format`";
        return Err(ServerError::invalid(message, "format"));
    }
    if !is_empty && wishes.thinks() {
        let message = "a reply that continues the last message has no thought: omit that message or `think`";
        return Err(ServerError::invalid(message, "think"));
    }
    Ok(prompt.continued())
}

pub(super) fn refuse_images(images: Option<&[Value]>, model: &str) -> Result<()> {
    if images.is_some_and(|images| !images.is_empty()) {
        return Err(ServerError::invalid(format!("{model} reads text only: it cannot be given images"), "images"));
    }
    Ok(())
}
