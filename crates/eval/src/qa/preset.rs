//! The papers' configurations by name, as far as open models can run them.

use std::collections::BTreeMap;

use memory::Layout;
use serde::Deserialize;

use super::suite::QaSuite;
use crate::{Error, Result};

/// A configuration behind a table of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// `gam/table1-qwen2.5-14b`.
    pub name: String,
    /// The suites of the table; the first is the default.
    pub suites: Vec<String>,
    pub models: Vec<String>,
    pub methods: Vec<String>,
    pub embedder: String,
    pub layout: String,
    /// The profile of all agents: `paper`.
    pub profile: String,
    pub temperature: f32,
    /// Tokens of a page by method; a method without a value has its own default.
    #[serde(default)]
    pub page_tokens: BTreeMap<String, usize>,
    pub evidence_tokens: Option<usize>,
    /// Hits of each search by method.
    #[serde(default)]
    pub k: BTreeMap<String, usize>,
    #[serde(default)]
    pub window: Option<usize>,
    /// How `rag` searches.
    #[serde(default)]
    pub search: Option<String>,
    #[serde(default)]
    pub memcot_store: Option<String>,
    #[serde(default)]
    pub layers: Vec<String>,
    #[serde(default)]
    max_iterations: Option<usize>,
    /// By suite, where the paper's number of rounds differs.
    #[serde(default)]
    pub(super) suite_iterations: BTreeMap<String, usize>,
    pub seed: u64,
    /// By suite, the number of questions that the paper draws.
    #[serde(default)]
    pub sample: BTreeMap<String, usize>,
    pub ruler_length: Option<usize>,
    /// By suite, the factor by which YaRN extends the models' context, where its texts are longer than that.
    #[serde(default)]
    pub(super) yarn: BTreeMap<String, f32>,
}

impl Preset {
    /// Its twin with the faster order of prompt parts, which is not the paper's: `NAME/shared-first`.
    pub(super) fn shared_first(&self) -> Preset {
        let (name, layout) = (format!("{}/shared-first", self.name), Layout::SharedFirst.to_string());
        Preset { name, layout, ..self.clone() }
    }

    /// The paper's number of rounds for a suite.
    pub fn max_iterations(&self, suite: QaSuite) -> Option<usize> {
        self.suite_iterations.get(&suite.to_string()).copied().or(self.max_iterations)
    }

    /// The factor of YaRN for a suite.
    pub fn yarn(&self, suite: QaSuite) -> Option<f32> {
        self.yarn.get(&suite.to_string()).copied()
    }

    /// Checks that the table is about a suite.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check(&self, suite: QaSuite) -> Result<()> {
        if self.suites.contains(&suite.to_string()) {
            return Ok(());
        }
        Err(Error::Plan(format!("{} is about {}, not {suite}", self.name, self.suites.join(", "))))
    }
}
