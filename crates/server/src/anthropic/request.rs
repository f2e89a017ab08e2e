//! Requests of Anthropic's API, and the calls that they become.

use calls::{Call, OutputFormat, Priority, Prompt, ResultOf, Role, TenantId, Tool, ToolCall, ToolUse, Turn};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{Result, ServerError};
use crate::ollama::with_preset;
use crate::openai::params::{RawParams, check_stops, refuse_if};
use crate::openai::thinking::Effort;
use crate::openai::tools;
use crate::recall::{Address, CorpusModel, Question, Wishes, warn_of_unused};
use crate::warnings::Warnings;

/// A request for a message, or for the count of its prompt's tokens. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct MessagesRequest {
    model: String,
    messages: Vec<Message>,
    /// Maximum output tokens, the thought included; fewer if the context leaves fewer. A count does not need it.
    max_tokens: Option<usize>,
    system: Option<Content>,
    stream: Option<bool>,
    stop_sequences: Option<Vec<String>>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    tools: Option<Vec<Definition>>,
    tool_choice: Option<ToolChoice>,
    thinking: Option<Thinking>,
    output_config: Option<OutputConfig>,
    /// The older place of `output_config.format`.
    output_format: Option<JsonFormat>,
    /// Whether the sources of an answer from a corpus follow its text; true by default.
    footnotes: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AnthropicMessage)]
struct Message {
    role: MessageRole,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AnthropicRole)]
enum MessageRole {
    User,
    Assistant,
    System,
}

/// A text, or blocks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of content blocks")]
#[schema(as = AnthropicContent)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

/// A block of content. Images and documents are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = AnthropicBlock)]
enum Block {
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

/// A tool of the client. Tools that run at Anthropic are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AnthropicTool)]
struct Definition {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
    /// JSON schema of the input.
    input_schema: Option<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = AnthropicToolChoice)]
enum ToolChoice {
    Auto { disable_parallel_tool_use: Option<bool> },
    Any { disable_parallel_tool_use: Option<bool> },
    Tool { name: String },
    None {},
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = AnthropicThinking)]
enum Thinking {
    Enabled { budget_tokens: usize },
    Adaptive {},
    Disabled {},
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AnthropicOutputConfig)]
struct OutputConfig {
    /// How much the model thinks, if it is to.
    effort: Option<Effort>,
    /// `{"type": "json_schema", "schema": ...}`.
    format: Option<JsonFormat>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = AnthropicOutputFormat)]
enum JsonFormat {
    JsonSchema { schema: Value },
}

/// A validated request.
pub(super) struct Asked {
    /// The call; its limits are not fitted into the context yet.
    pub call: Call,
    /// How responses name the model.
    pub model: String,
}

/// Claude Code begins its system prompt with a block that is for Anthropic's servers, and differs in every request: it
/// would keep the prefix cache from being used.
const BILLING: &str = "x-anthropic-billing-header:";

impl MessagesRequest {
    pub fn stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// The maximum output tokens.
    ///
    /// # Errors
    /// If there are none.
    pub fn max_tokens(&self) -> Result<usize> {
        let refused = || ServerError::invalid("`max_tokens` is required, and at least 1", "max_tokens");
        self.max_tokens.filter(|tokens| *tokens > 0).ok_or_else(refused)
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether thoughts are shown.
    pub fn thinks(&self) -> bool {
        matches!(self.thinking, Some(Thinking::Enabled { .. } | Thinking::Adaptive {}))
    }

    /// The prompt of a question to a corpus, alone.
    pub fn prompt(self) -> Result<Prompt> {
        if self.ends_with_assistant() {
            let message = "the last message must not be the assistant's: a corpus answers questions of the user";
            return Err(ServerError::invalid(message, "messages"));
        }
        prompt(self.system, self.messages)
    }

    /// Whether the reply continues the last message.
    fn ends_with_assistant(&self) -> bool {
        matches!(self.messages.last(), Some(Message { role: MessageRole::Assistant, .. }))
    }

    /// A question to a corpus, which calls no tools. What would give the answer another form is refused; other fields that have no
    /// effect are named, except `max_tokens` and the budget of a thought, which this API requires.
    pub fn question(self, model: CorpusModel, address: Address, warnings: &Warnings) -> Result<Question> {
        let must_call = matches!(self.tool_choice, Some(ToolChoice::Any { .. } | ToolChoice::Tool { .. }));
        refuse_if(must_call, "tool_choice")?;
        refuse_if(self.stop_sequences.as_ref().is_some_and(|stop| !stop.is_empty()), "stop_sequences")?;
        let format = self.output_config.as_ref().and_then(|config| config.format.as_ref());
        refuse_if(format.or(self.output_format.as_ref()).is_some(), "output_config.format")?;
        let effort = self.output_config.as_ref().and_then(|config| config.effort);
        let unused = [
            ("tools", self.tools.as_ref().is_some_and(|tools| !tools.is_empty())),
            ("top_p", self.top_p.is_some_and(|top_p| top_p < 1.0)),
            ("top_k", self.top_k.is_some_and(|top_k| top_k > 0)),
            ("output_config.effort", effort.is_some_and(|effort| effort.tokens() > 0)),
        ];
        warn_of_unused(&unused, warnings);
        let wishes = Wishes {
            temperature: self.temperature,
            seed: None,
            footnotes: self.footnotes,
            pages: None,
            max_output_tokens: self.max_tokens,
        };
        Ok(Question { model, prompt: self.prompt()?, address, wishes })
    }

    /// Validates the request.
    pub fn read(self, app: &App, tenant: TenantId) -> Result<Asked> {
        let continues = self.ends_with_assistant();
        let stop = self.stop_sequences.unwrap_or_default();
        if stop.iter().any(String::is_empty) {
            return Err(ServerError::invalid("stop sequences must not be empty", "stop_sequences"));
        }
        check_stops(stop.len(), "stop_sequences")?;
        let (temperature, top_p, top_k) = (self.temperature, self.top_p, self.top_k);
        let served = app.served(&self.model)?;
        let (offered, tools) = tool_use(self.tools, self.tool_choice)?;
        let (effort, format) = self.output_config.map_or((None, None), |config| (config.effort, config.format));
        let thinking_tokens = match self.thinking {
            None | Some(Thinking::Disabled {}) => 0,
            Some(Thinking::Enabled { budget_tokens }) => budget_tokens,
            Some(Thinking::Adaptive {}) => effort.unwrap_or(Effort::Medium).tokens(),
        };
        let output_format = format
            .or(self.output_format)
            .map_or(OutputFormat::Text, |JsonFormat::JsonSchema { schema }| OutputFormat::Json(schema));
        if !stop.is_empty() && output_format != OutputFormat::Text {
            let message = "`stop_sequences` end free text only; omit them or `output_config.format`";
            return Err(ServerError::invalid(message, "stop_sequences"));
        }
        let params = RawParams { temperature, top_p, top_k, ..RawParams::default() };
        let params = with_preset(app, params, &output_format)?.read()?;
        let (sampling, stop) = (params.sampling, if stop.is_empty() { params.stop } else { stop });
        let prompt = prompt(self.system, self.messages)?;
        let prompt = if continues { continued(prompt, &output_format, thinking_tokens)? } else { prompt };
        let prompt = prompt.or_system(&app.preset.system).with_tools(offered);
        let call = served.call("messages", prompt, 1);
        let mut call = Call { tenant, output_format, tools, sampling, stop, priority: Priority::Interactive, ..call };
        call.limits.thinking_tokens = thinking_tokens;
        Ok(Asked { call, model: served.name })
    }
}

/// The tools that are described to the model, and how it may use them.
fn tool_use(definitions: Option<Vec<Definition>>, choice: Option<ToolChoice>) -> Result<(Vec<Tool>, Option<ToolUse>)> {
    let mut offered = Vec::new();
    for Definition { name, kind, description, input_schema } in definitions.unwrap_or_default() {
        if let Some(kind) = kind.filter(|kind| kind != "custom") {
            let message =
                format!("the tool `{name}` of the type `{kind}` is not supported: only tools of the client are");
            return Err(ServerError::invalid(message, "tools"));
        }
        offered.push(Tool { name, description, parameters: input_schema });
    }
    let any = ToolUse { required: false, names: Vec::new(), parallel: true };
    let tools = match choice {
        None => Some(any),
        Some(ToolChoice::Auto { disable_parallel_tool_use }) => {
            Some(ToolUse { parallel: !disable_parallel_tool_use.unwrap_or(false), ..any })
        }
        Some(ToolChoice::Any { disable_parallel_tool_use }) => {
            Some(ToolUse { required: true, parallel: !disable_parallel_tool_use.unwrap_or(false), ..any })
        }
        Some(ToolChoice::Tool { name }) => Some(ToolUse { required: true, names: vec![name], parallel: false }),
        Some(ToolChoice::None {}) => None,
    };
    tools::check(&offered, tools.as_ref().unwrap_or(&ToolUse::default()))?;
    if offered.is_empty() || tools.is_none() {
        return Ok((Vec::new(), None));
    }
    Ok((offered, tools))
}

fn prompt(system: Option<Content>, messages: Vec<Message>) -> Result<Prompt> {
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
fn continued(prompt: Prompt, output_format: &OutputFormat, thinking_tokens: usize) -> Result<Prompt> {
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
