//! One search tool by itself, for whoever wants to see what the methods see.

use store::{Corpus, Hit, Layer, fuse};

use crate::error::{MemoryError, Result};
use crate::ingest::embedding_name;
use crate::library::{Indexed, Library};
use crate::session::Session;
use crate::settings::{Method, SearchTool, Settings};

/// The best pages for a query, `k` of the settings at most, with the tool's scores.
///
/// Pages are indexed with their abstracts where all of them have vectors so, as for GAM; else by themselves.
///
/// # Errors
/// [`MemoryError::NotReady`] if the tool needs vectors that pages lack; any other [`MemoryError`].
pub async fn search(query: &str, tool: SearchTool, corpus: &Corpus, session: &Session<'_>) -> Result<Vec<Hit>> {
    let lacking = |indexed| {
        Ok::<_, MemoryError>(corpus.without_vectors(Layer::Page, &embedding_name(session.embedder, indexed))?.len())
    };
    let decorated = lacking(Indexed::HeaderAndContent)? == 0;
    let indexed = if decorated { Indexed::HeaderAndContent } else { Indexed::Content };
    let pending = if decorated { 0 } else { lacking(Indexed::Content)? };
    if pending > 0 && tool != SearchTool::Bm25 {
        let pages = corpus.passages(Layer::Page)?.len();
        // The vectors of pages alone are what the baseline needs.
        let settings = Box::new(Settings { method: Method::Rag, ..session.settings.clone() });
        return Err(MemoryError::NotReady { corpus: corpus.name().to_string(), pending, pages, settings });
    }
    let library = Library::open(corpus, Layer::Page, indexed, session.embedder)?;
    let queries = [query.to_owned()];
    Ok(match tool {
        SearchTool::Bm25 => library.keyword(&queries, session)?,
        SearchTool::Dense => library.vector(&queries, session).await?,
        SearchTool::Fused => {
            let lists = [library.vector(&queries, session).await?, library.keyword(&queries, session)?];
            let mut hits = fuse::rrf(&lists, fuse::RRF_K);
            hits.truncate(session.settings.k);
            hits
        }
    })
}
