//! The long-term memory M: retrieval of turns.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use store::{Corpus, Hit, Layer};

use super::lightrag::Lightrag;
use super::options::{MemcotStore, Options};
use super::timeline::Timeline;
use crate::core::embed::Indexed;
use crate::core::error::Result;
use crate::core::library::Library;
use crate::core::session::Session;

/// A corpus with its turns in order and their indexes.
pub(super) struct LongTerm<'a> {
    pub library: Library<'a>,
    pub timeline: Timeline,
    graph: Option<Lightrag>,
}

impl<'a> LongTerm<'a> {
    pub fn open(corpus: &'a Corpus, session: &Session<'_>) -> Result<LongTerm<'a>> {
        let library = Library::open(corpus, Layer::Turn, Indexed::Content, session.embedder)?;
        let graph = match session.settings.options::<Options>().store {
            MemcotStore::Hybrid => None,
            MemcotStore::Lightrag => Some(Lightrag::open(corpus, session)?),
        };
        Ok(LongTerm { library, timeline: Timeline::of(corpus)?, graph })
    }

    pub fn corpus(&self) -> &'a Corpus {
        self.library.corpus()
    }

    async fn search(&self, query: &str, session: &Session<'_>) -> Result<Vec<Hit>> {
        let k = session.settings.options::<Options>().k;
        match &self.graph {
            None => self.library.hybrid(query, k, session).await,
            Some(graph) => graph.search(query, k, &self.library, session).await,
        }
    }

    /// The K nearest turns of every query, each turn once, the best of all queries first.
    pub async fn retrieve(&self, queries: &[String], session: &Session<'_>) -> Result<Vec<usize>> {
        let lists = try_join_all(queries.iter().map(|query| self.search(query, session))).await?;
        let deepest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let mut seen = BTreeSet::new();
        let by_rank = (0..deepest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)));
        let places = by_rank.filter_map(|hit| self.timeline.place(hit.passage));
        Ok(places.filter(|place| seen.insert(*place)).collect())
    }
}
