//! Tools of chat completions: their definitions, which of them may be called, and the calls.

use std::collections::HashSet;

use calls::{Tool as OfferedTool, ToolCall as MadeCall, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Result, ServerError};
use crate::warnings::Warnings;

/// A tool that the model may call. Unknown fields are ignored with a warning.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Tool {
    Function {
        function: Function,
        #[serde(flatten)]
        #[schema(ignore)]
        unknown: Map<String, Value>,
    },
}

impl Tool {
    /// The JSON schema of the arguments, if the tool has one.
    pub fn parameters_mut(&mut self) -> Option<&mut Value> {
        let Tool::Function { function, .. } = self;
        function.parameters.as_mut()
    }
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(crate) struct Function {
    name: String,
    description: Option<String>,
    /// JSON schema of the arguments.
    parameters: Option<Value>,
    /// Arguments always satisfy the schema.
    #[allow(dead_code, reason = "accepted, and always true here")]
    strict: Option<bool>,
    #[serde(flatten)]
    #[schema(ignore)]
    unknown: Map<String, Value>,
}

/// Whether a tool must be called, and which.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"auto\", \"required\", {\"type\": \"function\", \"function\": {\"name\": ...}} or {\"type\": \"allowed_tools\", ...}"
)]
pub(crate) enum ToolChoice {
    Mode(ToolMode),
    Some(SomeTools),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolMode {
    None,
    Auto,
    Required,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum SomeTools {
    Function { function: ToolName },
    AllowedTools { allowed_tools: AllowedTools },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowedTools {
    mode: ToolMode,
    tools: Vec<AllowedTool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum AllowedTool {
    Function { function: ToolName },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolName {
    name: String,
}

/// A tool call, as responses contain it and as clients send it back.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(super) struct ToolCall {
    id: String,
    #[serde(rename = "type", default = "function")]
    kind: String,
    function: CalledFunction,
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(super) struct CalledFunction {
    name: String,
    /// JSON, as text.
    arguments: String,
}

fn function() -> String {
    "function".into()
}

impl ToolCall {
    /// A call that the model made, by the id that clients know it by.
    pub fn new(id: String, call: &MadeCall) -> ToolCall {
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        ToolCall { id, kind: function(), function: CalledFunction { name, arguments } }
    }

    /// The call as part of a prompt.
    ///
    /// # Errors
    /// As [`made`].
    pub fn made(&self) -> Result<MadeCall> {
        made(&self.id, &self.function.name, &self.function.arguments, "messages")
    }
}

/// A call that a client sends back, as part of a prompt.
///
/// # Errors
/// If its arguments are not JSON; `param` is the field that has them.
pub(super) fn made(id: &str, name: &str, arguments: &str, param: &str) -> Result<MadeCall> {
    // Some clients send nothing for a function without parameters.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    if serde_json::from_str::<Value>(arguments).is_err() {
        return Err(ServerError::invalid(format!("the arguments of the tool call `{id}` are not JSON"), param));
    }
    Ok(MadeCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() })
}

/// Anthropic's limit; OpenAI's is 64.
const MAX_NAME_BYTES: usize = 128;

impl ToolChoice {
    /// True if the reply must call a tool.
    pub fn requires_a_call(&self) -> bool {
        let mode = match self {
            ToolChoice::Mode(mode) => *mode,
            ToolChoice::Some(SomeTools::Function { .. }) => ToolMode::Required,
            ToolChoice::Some(SomeTools::AllowedTools { allowed_tools }) => allowed_tools.mode,
        };
        mode == ToolMode::Required
    }
}

/// The tools that are described to the model, and how it may use them; nothing if none may be called.
pub(crate) fn read(
    tools: Option<Vec<Tool>>,
    choice: Option<ToolChoice>,
    parallel: bool,
    warnings: &Warnings,
) -> Result<(Vec<OfferedTool>, Option<ToolUse>)> {
    let mut offered = Vec::new();
    for (number, Tool::Function { function, unknown }) in tools.unwrap_or_default().into_iter().enumerate() {
        warnings.ignore(&unknown, &format!("tools[{number}]."))?;
        let Function { name, description, parameters, unknown, .. } = function;
        warnings.ignore(&unknown, &format!("tools[{number}].function."))?;
        offered.push(OfferedTool { name, description, parameters });
    }
    let auto = ToolUse { parallel, ..ToolUse::default() };
    let tool_use = match choice {
        None | Some(ToolChoice::Mode(ToolMode::Auto)) => auto,
        Some(ToolChoice::Mode(ToolMode::None)) => {
            check(&offered, &auto)?;
            return Ok((Vec::new(), None));
        }
        Some(ToolChoice::Mode(ToolMode::Required)) => ToolUse { required: true, ..auto },
        Some(ToolChoice::Some(SomeTools::Function { function: ToolName { name } })) => {
            ToolUse { required: true, names: vec![name], parallel: false }
        }
        Some(ToolChoice::Some(SomeTools::AllowedTools { allowed_tools: AllowedTools { mode, tools } })) => {
            let name = |AllowedTool::Function { function: ToolName { name } }| name;
            let names: Vec<String> = tools.into_iter().map(name).collect();
            if names.is_empty() || mode == ToolMode::None {
                let message = "`allowed_tools` needs tools, and the mode `auto` or `required`";
                return Err(ServerError::invalid(message, "tool_choice"));
            }
            ToolUse { required: mode == ToolMode::Required, names, parallel }
        }
    };
    check(&offered, &tool_use)?;
    Ok(if offered.is_empty() { (offered, None) } else { (offered, Some(tool_use)) })
}

/// Refuses tools that cannot be called by their names, and a use of tools that there are not.
///
/// # Errors
/// [`ServerError::Invalid`] with `tools` or `tool_choice`.
pub(crate) fn check(tools: &[OfferedTool], tool_use: &ToolUse) -> Result<()> {
    tools.iter().try_for_each(|tool| check_name(&tool.name))?;
    check_use(tools, tool_use)
}

/// Refuses a name that a tool cannot have.
///
/// # Errors
/// [`ServerError::Invalid`] with `tools`.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if is_name {
        return Ok(());
    }
    let message = format!("`{name}` cannot name a tool: use 1 to {MAX_NAME_BYTES} of a-z, A-Z, 0-9, `_` and `-`");
    Err(ServerError::invalid(message, "tools"))
}

/// As [`check`], for tools whose names are checked.
pub(super) fn check_use(tools: &[OfferedTool], tool_use: &ToolUse) -> Result<()> {
    let mut known = HashSet::new();
    if let Some(OfferedTool { name, .. }) = tools.iter().find(|tool| !known.insert(tool.name.as_str())) {
        return Err(ServerError::invalid(format!("two tools have the name `{name}`"), "tools"));
    }
    if let Some(name) = tool_use.names.iter().find(|name| !known.contains(name.as_str())) {
        return Err(ServerError::invalid(format!("there is no tool `{name}`"), "tool_choice"));
    }
    if tools.is_empty() && tool_use.required {
        return Err(ServerError::invalid("`tool_choice` needs `tools`", "tool_choice"));
    }
    Ok(())
}
