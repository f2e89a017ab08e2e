//! Published results for the same data.

use serde::Serialize;

use super::Tool;
use crate::Suite;

/// A number from a paper or a leaderboard.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    #[serde(skip)]
    pub suite: Suite,
    /// The number of queries in the mean.
    #[serde(skip)]
    pub queries: usize,
    pub tool: Tool,
    /// The embedder, without its precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<&'static str>,
    pub metric: &'static str,
    pub value: f64,
    /// Its source, and the differences from our set-up.
    pub source: &'static str,
}

/// All published numbers for data that we can read.
pub const PUBLISHED: [Published; 4] = [
    scifact(
        Tool::Bm25,
        None,
        0.6789,
        "Anserini's regression beir-v1.0.0-scifact-flat: k1 = 0.9, b = 0.4, Porter's stemmer where ours is Porter2, \
         lengths rounded to a byte",
    ),
    scifact(
        Tool::Bm25Fields,
        None,
        0.6647,
        "Anserini's regression beir-v1.0.0-scifact-multifield: the same, title and text as two fields",
    ),
    scifact(
        Tool::Bm25Fields,
        None,
        0.665,
        "BEIR (Thakur et al. 2021), table 2: Elasticsearch, title and text as two fields",
    ),
    scifact(
        Tool::Dense,
        Some("all-minilm-l6-v2"),
        0.6451,
        "MTEB leaderboard (Muennighoff et al. 2022): sentence-transformers, texts cut to 256 tokens as here",
    ),
];

/// The nDCG@10 of SciFact's test queries.
const fn scifact(tool: Tool, embedder: Option<&'static str>, value: f64, source: &'static str) -> Published {
    Published { suite: Suite::SciFact, queries: 300, tool, embedder, metric: "ndcg@10", value, source }
}
