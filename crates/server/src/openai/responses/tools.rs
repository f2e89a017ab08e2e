//! Tools of the Responses API, whose definitions are flat.

use calls::{Tool as OfferedTool, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::tools::{self, ToolMode};
use super::namespaces::{Namespaces, joined};
use crate::error::{Result, ServerError};
use crate::json::in_words_of_json;
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
    Function {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    FileSearch,
    AllowedTools {
        mode: ToolMode,
        tools: Vec<NamedFunction>,
    },
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum NamedFunction {
    Function {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    FileSearch,
}

/// A function that the client runs.
#[derive(Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// Functions that a client groups, as Codex does those of an MCP server.
#[derive(Deserialize)]
struct Namespace {
    name: String,
    description: Option<String>,
    tools: Vec<Value>,
}

/// What the tools of a request offer.
#[derive(Default)]
pub(super) struct Offer {
    /// The functions that are described to the model; none if none may be called.
    pub functions: Vec<OfferedTool>,
    pub tool_use: Option<ToolUse>,
    pub namespaces: Namespaces,
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
            ResponseToolChoice::Some(SomeFunctions::Function { name, namespace }) => {
                let names = vec![joined(namespace.as_deref(), &name)];
                Some(ToolUse { required: true, names, parallel: false })
            }
            ResponseToolChoice::Some(SomeFunctions::FileSearch) => {
                return Err(ServerError::invalid("there is no tool `file_search`", "tool_choice"));
            }
            ResponseToolChoice::Some(SomeFunctions::AllowedTools { mode, tools }) => {
                let name = |tool| match tool {
                    NamedFunction::Function { name, namespace } => Some(joined(namespace.as_deref(), &name)),
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

/// Reads the tools of a request. Tools that run at OpenAI are skipped with a warning.
pub(super) fn read(
    definitions: &[Value],
    choice: Option<ResponseToolChoice>,
    parallel: bool,
    warnings: &Warnings,
) -> Result<Offer> {
    let mut offer = Offer::default();
    for definition in definitions {
        match kind(definition)? {
            "function" => {
                let function = function(definition)?;
                tools::check_name(&function.name)?;
                offer.functions.push(function);
            }
            "namespace" => offer.add_namespace(definition, warnings)?,
            // Only if the choice of tools excludes it.
            "file_search" => {}
            kind => warnings.add(format!("ignored tool: {kind}")),
        }
    }
    offer.tool_use = match choice {
        None => Some(ToolUse { parallel, ..ToolUse::default() }),
        Some(choice) => choice.tool_use(parallel)?,
    };
    tools::check_use(&offer.functions, offer.tool_use.as_ref().unwrap_or(&ToolUse::default()))?;
    if offer.functions.is_empty() || offer.tool_use.is_none() {
        (offer.functions, offer.tool_use) = (Vec::new(), None);
    }
    Ok(offer)
}

impl Offer {
    /// Adds the functions of a namespace. Its description precedes that of each.
    fn add_namespace(&mut self, definition: &Value, warnings: &Warnings) -> Result<()> {
        let unusable = |error: serde_json::Error| {
            let why = in_words_of_json(&error.to_string());
            ServerError::invalid(format!("a namespace cannot be used: {why}"), "tools")
        };
        let Namespace { name: namespace, description, tools: inner } =
            Namespace::deserialize(definition).map_err(unusable)?;
        tools::check_name(&namespace)?;
        for definition in &inner {
            let kind = kind(definition)?;
            if kind != "function" {
                warnings.add(format!("ignored tool: {kind}"));
                continue;
            }
            let OfferedTool { name, description: own, parameters } = function(definition)?;
            tools::check_name(&name)?;
            let texts: Vec<String> = description.iter().chain(&own).filter(|text| !text.is_empty()).cloned().collect();
            let name = self.namespaces.add(&namespace, &name);
            let description = (!texts.is_empty()).then(|| texts.join("\n"));
            self.functions.push(OfferedTool { name, description, parameters });
        }
        Ok(())
    }
}

fn kind(definition: &Value) -> Result<&str> {
    definition["type"].as_str().ok_or_else(|| ServerError::invalid("a tool needs a `type`", "tools"))
}

fn function(definition: &Value) -> Result<OfferedTool> {
    let unusable = |error: serde_json::Error| {
        let why = in_words_of_json(&error.to_string());
        ServerError::invalid(format!("a function cannot be used: {why}"), "tools")
    };
    let Function { name, description, parameters } = Function::deserialize(definition).map_err(unusable)?;
    Ok(OfferedTool { name, description, parameters })
}
