//! One search tool alone, to inspect the results that methods get.

use store::{Corpus, Hit, Layer};

use crate::core::embed::{Indexed, embedding_name};
use crate::core::error::{MemoryError, Result};
use crate::core::library::Library;
use crate::core::named::named;
use crate::core::session::Session;

/// How pages are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTool {
    /// By their words.
    Bm25,
    /// By their meaning.
    Dense,
    /// Both, by their combined scores.
    Fused,
}

named!(SearchTool: Bm25 = "bm25", Dense = "dense", Fused = "fused");

impl SearchTool {
    /// The best passages of a library for a query, at most `k`, with the tool's scores.
    pub(crate) async fn find(
        self,
        query: &str,
        k: usize,
        library: &Library<'_>,
        session: &Session<'_>,
    ) -> Result<Vec<Hit>> {
        let queries = [query.to_owned()];
        match self {
            SearchTool::Bm25 => library.keyword(&queries, k, session),
            SearchTool::Dense => library.vector(&queries, k, session).await,
            SearchTool::Fused => library.hybrid(query, k, session).await,
        }
    }
}

/// The best pages for a query, at most `k`, with the tool's scores.
///
/// Pages are indexed with their abstracts if all of them have such vectors, as for GAM; otherwise alone.
///
/// # Errors
/// [`MemoryError::NoVectors`] if the tool needs vectors that pages lack; any other [`MemoryError`].
pub async fn search(
    query: &str,
    tool: SearchTool,
    k: usize,
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Vec<Hit>> {
    let lacking = |indexed| {
        Ok::<_, MemoryError>(corpus.without_vectors(Layer::Page, &embedding_name(session.embedder, indexed))?.len())
    };
    let decorated = lacking(Indexed::HeaderAndContent)? == 0;
    let indexed = if decorated { Indexed::HeaderAndContent } else { Indexed::Content };
    let pending = if decorated { 0 } else { lacking(Indexed::Content)? };
    if pending > 0 && tool != SearchTool::Bm25 {
        let pages = corpus.count(Layer::Page)?;
        return Err(MemoryError::NoVectors { corpus: corpus.name().to_string(), pending, pages });
    }
    let library = Library::open(corpus, Layer::Page, indexed, session.embedder)?;
    tool.find(query, k, &library, session).await
}
