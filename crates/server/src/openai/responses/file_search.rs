//! The tool `file_search`: the answer comes from vector stores, which are corpora.

use serde::Deserialize;
use serde_json::Value;

use super::super::params::refuse_if;
use super::super::vector_stores::MAX_RESULTS;
use super::tools::ResponseToolChoice;
use crate::error::{Result, ServerError};
use crate::json::in_words_of_json;
use crate::warnings::Warnings;

/// A search that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileSearch {
    /// Asked in this order, until one has an answer.
    pub stores: Vec<String>,
    /// Pages that an answer is made from, and results that are shown.
    pub most: Option<usize>,
    /// Whether the pages that were found are part of the output.
    pub shows_results: bool,
}

/// The value of `include` that asks for the pages that were found.
pub(super) const RESULTS: &str = "file_search_call.results";

#[derive(Deserialize)]
struct Definition {
    vector_store_ids: Vec<String>,
    max_num_results: Option<usize>,
    filters: Option<Value>,
    ranking_options: Option<Value>,
}

impl FileSearch {
    /// The search of a request; none if it has no such tool, or chooses another.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with `tools`.
    pub fn read(
        definitions: &[Value],
        choice: Option<&ResponseToolChoice>,
        include: &[String],
        warnings: &Warnings,
    ) -> Result<Option<FileSearch>> {
        let mut search = FileSearch { stores: Vec::new(), most: None, shows_results: false };
        if choice.is_some_and(|choice| !choice.allows_file_search()) {
            return Ok(None);
        }
        for definition in definitions.iter().filter(|definition| definition["type"] == "file_search") {
            let unusable = |error: serde_json::Error| {
                let why = in_words_of_json(&error.to_string());
                ServerError::invalid(format!("`file_search` cannot be used: {why}"), "tools")
            };
            let Definition { vector_store_ids, max_num_results, filters, ranking_options } =
                Definition::deserialize(definition).map_err(unusable)?;
            refuse_if(filters.is_some(), "filters")?;
            if vector_store_ids.is_empty() {
                return Err(ServerError::invalid("`file_search` needs `vector_store_ids`", "tools"));
            }
            if max_num_results.is_some_and(|most| !(1..=MAX_RESULTS).contains(&most)) {
                return Err(ServerError::invalid(format!("`max_num_results` must be 1 to {MAX_RESULTS}"), "tools"));
            }
            if ranking_options.is_some() {
                warnings.add("ignored fields: tools.ranking_options".to_owned());
            }
            let new: Vec<String> = vector_store_ids.into_iter().filter(|id| !search.stores.contains(id)).collect();
            search.stores.extend(new);
            search.most = search.most.or(max_num_results);
        }
        search.shows_results = include.iter().any(|name| name == RESULTS);
        Ok(Some(search).filter(|search| !search.stores.is_empty()))
    }
}
