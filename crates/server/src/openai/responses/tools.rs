//! Tools of the Responses API, whose definitions are flat.

use calls::{Tool as OfferedTool, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::tools::{self, ToolMode};
use crate::error::{Result, ServerError};
use crate::warnings::Warnings;

/// Whether a function must be called, and which.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"auto\", \"required\", {\"type\": \"function\", \"name\": ...} or {\"type\": \"allowed_tools\", ...}"
)]
pub(super) enum ResponseToolChoice {
    Mode(ToolMode),
    Some(SomeFunctions),
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SomeFunctions {
    Function { name: String },
    FileSearch,
    AllowedTools { mode: ToolMode, tools: Vec<NamedFunction> },
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum NamedFunction {
    Function { name: String },
    FileSearch,
}

/// A function that the client runs.
#[derive(Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

impl ResponseToolChoice {
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// True if the reply must call a function.
    pub fn requires_a_call(&self) -> bool {
        match self {
            ResponseToolChoice::Mode(mode) | ResponseToolChoice::Some(SomeFunctions::AllowedTools { mode, .. }) => {
                *mode == ToolMode::Required
            }
            ResponseToolChoice::Some(SomeFunctions::Function { .. } | SomeFunctions::FileSearch) => true,
        }
    }

    /// True unless only functions, or no tools, may be used.
    pub fn allows_file_search(&self) -> bool {
        match self {
            ResponseToolChoice::Mode(mode) => *mode != ToolMode::None,
            ResponseToolChoice::Some(SomeFunctions::Function { .. }) => false,
            ResponseToolChoice::Some(SomeFunctions::FileSearch) => true,
            ResponseToolChoice::Some(SomeFunctions::AllowedTools { mode, tools }) => {
                *mode != ToolMode::None && tools.iter().any(|tool| matches!(tool, NamedFunction::FileSearch))
            }
        }
    }

    fn tool_use(self, parallel: bool) -> Result<Option<ToolUse>> {
        let auto = ToolUse { parallel, ..ToolUse::default() };
        Ok(match self {
            ResponseToolChoice::Mode(ToolMode::None) => None,
            ResponseToolChoice::Mode(mode) => Some(ToolUse { required: mode == ToolMode::Required, ..auto }),
            ResponseToolChoice::Some(SomeFunctions::Function { name }) => {
                Some(ToolUse { required: true, names: vec![name], parallel: false })
            }
            ResponseToolChoice::Some(SomeFunctions::FileSearch) => {
                return Err(ServerError::invalid("there is no tool `file_search`", "tool_choice"));
            }
            ResponseToolChoice::Some(SomeFunctions::AllowedTools { mode, tools }) => {
                let name = |tool| match tool {
                    NamedFunction::Function { name } => Some(name),
                    NamedFunction::FileSearch => None,
                };
                let names: Vec<String> = tools.into_iter().filter_map(name).collect();
                if names.is_empty() || mode == ToolMode::None {
                    let message = "`allowed_tools` needs tools, and the mode `auto` or `required`";
                    return Err(ServerError::invalid(message, "tool_choice"));
                }
                Some(ToolUse { required: mode == ToolMode::Required, names, parallel })
            }
        })
    }
}

/// The functions that are described to the model, and how it may use them. Tools that run at OpenAI are skipped with a
/// warning.
pub(super) fn read(
    definitions: &[Value],
    choice: Option<ResponseToolChoice>,
    parallel: bool,
    warnings: &Warnings,
) -> Result<(Vec<OfferedTool>, Option<ToolUse>)> {
    let mut offered = Vec::new();
    for definition in definitions {
        match definition["type"].as_str() {
            Some("function") => {
                let unusable = |error| ServerError::invalid(format!("a function cannot be used: {error}"), "tools");
                let Function { name, description, parameters } = Function::deserialize(definition).map_err(unusable)?;
                offered.push(OfferedTool { name, description, parameters });
            }
            // Only if the choice of tools excludes it.
            Some("file_search") => {}
            Some(kind) => warnings.add(format!("ignored tool: {kind}")),
            None => return Err(ServerError::invalid("a tool needs a `type`", "tools")),
        }
    }
    let tool_use = match choice {
        None => Some(ToolUse { parallel, ..ToolUse::default() }),
        Some(choice) => choice.tool_use(parallel)?,
    };
    tools::check(&offered, tool_use.as_ref().unwrap_or(&ToolUse::default()))?;
    match tool_use {
        Some(tool_use) if !offered.is_empty() => Ok((offered, Some(tool_use))),
        _ => Ok((Vec::new(), None)),
    }
}
