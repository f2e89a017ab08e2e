//! The output format of a chat completion.

use calls::OutputFormat;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The output format, as a request names it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ResponseFormat {
    Text,
    /// `schema` is as of llama.cpp.
    JsonObject {
        schema: Option<Value>,
    },
    JsonSchema {
        json_schema: JsonSchema,
    },
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "answers keep to the schema in any case")]
pub(super) struct JsonSchema {
    name: String,
    description: Option<String>,
    schema: Value,
    strict: Option<bool>,
}

impl ResponseFormat {
    /// What replies keep to.
    pub fn output_format(self) -> OutputFormat {
        match self {
            ResponseFormat::Text => OutputFormat::Text,
            ResponseFormat::JsonObject { schema } => {
                OutputFormat::Json(schema.unwrap_or_else(|| json!({ "type": "object" })))
            }
            ResponseFormat::JsonSchema { json_schema } => OutputFormat::Json(json_schema.schema),
        }
    }
}
