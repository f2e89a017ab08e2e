//! The papers' configurations by name, as far as open models can run them.

use std::collections::BTreeMap;

use memory::Layout;
use serde::Deserialize;

use super::papers::papers;
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
    #[serde(default)]
    pub memcot_store: Option<String>,
    #[serde(default)]
    pub layers: Vec<String>,
    #[serde(default)]
    max_iterations: Option<usize>,
    /// By suite, where the paper's number of rounds differs.
    #[serde(default)]
    suite_iterations: BTreeMap<String, usize>,
    pub seed: u64,
    /// By suite, the number of questions that the paper draws.
    #[serde(default)]
    pub sample: BTreeMap<String, usize>,
    pub ruler_length: Option<usize>,
    /// By suite, the factor by which YaRN extends the models' context, where its texts are longer than that.
    #[serde(default)]
    yarn: BTreeMap<String, f32>,
}

impl Preset {
    /// The preset of a name.
    ///
    /// # Errors
    /// [`Error::Plan`] with the known names.
    pub fn named(name: &str) -> Result<Preset> {
        let printed = papers()?.into_iter().flat_map(|paper| paper.presets);
        let presets: Vec<Preset> = printed.flat_map(|preset| [preset.clone(), preset.shared_first()]).collect();
        let names = presets.iter().map(|preset| preset.name.clone()).collect::<Vec<_>>().join(", ");
        let known = presets.into_iter().find(|preset| preset.name == name);
        known.ok_or_else(|| Error::Plan(format!("`{name}` is not one of {names}")))
    }

    /// Its twin with the faster order of prompt parts, which is not the paper's: `NAME/shared-first`.
    fn shared_first(&self) -> Preset {
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

#[cfg(test)]
mod tests {
    use memory::methods;

    use super::*;

    #[test]
    fn what_a_preset_sets_by_method_or_suite_is_of_its_own_methods_and_suites() {
        for preset in papers().unwrap().into_iter().flat_map(|paper| paper.presets) {
            let of_methods = preset.k.keys().chain(preset.page_tokens.keys());
            for method in of_methods {
                assert!(preset.methods.contains(method), "{}: {method}", preset.name);
            }
            for method in preset.k.keys() {
                let method = methods::find(method).unwrap();
                assert!(method.option_specs().iter().any(|spec| spec.name == "k"), "{}: {method}", preset.name);
            }
            let of_suites = preset.yarn.keys().chain(preset.suite_iterations.keys()).chain(preset.sample.keys());
            for suite in of_suites {
                assert!(preset.suites.contains(suite), "{}: {suite}", preset.name);
            }
        }
    }
}
