//! Definitions of tools as Ollama's clients write them.

use serde_json::Value;

use crate::openai::tools::Tool;

/// The tools with lists of types for parameters of several types: Ollama's client for Python writes them as one text,
/// `integer, string`.
pub(super) fn with_lists_of_types(mut tools: Vec<Tool>) -> Vec<Tool> {
    for schema in tools.iter_mut().filter_map(Tool::parameters_mut) {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (_, property) in properties.into_iter().flatten() {
            let several = property["type"].as_str().filter(|types| types.contains(", "));
            let several = several.map(|types| types.split(", ").map(str::to_owned).collect::<Vec<_>>());
            if let Some(types) = several {
                property["type"] = types.into();
            }
        }
    }
    tools
}
