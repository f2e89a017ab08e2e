//! A question to corpora.

use super::file_search::FileSearch;
use crate::recall::Question;

/// The same question to corpora, which are asked in this order until one has an answer with a source.
pub(super) struct Consultation {
    pub questions: Vec<Question>,
    /// The tool that asks them; none if the corpus is the model.
    pub search: Option<FileSearch>,
}
