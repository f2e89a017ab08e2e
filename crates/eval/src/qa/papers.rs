//! The papers' tables as data (`papers/*.toml`).

use serde::{Deserialize, Serialize};

use super::preset::Preset;
use crate::{Error, Result};

/// A paper's tables and configurations.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    #[serde(rename = "paper")]
    pub name: String,
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
    #[serde(rename = "preset", default)]
    pub presets: Vec<Preset>,
}

/// A paper's table for one suite: scores in percent, costs (seconds, tokens, steps) in their own units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    #[serde(default)]
    pub paper: String,
    pub number: String,
    pub suite: String,
    /// Differences of its set-up from all our runs.
    pub setup: String,
    /// `scorer | group` of each value of a row.
    pub columns: Vec<String>,
    pub rows: Vec<Published>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub model: String,
    pub method: String,
    pub values: Vec<f64>,
}

/// The quantities of columns besides scores: seconds, prompt tokens, search steps.
#[cfg(test)]
const COSTS: [&str; 4] = ["seconds:prepare", "seconds:answer", "tokens:answer", "steps"];

const PAPERS: [&str; 4] = [
    include_str!("../../papers/gam.toml"),
    include_str!("../../papers/memcot.toml"),
    include_str!("../../papers/comorag.toml"),
    include_str!("../../papers/mindgraph.toml"),
];

pub(super) fn papers() -> Result<Vec<Paper>> {
    PAPERS.iter().map(|text| toml::from_str(text).map_err(|error| Error::Plan(error.to_string()))).collect()
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
}

impl Table {
    /// The index of a scorer's value for a group in a row.
    pub(super) fn place(&self, scorer: &str, group: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == format!("{scorer} | {group}"))
    }

    /// All tables about a suite.
    ///
    /// # Errors
    /// [`Error::Plan`] if our data are damaged.
    pub fn about(suite: &str) -> Result<Vec<Table>> {
        let tables = papers()?.into_iter().flat_map(|paper| {
            let name = paper.name;
            paper.tables.into_iter().map(move |table| Table { paper: name.clone(), ..table })
        });
        Ok(tables.filter(|table| table.suite == suite).collect())
    }
}

#[cfg(test)]
mod tests {
    use memory::methods;

    use super::*;

    #[test]
    fn every_row_has_a_value_for_every_column_whose_names_are_known() {
        for table in papers().unwrap().into_iter().flat_map(|paper| paper.tables) {
            assert!(table.suite.parse::<super::super::QaSuite>().is_ok(), "{}", table.suite);
            let costs = |column: &String| COSTS.contains(&column.split_once(" | ").unwrap().0);
            for column in table.columns.iter().filter(|column| !costs(column)) {
                let (scorer, _) = column.split_once(" | ").unwrap();
                assert!(scorer == "compaction" || scorer.parse::<crate::score::Scorer>().is_ok(), "{scorer}");
            }
            for row in table.rows {
                assert_eq!(row.values.len(), table.columns.len(), "table {} {row:?}", table.number);
                for (column, value) in table.columns.iter().zip(&row.values) {
                    assert!(*value >= 0.0 && (costs(column) || *value <= 100.0), "{row:?}");
                }
            }
        }
    }

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
