//! The tools by name.

use std::fmt;
use std::str::FromStr;

use crate::names;

/// A search tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// BM25 over title and text in one field.
    Bm25,
    /// BM25 over titles and texts in two fields, their scores added.
    Bm25Fields,
    /// BM25 over texts, with titles as the names of documents: the keyword search of corpora.
    Bm25Named,
    /// Vectors, by cosine.
    Dense,
    /// Weights of tokens that query and passage share (BGE-M3's sparse head).
    Sparse,
    /// A vector for each token, compared by MaxSim (BGE-M3's ColBERT head). All vectors are kept in memory: for small
    /// collections.
    Colbert,
    /// `bm25` and `dense`, by their combined scores.
    Fused,
    /// `dense` and `sparse`, by reciprocal rank fusion: two outputs of one embedder.
    FusedSparse,
    /// `bm25`, `dense`, `sparse` and `colbert`, likewise.
    FusedAll,
}

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 9] = [
        Tool::Bm25,
        Tool::Bm25Fields,
        Tool::Bm25Named,
        Tool::Dense,
        Tool::Sparse,
        Tool::Colbert,
        Tool::Fused,
        Tool::FusedSparse,
        Tool::FusedAll,
    ];

    /// Whether it needs vectors.
    pub fn embeds(self) -> bool {
        match self {
            Tool::Bm25 | Tool::Bm25Fields | Tool::Bm25Named => false,
            Tool::Dense | Tool::Sparse | Tool::Colbert => true,
            fused => fused.parts().iter().any(|part| part.embeds()),
        }
    }

    /// The tools whose rankings it fuses; none for a tool that searches itself.
    pub fn parts(self) -> &'static [Tool] {
        match self {
            Tool::Fused => &[Tool::Bm25, Tool::Dense],
            Tool::FusedSparse => &[Tool::Dense, Tool::Sparse],
            Tool::FusedAll => &[Tool::Bm25, Tool::Dense, Tool::Sparse, Tool::Colbert],
            _ => &[],
        }
    }

    /// Whether it needs more than one vector for a text, for which only some embedders have a head.
    pub fn needs_a_head(self) -> bool {
        matches!(self, Tool::Sparse | Tool::Colbert) || self.parts().iter().any(|part| part.needs_a_head())
    }

    fn name(self) -> &'static str {
        match self {
            Tool::Bm25 => "bm25",
            Tool::Bm25Fields => "bm25-fields",
            Tool::Bm25Named => "bm25-named",
            Tool::Dense => "dense",
            Tool::Sparse => "sparse",
            Tool::Colbert => "colbert",
            Tool::Fused => "fused",
            Tool::FusedSparse => "fused-sparse",
            Tool::FusedAll => "fused-all",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        names::value(&Tool::ALL.map(|tool| (tool, tool.name())), typed)
    }
}
