//! A corpus with its indexes open: the search tools of the methods.

use std::collections::BTreeSet;

use calls::Embedder;
use store::{Bm25, Corpus, DenseIndex, Hit, Layer, LexicalIndex, PassageId, fuse};

use crate::core::embed::{Indexed, embedding_name, pieces};
use crate::core::error::Result;
use crate::core::session::Session;
use crate::core::trace::Event;
use crate::grounding;

/// The indexes over one layer of a corpus.
pub struct Library<'a> {
    corpus: &'a Corpus,
    lexical: LexicalIndex,
    dense: DenseIndex,
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

    /// The corpus.
    pub(crate) fn corpus(&self) -> &'a Corpus {
        self.corpus
    }

    /// The keyword tool: all keywords as one BM25 query.
    pub(crate) fn keyword(&self, keywords: &[String], k: usize, session: &Session<'_>) -> Result<Vec<Hit>> {
        let hits = self.lexical.search(&keywords.join(" "), k);
        record("keyword", keywords, &hits, session)?;
        Ok(hits)
    }

    /// The keyword tool for each of several names alone: of the best `k` pages of each those that are about one of the names and not among
    /// `known`, at most `most`.
    pub(crate) fn about_names(
        &self,
        names: &[String],
        (k, most): (usize, usize),
        known: &[PassageId],
        session: &Session<'_>,
    ) -> Result<Vec<PassageId>> {
        let mut hits: Vec<Hit> = Vec::new();
        for hit in names.iter().flat_map(|name| self.lexical.search(name, k)) {
            let is_known = known.contains(&hit.passage) || hits.iter().any(|other| other.passage == hit.passage);
            if hits.len() < most && !is_known && self.is_about_one(names, hit.passage)? {
                hits.push(hit);
            }
        }
        record("keyword", names, &hits, session)?;
        Ok(hits.into_iter().map(|hit| hit.passage).collect())
    }

    fn is_about_one(&self, names: &[String], page: PassageId) -> Result<bool> {
        let heading = self.corpus.document(self.corpus.passage(page)?.document)?.name();
        Ok(grounding::is_about_one(names, &heading, &self.corpus.passage_text(page)?))
    }

    /// The vector tool: the nearest pages of every query; a page's score is the sum of its cosines.
    pub(crate) async fn vector(&self, queries: &[String], k: usize, session: &Session<'_>) -> Result<Vec<Hit>> {
        // A query longer than the embedder's window becomes one query a window.
        let texts = queries.iter().flat_map(|query| pieces(query, session.embedder)).collect();
        let vectors = session.embedder.embed_for(session.tenant, texts).await?;
        let lists = vectors.iter().map(|vector| Ok(self.dense.search(vector, k)?)).collect::<Result<Vec<_>>>()?;
        let mut hits = fuse::sum_scores(&lists);
        hits.truncate(k);
        record("vector", queries, &hits, session)?;
        Ok(hits)
    }

    /// The `k` passages nearest to a query by words and by meaning, by their combined scores ([`fuse::by_score`]).
    pub(crate) async fn hybrid(&self, query: &str, k: usize, session: &Session<'_>) -> Result<Vec<Hit>> {
        let depth = fuse::candidates(k);
        let vectors = session.embedder.embed_for(session.tenant, pieces(query, session.embedder)).await?;
        let lists = vectors.iter().map(|vector| Ok(self.dense.search(vector, depth)?));
        let nearest = fuse::sum_scores(&lists.collect::<Result<Vec<_>>>()?);
        let lexical = self.lexical.search(query, depth);
        let among: BTreeSet<PassageId> = nearest.iter().chain(&lexical).map(|hit| hit.passage).collect();
        let lists = vectors.iter().map(|vector| self.nearest_among(vector, among.len(), &among));
        let dense = fuse::sum_scores(&lists.collect::<Result<Vec<_>>>()?);
        let mut hits = fuse::by_score(&self.lexical.search_among(query, among.len(), &among), &dense, &nearest);
        hits.truncate(k);
        record("hybrid", &[query.to_owned()], &hits, session)?;
        Ok(hits)
    }

    /// The `k` passages of `among` that are nearest to a vector.
    pub(crate) fn nearest_among(&self, vector: &[f32], k: usize, among: &BTreeSet<PassageId>) -> Result<Vec<Hit>> {
        Ok(self.dense.search_among(vector, k, among)?)
    }

    /// The page-index tool: pages by number, those that exist.
    pub(crate) fn page_index(&self, pages: &[i64], k: usize, session: &Session<'_>) -> Result<Vec<Hit>> {
        let known = |id: &i64| self.corpus.passage(PassageId(*id)).is_ok();
        let pages: Vec<i64> = pages.iter().copied().filter(known).take(k).collect();
        let hits: Vec<Hit> = pages.iter().map(|id| Hit { passage: PassageId(*id), score: 0.0 }).collect();
        record("page_index", &pages.iter().map(i64::to_string).collect::<Vec<_>>(), &hits, session)?;
        Ok(hits)
    }
}

fn record(tool: &str, queries: &[String], hits: &[Hit], session: &Session<'_>) -> Result<()> {
    let hits = hits.iter().map(Into::into).collect();
    session.trace.record(Event::Search { tool: tool.to_owned(), queries: queries.to_vec(), hits })
}
