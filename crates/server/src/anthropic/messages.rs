//! Messages of Anthropic's API, and the prompts that they become.

use calls::{OutputFormat, Prompt, ResultOf, Role, ToolCall, Turn};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Result, ServerError};

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AnthropicMessage)]
pub(super) struct Message {
    pub role: MessageRole,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AnthropicRole)]
pub(super) enum MessageRole {
    User,
    Assistant,
    System,
}

/// A text, or blocks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of content blocks")]
#[schema(as = AnthropicContent)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

/// A block of content. Images and documents are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = AnthropicBlock)]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    RedactedThinking {},
    ToolUse {
        id: String,
        name: String,
        input: Option<Map<String, Value>>,
    },
    ToolResult {
        tool_use_id: String,
        /// A string or an array of content blocks.
        #[schema(value_type = Option<Value>)]
        content: Option<Content>,
        is_error: Option<bool>,
    },
    Image {},
    Document {},
    #[serde(other)]
    Other,
}

/// Claude Code begins its system prompt with a block that is for Anthropic's servers, and differs in every request: it
/// would keep the prefix cache from being used.
const BILLING: &str = "x-anthropic-billing-header:";

/// The prompt of a conversation.
///
/// # Errors
/// If it has no messages, or a block that is not supported or is in the wrong place.
pub(super) fn prompt(system: Option<Content>, messages: Vec<Message>) -> Result<Prompt> {
    if messages.is_empty() {
        return Err(ServerError::invalid("a conversation needs messages", "messages"));
    }
    let mut prompt = Prompt::new();
    let system = match system {
        None => String::new(),
        Some(Content::Text(text)) => text,
        Some(Content::Blocks(blocks)) => {
            let texts = blocks.into_iter().map(|block| text_of(block, "system")).collect::<Result<Vec<_>>>()?;
            let texts: Vec<String> = texts.into_iter().filter(|text| !text.starts_with(BILLING)).collect();
            texts.join("\n\n")
        }
    };
    if !system.is_empty() {
        prompt = prompt.system(system);
    }
    let mut made: Vec<ToolCall> = Vec::new();
    for Message { role, content } in messages {
        let blocks = match content {
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        prompt = match role {
            MessageRole::Assistant => assistant(prompt, blocks, &mut made)?,
            MessageRole::User => user(prompt, blocks, &made)?,
            MessageRole::System => {
                let texts = blocks.into_iter().map(|block| text_of(block, "messages")).collect::<Result<Vec<_>>>()?;
                prompt.turn(Role::System, texts.join("\n\n"), Turn::default())
            }
        };
    }
    Ok(prompt)
}

/// The prompt whose reply continues its last message, the assistant's. White space at the end of that message is
/// refused as by Anthropic: models write it as part of the next word.
pub(super) fn continued(prompt: Prompt, output_format: &OutputFormat, thinking_tokens: usize) -> Result<Prompt> {
    let refused = |message: &str, param: &str| Err(ServerError::invalid(message, param));
    if !prompt.can_be_continued() {
        return refused("the last message, the assistant's, is continued and must have text only", "messages");
    }
    let prompt = prompt.continued();
    if prompt.reply_start().is_empty() {
        return Ok(prompt);
    }
    if prompt.reply_start().ends_with(char::is_whitespace) {
        return refused("the last message, the assistant's, must not end with white space", "messages");
    }
    if thinking_tokens > 0 {
        let message = "a reply that continues the last message has no thought: omit that message or `thinking`";
        return refused(message, "thinking");
    }
    if *output_format != OutputFormat::Text {
        let message =
            "a reply that continues the last message is free text: omit that message or `output_config.format`";
        return refused(message, "output_config.format");
    }
    Ok(prompt)
}

/// A turn of the assistant: its text, its thought, and its calls of tools.
fn assistant(prompt: Prompt, blocks: Vec<Block>, made: &mut Vec<ToolCall>) -> Result<Prompt> {
    let (mut texts, mut thoughts, mut tool_calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Thinking { thinking } => thoughts.push(thinking),
            Block::RedactedThinking {} => {}
            Block::ToolUse { id, name, input } => {
                let arguments = Value::Object(input.unwrap_or_default()).to_string();
                tool_calls.push(ToolCall { id, name, arguments });
            }
            block => texts.push(text_of(block, "messages")?),
        }
    }
    made.extend_from_slice(&tool_calls);
    let thought = Some(thoughts.join("\n\n")).filter(|thought| !thought.is_empty());
    Ok(prompt.turn(Role::Assistant, texts.join("\n\n"), Turn { tool_calls, thought, result_of: None }))
}

/// The turns of a user's message: results of tools, and texts between them.
fn user(mut prompt: Prompt, blocks: Vec<Block>, made: &[ToolCall]) -> Result<Prompt> {
    let mut texts: Vec<String> = Vec::new();
    let said = |prompt: Prompt, texts: &mut Vec<String>| {
        let text = std::mem::take(texts).join("\n\n");
        if text.is_empty() { prompt } else { prompt.turn(Role::User, text, Turn::default()) }
    };
    for block in blocks {
        let Block::ToolResult { tool_use_id, content, is_error } = block else {
            texts.push(text_of(block, "messages")?);
            continue;
        };
        prompt = said(prompt, &mut texts);
        let text = match content {
            None => String::new(),
            Some(Content::Text(text)) => text,
            Some(Content::Blocks(blocks)) => {
                let texts = blocks.into_iter().map(|block| text_of(block, "messages")).collect::<Result<Vec<_>>>()?;
                texts.join("\n")
            }
        };
        let text = if is_error.unwrap_or(false) { format!("error: {text}") } else { text };
        let name = made.iter().rev().find(|call| call.id == tool_use_id).map(|call| call.name.clone());
        let result_of = Some(ResultOf { id: tool_use_id, name });
        prompt = prompt.turn(Role::Tool, text, Turn { result_of, ..Turn::default() });
    }
    Ok(said(prompt, &mut texts))
}

/// The text of a block that must be one.
fn text_of(block: Block, param: &str) -> Result<String> {
    let message = match block {
        Block::Text { text } => return Ok(text),
        Block::Image {} => "images are not supported: the models of this server read text only",
        Block::Document {} => "documents are not supported here: send their text, or add them to a corpus",
        Block::Thinking { .. } | Block::RedactedThinking {} => "thoughts belong into messages of the assistant",
        Block::ToolUse { .. } => "`tool_use` belongs into messages of the assistant",
        Block::ToolResult { .. } => "`tool_result` belongs into messages of the user",
        Block::Other => "a content block has a type that is not supported: use text, thinking, tool_use or tool_result",
    };
    Err(ServerError::invalid(message, param))
}
