//! The stored form of a graph: the edits of each block, as a note on that block. The graph is their replay in the order
//! of the blocks, so it needs no file of its own, a killed build resumes, and removing a document removes its
//! edits.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Corpus, Layer, PassageId};

use super::focus::Target;
use super::graph::Graph;
use super::operation::Edit;
use crate::core::error::Result;

/// The edits of one block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Entry {
    /// True if no reply about the block could be used.
    #[serde(default)]
    pub skipped: bool,
    /// True if the reply was cut and these are the edits before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    pub edits: Vec<Edit>,
}

impl Entry {
    /// The entry of a block without a reply that could be used.
    pub fn skipped() -> Entry {
        Entry { skipped: true, ..Entry::default() }
    }
}

impl Entry {
    /// The stored form.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Applies the entry and returns the refused edits.
    pub fn replay(&self, block: &store::Passage, graph: &mut Graph) -> Vec<String> {
        graph.skipped += usize::from(self.skipped);
        graph.apply(block.document, block.id, &self.edits)
    }
}

/// The graph of a target, as far as it is built.
///
/// # Errors
/// If the store cannot be read.
pub fn graph(corpus: &Corpus, target: &Target) -> Result<Graph> {
    let mut graph = Graph::default();
    for note in corpus.notes_named(Layer::Block, &target.note())? {
        entry(&note.text).replay(&corpus.passage(note.passage)?, &mut graph);
    }
    Ok(graph)
}

/// The entry of a note. An unreadable one, for example from another version, counts as a skipped block.
pub(super) fn entry(text: &str) -> Entry {
    serde_json::from_str(text).unwrap_or_else(|_| Entry::skipped())
}

/// The blocks that have not been read for a target.
pub(super) fn pending(corpus: &Corpus, target: &Target) -> Result<BTreeSet<PassageId>> {
    Ok(corpus.pending(Layer::Block, &target.note())?.into_iter().collect())
}
