//! Input items, as requests and stored responses have them, and the prompt built from them.

use std::collections::{HashMap, HashSet};

use calls::{Prompt, ResultOf, Role, ToolCall, Turn};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::tools::made;
use super::namespaces::joined;
use crate::app::fresh_id;
use crate::error::{Result, ServerError};
use crate::warnings::Warnings;

/// A text, or items: messages, calls of functions and their outputs, in the form in which responses have them, and
/// references to items of kept responses.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of items")]
#[schema(as = ResponseInput)]
pub(super) enum Input {
    Text(String),
    Items(Vec<Value>),
}

impl Input {
    /// The number of its items.
    pub fn count(&self) -> usize {
        match self {
            Input::Text(_) => 1,
            Input::Items(items) => items.len(),
        }
    }

    /// The ids of the items that it refers to.
    pub fn references(&self) -> HashSet<String> {
        let Input::Items(items) = self else { return HashSet::new() };
        items.iter().filter_map(referred).map(str::to_owned).collect()
    }

    /// Replaces references with the items of these ids.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] with the first item that is not there.
    pub fn resolve(&mut self, found: &HashMap<String, Value>) -> Result<()> {
        let Input::Items(items) = self else { return Ok(()) };
        for item in items {
            if let Some(id) = referred(item) {
                let found =
                    found.get(id).ok_or_else(|| ServerError::NotFound(format!("item {id} in a kept response")))?;
                *item = found.clone();
            }
        }
        Ok(())
    }

    /// The items, each with an id.
    pub fn into_items(self) -> Result<Vec<Value>> {
        let mut items = match self {
            Input::Text(text) if text.is_empty() => return Err(refused("the input is empty")),
            Input::Text(text) => {
                vec![json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })]
            }
            Input::Items(items) if items.is_empty() => return Err(refused("the input has no items")),
            Input::Items(items) => items,
        };
        for item in &mut items {
            let Some(fields) = item.as_object_mut() else { return Err(refused("an item is an object")) };
            if !fields.get("id").is_some_and(Value::is_string) {
                fields.insert("id".to_owned(), fresh_id("item")?.into());
            }
        }
        Ok(items)
    }
}

/// The turns of items: texts and calls of one turn of the assistant are together, as chat templates expect them.
#[derive(Default)]
pub(super) struct Items {
    turns: Vec<(Role, String, Turn)>,
    made: Vec<ToolCall>,
    thought: Option<String>,
}

impl Items {
    /// Reads items. Those of tools that run at OpenAI are skipped with a warning.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with `input`.
    pub fn read(items: &[&Value], warnings: &Warnings) -> Result<Items> {
        let mut read = Items::default();
        for item in items {
            match item["type"].as_str() {
                None | Some("message") => read.message(item)?,
                Some("function_call") => read.call(item)?,
                Some("function_call_output") => read.output(item)?,
                Some("reasoning") => read.thought = Some(texts(item)).filter(|text| !text.is_empty()),
                // What it found is in the text that follows.
                Some("file_search_call") => {}
                Some("item_reference") => {
                    return Err(refused(
                        "an `item_reference` with an `id` is for the input of a response: send the item",
                    ));
                }
                Some(kind) => warnings.add(format!("ignored item: {kind}")),
            }
        }
        Ok(read)
    }

    fn message(&mut self, item: &Value) -> Result<()> {
        let role = match item["role"].as_str() {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(refused("the role of a message is user, assistant, system or developer")),
        };
        let text = content(&item["content"])?;
        let thought = if role == Role::Assistant { self.thought.take() } else { None };
        self.turns.push((role, text, Turn { thought, ..Turn::default() }));
        Ok(())
    }

    fn call(&mut self, item: &Value) -> Result<()> {
        let (Some(id), Some(name)) = (item["call_id"].as_str(), item["name"].as_str()) else {
            return Err(refused("a `function_call` has a `call_id` and a `name`"));
        };
        let call = made(
            id,
            &joined(item["namespace"].as_str(), name),
            item["arguments"].as_str().unwrap_or_default(),
            "input",
        )?;
        self.made.push(call.clone());
        let thought = self.thought.take();
        match self.turns.last_mut() {
            Some((Role::Assistant, _, turn)) if thought.is_none() => turn.tool_calls.push(call),
            _ => {
                let turn = Turn { tool_calls: vec![call], thought, ..Turn::default() };
                self.turns.push((Role::Assistant, String::new(), turn));
            }
        }
        Ok(())
    }

    fn output(&mut self, item: &Value) -> Result<()> {
        let Some(id) = item["call_id"].as_str() else {
            return Err(refused("a `function_call_output` has a `call_id`"));
        };
        let name = self.made.iter().rev().find(|call| call.id == id).map(|call| call.name.clone());
        let result_of = Some(ResultOf { id: id.to_owned(), name });
        self.turns.push((Role::Tool, content(&item["output"])?, Turn { result_of, ..Turn::default() }));
        Ok(())
    }

    /// The prompt, after the instructions.
    pub fn prompt(self, instructions: Option<&str>) -> Result<Prompt> {
        if self.turns.is_empty() {
            return Err(refused("the input has no messages"));
        }
        let prompt = instructions.map_or_else(Prompt::new, |text| Prompt::new().system(text));
        Ok(self.turns.into_iter().fold(prompt, |prompt, (role, text, turn)| prompt.turn(role, text, turn)))
    }
}

/// The id of the item that a reference names; its type may be left out.
fn referred(item: &Value) -> Option<&str> {
    let is_reference = match &item["type"] {
        Value::Null => item["role"].is_null(),
        kind => kind == "item_reference",
    };
    item["id"].as_str().filter(|_| is_reference)
}

/// The text of a content: a string, or parts of text.
fn content(content: &Value) -> Result<String> {
    let parts = match content {
        Value::Null => return Ok(String::new()),
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return Err(refused("a content is a string or an array of parts")),
    };
    let text = |part: &Value| match (part["type"].as_str(), &part["text"], &part["refusal"]) {
        (Some("input_text" | "output_text" | "text"), Value::String(text), _)
        | (Some("refusal"), _, Value::String(text)) => Ok(text.clone()),
        (Some(kind), ..) => {
            Err(refused(&format!("`{kind}` is not supported: the models of this server read text only")))
        }
        (None, ..) => Err(refused("a part of a content has a `type`")),
    };
    Ok(parts.iter().map(text).collect::<Result<Vec<String>>>()?.join("\n"))
}

/// The texts of a thought.
fn texts(item: &Value) -> String {
    let parts = [&item["summary"], &item["content"]].into_iter().filter_map(Value::as_array).flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn refused(message: &str) -> ServerError {
    ServerError::invalid(message, "input")
}
