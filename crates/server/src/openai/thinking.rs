//! Whether a model thinks before it answers, and how many tokens it may spend on that.

use calls::{Call, Limits};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::params::{OutputLength, output_limit};
use crate::app::App;
use crate::error::{Result, ServerError};

/// How much the model thinks: none, or at most 512 (minimal), 1,024 (low), 4,096 (medium), 16,384 (high) or 32,768 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    #[serde(alias = "max")]
    Xhigh,
}

impl Effort {
    /// The tokens of a thought.
    pub fn tokens(self) -> usize {
        match self {
            Effort::None => 0,
            Effort::Minimal => 512,
            Effort::Low => 1024,
            Effort::Medium => 4096,
            Effort::High => 16_384,
            Effort::Xhigh => 32_768,
        }
    }
}

/// Variables that the server sets itself.
const RESERVED: [&str; 3] = ["messages", "tools", "add_generation_prompt"];

/// The tokens of a thought that a chat asks for, and the variables of its template: `enable_thinking` among them decides
/// whether the model thinks.
pub(crate) fn budget(effort: Option<Effort>, variables: &Map<String, Value>) -> Result<usize> {
    const FIELD: &str = "chat_template_kwargs";
    if let Some(name) = RESERVED.iter().find(|name| variables.contains_key(**name)) {
        return Err(ServerError::invalid(format!("`{FIELD}` cannot set `{name}`"), FIELD));
    }
    let effort = effort.map(Effort::tokens);
    match variables.get("enable_thinking") {
        None => Ok(effort.unwrap_or(0)),
        Some(Value::Bool(false)) => Ok(0),
        Some(Value::Bool(true)) => Ok(effort.filter(|tokens| *tokens > 0).unwrap_or(Effort::Medium.tokens())),
        Some(_) => Err(ServerError::invalid(format!("`enable_thinking` of `{FIELD}` must be true or false"), FIELD)),
    }
}

/// The limits of a reply to a prompt with this many tokens. A thought takes its part of the output tokens, at most half.
///
/// # Errors
/// As [`output_limit`].
pub(crate) fn limits(
    app: &App,
    call: &Call,
    prompt_tokens: usize,
    asked: OutputLength,
    thinking_tokens: usize,
) -> Result<Limits> {
    let max_output_tokens = output_limit(app, call, prompt_tokens, asked)?;
    let room = match asked {
        OutputLength::Tokens(tokens) => tokens,
        OutputLength::Default | OutputLength::Rest => {
            app.caller.tokens().context_tokens(call.agent).saturating_sub(prompt_tokens).max(max_output_tokens)
        }
    };
    let thinking_tokens = thinking_tokens.min(room / 2);
    let max_output_tokens = max_output_tokens.min(room - thinking_tokens);
    Ok(Limits { max_output_tokens, thinking_tokens, ..call.limits })
}
