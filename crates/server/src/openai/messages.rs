//! Chat messages, and the prompt built from them.

use calls::{Prompt, ResultOf, Role, Tool, Turn};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::tools::ToolCall;
use crate::error::{Result, ServerError};
use crate::warnings::Warnings;

/// One message. Participants' names and the annotations of responses are accepted and ignored; other fields are ignored with
/// a warning, or refused if they have a part of the message (`audio`, `function_call`).
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
#[allow(dead_code, reason = "some fields are accepted and ignored")]
#[allow(clippy::large_enum_variant, reason = "messages are parsed once and converted")]
pub(super) enum ChatMessage {
    #[serde(alias = "developer")]
    System {
        content: Content,
        name: Option<String>,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
    User {
        content: Content,
        name: Option<String>,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
    Assistant {
        content: Option<Content>,
        tool_calls: Option<Vec<ToolCall>>,
        name: Option<String>,
        /// The text of a message without `content`.
        refusal: Option<String>,
        annotations: Option<Value>,
        /// What the model thought before this message.
        reasoning_content: Option<String>,
        /// The same, as newer versions of vLLM call it.
        reasoning: Option<String>,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
    Tool {
        content: Content,
        tool_call_id: String,
        name: Option<String>,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
}

/// The content of a message: text, whole or in parts. Images and audio are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected a string or an array of {\"type\": \"text\", \"text\": ...}; images and audio are not read"
)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<TextPart>),
}

/// A part of a message's content. Marks for the cache of prompts, and other unknown fields, are ignored with a warning.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum TextPart {
    Text {
        text: String,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
}

impl Content {
    fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => {
                parts.iter().map(|TextPart::Text { text, .. }| text.as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl ChatMessage {
    /// Warns of unknown fields; `place` comes before their names.
    fn check(&self, place: &str, warnings: &Warnings) -> Result<()> {
        let (content, unknown) = match self {
            ChatMessage::System { content, unknown, .. }
            | ChatMessage::User { content, unknown, .. }
            | ChatMessage::Tool { content, unknown, .. } => (Some(content), unknown),
            ChatMessage::Assistant { content, unknown, .. } => (content.as_ref(), unknown),
        };
        warnings.ignore(unknown, place)?;
        let Some(Content::Parts(parts)) = content else { return Ok(()) };
        parts.iter().enumerate().try_for_each(|(number, TextPart::Text { unknown, .. })| {
            warnings.ignore(unknown, &format!("{place}content[{number}]."))
        })
    }
}

/// The chat as a prompt, every message a turn.
///
/// # Errors
/// If the arguments of a tool call are not JSON, or a message has a field that would change its meaning.
pub(super) fn prompt(messages: &[ChatMessage], tools: Vec<Tool>, warnings: &Warnings) -> Result<Prompt> {
    let mut prompt = Prompt::new().with_tools(tools);
    let mut made = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        message.check(&format!("messages[{number}]."), warnings)?;
        prompt = match message {
            ChatMessage::System { content, .. } => turn(prompt, Role::System, &content.text()),
            ChatMessage::User { content, .. } => turn(prompt, Role::User, &content.text()),
            ChatMessage::Assistant { content, refusal, tool_calls, reasoning_content, reasoning, .. } => {
                let calls = tool_calls.iter().flatten().map(ToolCall::made).collect::<Result<Vec<_>>>()?;
                made.extend_from_slice(&calls);
                let thought = reasoning_content.clone().or_else(|| reasoning.clone());
                let thought = thought.filter(|thought| !thought.is_empty());
                let text = content.as_ref().map(Content::text).or_else(|| refusal.clone()).unwrap_or_default();
                prompt.turn(Role::Assistant, text, Turn { tool_calls: calls, thought, ..Turn::default() })
            }
            ChatMessage::Tool { content, tool_call_id, name, .. } => {
                let call = made.iter().rev().find(|call| call.id == *tool_call_id);
                let name = name.clone().or_else(|| call.map(|call| call.name.clone()));
                let result_of = Some(ResultOf { id: tool_call_id.clone(), name });
                prompt.turn(Role::Tool, content.text(), Turn { result_of, ..Turn::default() })
            }
        };
    }
    Ok(prompt)
}

/// The prompt, whose reply continues the last message if the request says so by vLLM's `continue_final_message` or
/// `add_generation_prompt`. By default the reply is a new message, as in OpenAI's API.
///
/// # Errors
/// If the fields contradict each other or the messages, or the reply is to have a format or a thought.
pub(super) fn continued(
    prompt: Prompt,
    (continues, opens_turn): (Option<bool>, Option<bool>),
    is_free_text: bool,
) -> Result<Prompt> {
    let refused = |message: &str| Err(ServerError::invalid(message, "continue_final_message"));
    if continues.is_some() && continues == opens_turn {
        return refused("`continue_final_message` and `add_generation_prompt` must not be equal");
    }
    if !continues.or(opens_turn.map(|opens_turn| !opens_turn)).unwrap_or(false) {
        return Ok(prompt);
    }
    if !prompt.can_be_continued() {
        return refused("`continue_final_message` needs a last message of the assistant that has text only");
    }
    if !is_free_text {
        return refused(
            "a reply that continues the last message is free text without a thought: omit `response_format` and \
             `reasoning_effort`, or `continue_final_message`",
        );
    }
    Ok(prompt.continued())
}

/// A prompt with one more message.
pub(super) fn turn(prompt: Prompt, role: Role, text: &str) -> Prompt {
    prompt.turn(role, text, Turn::default())
}
