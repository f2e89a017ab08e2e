//! A corpus with its indexes open: the tools that a researcher has.

use std::collections::BTreeSet;

use calls::Embedder;
use store::{Bm25, Corpus, DenseIndex, Hit, IndexText, Layer, LexicalIndex, PassageId, fuse};

use crate::error::Result;
use crate::ingest::{embedding_name, pieces};
use crate::session::Session;
use crate::trace::Event;

/// The note in which a page's abstract is kept; it is the page's header as well.
pub(crate) const ABSTRACT: &str = "abstract";

/// How many times further down than is wanted two lists are read before they are fused. Deeper down they agree on what is
/// middling for both: of LoCoMo's evidence 10 turns hold .676 so, .631 with lists of 100, and .597 and .565 by words and
/// by meaning alone.
const HYBRID_DEPTH: usize = 2;

/// The indexes over one layer of a corpus.
pub struct Library<'a> {
    corpus: &'a Corpus,
    lexical: LexicalIndex,
    dense: DenseIndex,
}

/// What is indexed of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexed {
    Content,
    /// GAM: the header decorates the page.
    HeaderAndContent,
}

impl Indexed {
    pub fn text(self) -> IndexText<'static> {
        match self {
            Indexed::Content => IndexText::Content,
            Indexed::HeaderAndContent => IndexText::NoteAndContent(ABSTRACT),
        }
    }
}

impl<'a> Library<'a> {
    /// Opens the indexes.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn open(
        corpus: &'a Corpus,
        layer: Layer,
        indexed: Indexed,
        embedder: &dyn Embedder,
    ) -> Result<Library<'a>> {
        let lexical = LexicalIndex::open(corpus, layer, indexed.text(), Bm25::default())?;
        let dense = DenseIndex::open(corpus, layer, &embedding_name(embedder, indexed))?;
        Ok(Library { corpus, lexical, dense })
    }

    /// The corpus itself.
    pub(crate) fn corpus(&self) -> &'a Corpus {
        self.corpus
    }

    /// The keyword tool: all keywords as one BM25 query.
    pub(crate) fn keyword(&self, keywords: &[String], session: &Session<'_>) -> Result<Vec<Hit>> {
        let hits = self.lexical.search(&keywords.join(" "), session.settings.k);
        record("keyword", keywords, &hits, session)?;
        Ok(hits)
    }

    /// The vector tool: every query brings its nearest pages; a page scores as the sum of its cosines.
    pub(crate) async fn vector(&self, queries: &[String], session: &Session<'_>) -> Result<Vec<Hit>> {
        let k = session.settings.k;
        // A query longer than the embedder's window is as many queries as it has windows.
        let texts = queries.iter().flat_map(|query| pieces(query, session.embedder)).collect();
        let vectors = session.embedder.embed(texts).await?;
        let lists = vectors.iter().map(|vector| Ok(self.dense.search(vector, k)?)).collect::<Result<Vec<_>>>()?;
        let mut hits = fuse::sum_scores(&lists);
        hits.truncate(k);
        record("vector", queries, &hits, session)?;
        Ok(hits)
    }

    /// The `k` passages nearest to a query by words and by meaning, their ranks fused.
    pub(crate) async fn hybrid(&self, query: &str, k: usize, session: &Session<'_>) -> Result<Vec<Hit>> {
        let depth = HYBRID_DEPTH * k;
        let vectors = session.embedder.embed(pieces(query, session.embedder)).await?;
        let lists = vectors.iter().map(|vector| Ok(self.dense.search(vector, depth)?));
        let dense = fuse::sum_scores(&lists.collect::<Result<Vec<_>>>()?);
        let mut hits = fuse::rrf(&[dense, self.lexical.search(query, depth)], fuse::RRF_K);
        hits.truncate(k);
        record("hybrid", &[query.to_owned()], &hits, session)?;
        Ok(hits)
    }

    /// The `k` of some passages that are nearest to a vector.
    pub(crate) fn nearest_among(&self, vector: &[f32], k: usize, among: &BTreeSet<PassageId>) -> Result<Vec<Hit>> {
        Ok(self.dense.search_among(vector, k, among)?)
    }

    /// The page-index tool: the pages themselves, as far as they exist.
    pub(crate) fn page_index(&self, pages: &[i64], session: &Session<'_>) -> Result<Vec<Hit>> {
        let known = |id: &i64| self.corpus.passage(PassageId(*id)).is_ok();
        let pages: Vec<i64> = pages.iter().copied().filter(known).take(session.settings.k).collect();
        let hits: Vec<Hit> = pages.iter().map(|id| Hit { passage: PassageId(*id), score: 0.0 }).collect();
        record("page_index", &pages.iter().map(i64::to_string).collect::<Vec<_>>(), &hits, session)?;
        Ok(hits)
    }
}

fn record(tool: &str, queries: &[String], hits: &[Hit], session: &Session<'_>) -> Result<()> {
    let hits = hits.iter().map(Into::into).collect();
    session.trace.record(Event::Search { tool: tool.to_owned(), queries: queries.to_vec(), hits })
}
