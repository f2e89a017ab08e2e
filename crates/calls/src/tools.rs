//! Tools that a model may call, and its calls of them.

use serde_json::{Map, Value, json};

/// A function that the model may call; the caller's client runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// The JSON schema of its arguments; any object if there is none.
    pub parameters: Option<Value>,
}

impl Tool {
    /// The definition that chat templates and OpenAI's API take.
    pub fn definition(&self) -> Value {
        let mut function = Map::from_iter([("name".to_owned(), Value::from(self.name.as_str()))]);
        if let Some(description) = &self.description {
            function.insert("description".to_owned(), description.as_str().into());
        }
        if let Some(parameters) = &self.parameters {
            function.insert("parameters".to_owned(), parameters.clone());
        }
        json!({ "type": "function", "function": function })
    }

    /// The schema that arguments are validated against.
    pub fn schema(&self) -> Value {
        self.parameters.clone().unwrap_or_else(|| json!({ "type": "object" }))
    }
}

/// How a reply may use the tools of its prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolUse {
    /// The reply calls a tool at least; otherwise it may be text alone.
    pub required: bool,
    /// The names of the tools that may be called; all of the prompt's if there are none.
    pub names: Vec<String>,
    /// The reply may call several tools.
    pub parallel: bool,
}

impl ToolUse {
    /// Whether a tool may be called.
    pub fn allows(&self, tool: &Tool) -> bool {
        self.names.is_empty() || self.names.contains(&tool.name)
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ToolCall {
    /// By which its result refers to it; unique within its reply.
    pub id: String,
    pub name: String,
    /// JSON, as the model wrote it; an object that validates against the tool's schema.
    pub arguments: String,
}

impl ToolCall {
    /// The call as chat templates take it, with its arguments as a value.
    pub(crate) fn for_template(&self) -> Value {
        let arguments = serde_json::from_str(&self.arguments);
        let arguments: Value = arguments.unwrap_or_else(|_| self.arguments.as_str().into());
        json!({ "type": "function", "function": { "name": self.name, "arguments": arguments }, "id": self.id })
    }

    /// The call as OpenAI's API takes it, with its arguments as text.
    pub(crate) fn for_openai(&self) -> Value {
        json!({ "id": self.id, "type": "function", "function": { "name": self.name, "arguments": self.arguments } })
    }
}

/// Which call a tool's turn answers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResultOf {
    pub id: String,
    /// The name of the tool, where it is known.
    pub name: Option<String>,
}
