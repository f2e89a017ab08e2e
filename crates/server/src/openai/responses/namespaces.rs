//! Functions in a tool of the type `namespace`, as Codex sends them for MCP servers: the model knows each by one joined name,
//! the client by its namespace and its name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The functions in namespaces, by the name that the model knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Namespaces(BTreeMap<String, (String, String)>);

impl Namespaces {
    /// Adds a function and returns its joined name.
    pub fn add(&mut self, namespace: &str, name: &str) -> String {
        let joined = joined(Some(namespace), name);
        self.0.insert(joined.clone(), (namespace.to_owned(), name.to_owned()));
        joined
    }

    /// Writes the name of a called function into its item, with the namespace if it has one.
    pub fn write(&self, called: &str, item: &mut Value) {
        let Some((namespace, name)) = self.0.get(called) else {
            item["name"] = json!(called);
            return;
        };
        (item["name"], item["namespace"]) = (json!(name), json!(namespace));
    }
}

/// The name by which the model knows a function.
pub(super) fn joined(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{}__{}", namespace.trim_end_matches('_'), name.trim_start_matches('_')),
        None => name.to_owned(),
    }
}
