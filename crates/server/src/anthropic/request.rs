//! Requests of Anthropic's API, and the calls that they become.

use calls::{Call, OutputFormat, Priority, Prompt, TenantId, Tool, ToolUse};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::messages::{Content, Message, MessageRole, continued, prompt};
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::limits::check_stops;
use crate::ollama::with_preset;
use crate::openai::params::{RawParams, refuse_if};
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
