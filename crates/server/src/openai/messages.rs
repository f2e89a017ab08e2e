//! Chat messages, and the prompt built from them.

use calls::{Prompt, Speaker, Stability};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::tools::ToolCall;

/// One message. Participants' names and additional fields of OpenAI's own responses are accepted and ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "lowercase", deny_unknown_fields)]
#[allow(dead_code, reason = "some fields are accepted and ignored")]
#[allow(clippy::large_enum_variant, reason = "messages are parsed once and converted")]
pub(super) enum ChatMessage {
    #[serde(alias = "developer")]
    System {
        content: Content,
        name: Option<String>,
    },
    User {
        content: Content,
        name: Option<String>,
    },
    Assistant {
        content: Option<Content>,
        tool_calls: Option<Vec<ToolCall>>,
        name: Option<String>,
        refusal: Option<Value>,
        annotations: Option<Value>,
        audio: Option<Value>,
        function_call: Option<Value>,
    },
    Tool {
        content: Content,
        tool_call_id: String,
    },
}

/// The content of a message: text, whole or in parts. Images and audio are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of {\"type\": \"text\", \"text\": ...}")]
pub(super) enum Content {
    Text(String),
    Parts(Vec<TextPart>),
}

/// A part of a message's content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum TextPart {
    Text { text: String },
}

impl Content {
    fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => {
                parts.iter().map(|TextPart::Text { text }| text.as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// The chat as a prompt; `tools` is the tools' description for the system message.
pub(super) fn prompt(messages: &[ChatMessage], tools: &str) -> Prompt {
    let prompt = if tools.is_empty() { Prompt::new() } else { Prompt::new().system(tools) };
    messages.iter().fold(prompt, |prompt, message| match message {
        ChatMessage::System { content, .. } => turn(prompt, Speaker::System, &content.text()),
        ChatMessage::User { content, .. } => turn(prompt, Speaker::User, &content.text()),
        ChatMessage::Assistant { content, tool_calls, .. } => {
            turn(prompt, Speaker::Assistant, &assistant_text(content.as_ref(), tool_calls.as_deref()))
        }
        ChatMessage::Tool { content, tool_call_id } => {
            turn(prompt, Speaker::User, &format!("Result of {tool_call_id}:\n{}", content.text()))
        }
    })
}

/// A prompt with one more message; adjacent messages of the same role are merged.
pub(super) fn turn(prompt: Prompt, speaker: Speaker, text: &str) -> Prompt {
    let follows = prompt.segments().last().is_some_and(|last| last.speaker == speaker);
    let text = if follows { format!("\n\n{text}") } else { text.to_owned() };
    match speaker {
        Speaker::System => prompt.system(text),
        Speaker::User => prompt.user(Stability::AppendOnly, text),
        Speaker::Assistant => prompt.assistant(text),
    }
}

/// The assistant's text, including its tool calls.
fn assistant_text(content: Option<&Content>, tool_calls: Option<&[ToolCall]>) -> String {
    let text = content.map(Content::text).unwrap_or_default();
    let calls = tool_calls.unwrap_or_default().iter().map(ToolCall::line);
    [text].into_iter().filter(|text| !text.is_empty()).chain(calls).collect::<Vec<_>>().join("\n")
}
