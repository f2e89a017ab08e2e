//! Tool calling in chat completions.
//!
//! The model first chooses among the names of the tools (and, unless a call is required, no tool); then it writes the
//! arguments under the tool's schema. Both are constrained, so that a call always parses and validates. One tool is called
//! at a time.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::{Result, ServerError};

/// A tool that the model may call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Tool {
    Function { function: Function },
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON schema of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Arguments always satisfy the schema.
    #[serde(default, skip_serializing)]
    #[allow(dead_code, reason = "accepted, and always true here")]
    pub strict: Option<bool>,
}

/// Whether a tool must be called, and which.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"auto\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": ...}}"
)]
pub(super) enum ToolChoice {
    Mode(ToolMode),
    One(NamedTool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ToolMode {
    None,
    Auto,
    Required,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum NamedTool {
    Function { function: ToolName },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolName {
    pub name: String,
}

/// A tool call, as responses contain it and as clients send it back.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(super) struct ToolCall {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub function: CalledFunction,
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(super) struct CalledFunction {
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

impl ToolCall {
    pub fn new(id: String, name: String, arguments: String) -> ToolCall {
        ToolCall { id, kind: "function".into(), function: CalledFunction { name, arguments } }
    }

    /// The call as a line of the assistant's message.
    pub fn line(&self) -> String {
        format!("Call {}: {} {}", self.id, self.function.name, self.function.arguments)
    }
}

/// The tools that the model may choose from.
#[derive(Debug, Clone, Default)]
pub(super) struct Toolbox {
    functions: Vec<Function>,
    /// True if the model may answer without a tool.
    optional: bool,
}

/// The choice of answering without a tool; no tool can have this name.
pub(super) const NO_TOOL: &str = "no tool";

const MAX_NAME_BYTES: usize = 64;

impl Toolbox {
    /// Validates the tools of a request; empty if none may be called.
    pub fn read(tools: Option<Vec<Tool>>, choice: Option<ToolChoice>) -> Result<Toolbox> {
        let mut functions: Vec<Function> =
            tools.unwrap_or_default().into_iter().map(|Tool::Function { function }| function).collect();
        let valid = |name: &str| {
            (1..=MAX_NAME_BYTES).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        if let Some(bad) = functions.iter().find(|function| !valid(&function.name)) {
            let message = format!("`{}` cannot name a tool: use 1 to 64 of a-z, A-Z, 0-9, `_` and `-`", bad.name);
            return Err(ServerError::invalid(message, "tools"));
        }
        let needs_tools = || ServerError::invalid("`tool_choice` needs `tools`", "tool_choice");
        let optional = match choice {
            None | Some(ToolChoice::Mode(ToolMode::Auto)) => true,
            Some(ToolChoice::Mode(ToolMode::None)) => return Ok(Toolbox::default()),
            Some(_) if functions.is_empty() => return Err(needs_tools()),
            Some(ToolChoice::Mode(ToolMode::Required)) => false,
            Some(ToolChoice::One(NamedTool::Function { function: ToolName { name } })) => {
                functions.retain(|function| function.name == name);
                if functions.is_empty() {
                    return Err(ServerError::invalid(format!("there is no tool `{name}`"), "tool_choice"));
                }
                false
            }
        };
        Ok(Toolbox { functions, optional })
    }

    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The tools' description for the system message; empty without tools.
    pub fn description(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let lines: Vec<String> = self.functions.iter().map(|function| json!(function).to_string()).collect();
        format!("You can call tools. Each line describes one:\n{}\n\n", lines.join("\n"))
    }

    /// The names to choose from.
    pub fn names(&self) -> Vec<String> {
        let names = self.functions.iter().map(|function| function.name.clone());
        names.chain(self.optional.then(|| NO_TOOL.to_owned())).collect()
    }

    /// The question that asks for a choice.
    pub fn question(&self) -> String {
        let without = if self.optional { format!(", or `{NO_TOOL}` to answer without") } else { String::new() };
        format!("\n\nName the tool to call next{without}.")
    }

    /// The schema of a tool's arguments.
    pub fn schema(&self, name: &str) -> Value {
        let function = self.functions.iter().find(|function| function.name == name);
        function.and_then(|function| function.parameters.clone()).unwrap_or_else(|| json!({ "type": "object" }))
    }
}
