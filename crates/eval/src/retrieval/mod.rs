//! Compares the search tools of the methods: where does each rank the wanted passages?
//!
//! BM25 is the store's own index. Vectors are compared exhaustively, as the store's index does up to 20,000 of
//! them. Each collection is searched alone, and every tool returns its first [`DEPTH`] passages; one that fuses others
//! returns, for each reported depth k, its first k from the first of their lists: so `fused` equals the result of a
//! method that requests k passages.

mod dense;
mod published;
mod rankings;
mod summary;
mod tool;

use std::collections::BTreeSet;
use std::ops::Range;

use calls::{Embedder, Heads};
use store::fuse::{RRF_K, by_score, candidates, rrf, sum_scores};
use store::{Bm25, Hit, LexicalIndex, PassageId};

pub use published::{PUBLISHED, Published};
pub use rankings::{Column, Ranked, Rankings};
pub use summary::{Row, Summary};
pub use tool::Tool;

use crate::score::Found;
use crate::{Collection, Dataset, Error, Passage, Query, Result};
use dense::{Vectors, cosine, lexical_match, max_sim};

/// Depth of the rankings; passages below count as not found.
pub const DEPTH: usize = 100;
/// The depth at which nDCG is reported.
pub const NDCG_DEPTH: usize = 10;
/// The depth of lists before fusion by reciprocal ranks, as a multiple of the requested depth.
pub(crate) const FUSED_DEPTH: usize = 2;

/// The parameters of a comparison.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    pub tools: &'a [Tool],
    pub bm25: Bm25,
    /// Needed by every tool that [embeds](Tool::embeds).
    pub embedder: Option<&'a dyn Embedder>,
    /// The depths at which numbers are reported beside [`NDCG_DEPTH`].
    pub depths: &'a [usize],
    /// Passages on either side of a hit that count as found too, besides none.
    pub windows: &'a [usize],
}

impl Comparison<'_> {
    /// All rankings to compute.
    fn columns(&self) -> Vec<Column> {
        let mut depths: Vec<usize> = self.depths.iter().copied().chain([NDCG_DEPTH]).collect();
        depths.sort_unstable();
        depths.dedup();
        let mut columns = Vec::new();
        for window in [0].into_iter().chain(self.windows.iter().copied()) {
            for tool in self.tools.iter().copied() {
                let ks = if tool.parts().is_empty() { vec![None] } else { depths.iter().copied().map(Some).collect() };
                columns.extend(ks.into_iter().map(|k| Column { tool, k, window }));
            }
        }
        columns
    }
}

/// Searches all of a data set. `progress` receives the number of embedded texts and of all texts.
///
/// # Errors
/// [`Error::NoEmbedder`], [`Error::Embed`].
pub async fn rank(
    data: &Dataset,
    comparison: Comparison<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Rankings> {
    let texts = data.collections.iter().map(|collection| collection.passages.len() + collection.queries.len()).sum();
    let mut done = 0;
    let columns = comparison.columns();
    let mut rankings = Rankings { columns, ..Rankings::default() };
    for collection in &data.collections {
        let mut report = |embedded| progress(done + embedded, texts);
        let indexes = Indexes::of(collection, comparison, &mut report).await?;
        done += collection.passages.len() + collection.queries.len();
        rankings.cut_passages += indexes.passages.cut;
        rankings.cut_queries += indexes.queries.cut;
        for (number, query) in collection.queries.iter().enumerate() {
            let mut searched: Vec<(Column, Vec<Hit>)> = Vec::new();
            for column in rankings.columns.iter().filter(|column| column.window == 0) {
                let depth = column.k.unwrap_or(DEPTH);
                searched.push((*column, indexes.hits(column.tool, number, query, depth)));
            }
            let found = rankings.columns.iter().map(|column| {
                let hits = searched.iter().find(|(of, _)| (of.tool, of.k) == (column.tool, column.k));
                places(query, hits.map_or(&[], |(_, hits)| hits), column.window, &collection.sessions)
            });
            rankings.queries.push(Ranked {
                collection: collection.name.clone(),
                query: query.id.clone(),
                groups: query.groups.clone(),
                wanted: query.wanted.iter().map(|wanted| collection.passages[wanted.place].id.clone()).collect(),
                found: found.collect(),
            });
        }
    }
    Ok(rankings)
}

/// The indexes of one collection. Without a tool that embeds, there are no vectors.
struct Indexes {
    words: LexicalIndex,
    /// Titles and texts separately.
    fields: [LexicalIndex; 2],
    /// Titles as the names of documents.
    named: LexicalIndex,
    passages: Vectors,
    queries: Vectors,
}

impl Indexes {
    async fn of(
        collection: &Collection,
        comparison: Comparison<'_>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Indexes> {
        let whole: Vec<String> = collection.passages.iter().map(Passage::whole).collect();
        let words = lexical(whole.iter(), comparison.bm25);
        let titles = lexical(collection.passages.iter().map(|passage| &passage.title), comparison.bm25);
        let texts = lexical(collection.passages.iter().map(|passage| &passage.text), comparison.bm25);
        let numbered = (0..).map(PassageId).zip(&collection.passages);
        let named = numbered.map(|(id, passage)| (id, passage.title.as_str(), passage.text.as_str()));
        let named = LexicalIndex::build_named(named, comparison.bm25);
        let (mut passages, mut queries) = (Vectors::default(), Vectors::default());
        if comparison.tools.iter().any(|tool| tool.embeds()) {
            let embedder = comparison.embedder.ok_or(Error::NoEmbedder)?;
            let heads = comparison.tools.iter().any(|tool| tool.needs_a_head());
            let wanted = if heads { Heads::All } else { Heads::Dense };
            passages = Vectors::of(&whole, embedder, wanted, progress).await?;
            let questions: Vec<&String> = collection.queries.iter().map(|query| &query.text).collect();
            queries = Vectors::of(&questions, embedder, wanted, &mut |done| progress(whole.len() + done)).await?;
            for tool in comparison.tools {
                let compares = |head| *tool == head || tool.parts().contains(&head);
                let has = |vectors: &Vectors| {
                    (!compares(Tool::Sparse) || vectors.all(|vector| vector.sparse.is_some()))
                        && (!compares(Tool::Colbert) || vectors.all(|vector| vector.colbert.is_some()))
                };
                if !has(&passages) || !has(&queries) {
                    return Err(Error::NoHead { tool: *tool, embedder: embedder.name().to_owned() });
                }
            }
        }
        Ok(Indexes { words, fields: [titles, texts], named, passages, queries })
    }

    /// The first `depth` that a tool finds for the query with this number.
    fn hits(&self, tool: Tool, number: usize, query: &Query, depth: usize) -> Vec<Hit> {
        let mut hits = match tool {
            Tool::Bm25 => self.words.search(&query.text, depth),
            Tool::Bm25Named => self.named.search(&query.text, depth),
            Tool::Bm25Fields => sum_scores(&self.fields.each_ref().map(|field| field.search(&query.text, usize::MAX))),
            Tool::Dense => {
                let query = &self.queries.get(number).dense;
                self.passages.nearest(depth, |passage| cosine(query, &passage.dense))
            }
            // The presence of such a head was checked when the texts were embedded.
            Tool::Sparse => {
                let query = self.queries.get(number).sparse.as_deref().unwrap_or_default();
                self.passages
                    .nearest(depth, |passage| lexical_match(query, passage.sparse.as_deref().unwrap_or_default()))
            }
            Tool::Colbert => {
                let query = self.queries.get(number).colbert.as_deref().unwrap_or_default();
                self.passages.nearest(depth, |passage| max_sim(query, passage.colbert.as_deref().unwrap_or_default()))
            }
            Tool::Fused => {
                let [words, nearest] =
                    [Tool::Bm25, Tool::Dense].map(|part| self.hits(part, number, query, candidates(depth)));
                let among: BTreeSet<PassageId> = words.iter().chain(&nearest).map(|hit| hit.passage).collect();
                let words = self.words.search_among(&query.text, among.len(), &among);
                let vector = &self.queries.get(number).dense;
                let mut meaning = self.passages.nearest(usize::MAX, |passage| cosine(vector, &passage.dense));
                meaning.retain(|hit| among.contains(&hit.passage));
                by_score(&words, &meaning, &nearest)
            }
            Tool::FusedSparse | Tool::FusedAll => {
                let part = |tool: &Tool| self.hits(*tool, number, query, FUSED_DEPTH * depth);
                rrf(&tool.parts().iter().map(part).collect::<Vec<_>>(), RRF_K)
            }
        };
        hits.truncate(depth);
        hits
    }
}

fn lexical<'a>(texts: impl Iterator<Item = &'a String>, parameters: Bm25) -> LexicalIndex {
    LexicalIndex::build((0..).map(PassageId).zip(texts.map(String::as_str)), parameters)
}

/// The ranks of a query's relevant passages among the hits: the first that is the passage itself, or at most `window`
/// passages away from it in its session.
fn places(query: &Query, hits: &[Hit], window: usize, sessions: &[Range<usize>]) -> Vec<Found> {
    let near = |wanted: usize| {
        let session = sessions.iter().find(|session| session.contains(&wanted));
        let is_near = move |hit: &Hit| {
            let place = usize::try_from(hit.passage.0).unwrap_or(usize::MAX);
            place == wanted
                || (place.abs_diff(wanted) <= window && session.is_some_and(|session| session.contains(&place)))
        };
        hits.iter().position(is_near).map(|above| above + 1)
    };
    query.wanted.iter().map(|wanted| Found { grade: wanted.grade, rank: near(wanted.place) }).collect()
}
