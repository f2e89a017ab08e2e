//! Where do the tools that methods search with find what is wanted?
//!
//! BM25 is the store's own index. Vectors are compared one by one, which is what the store's index does up to 20,000 of
//! them. Each collection is searched by itself, and every tool hands out its first [`DEPTH`] passages.

mod dense;
mod published;
mod rankings;
mod summary;
mod tool;

use std::collections::HashMap;

use calls::{Embedder, Wanted};
use store::fuse::{RRF_K, rrf, sum_scores};
use store::{Bm25, Hit, LexicalIndex, PassageId};

pub use published::{PUBLISHED, Published};
pub use rankings::{Ranked, Rankings};
pub use summary::{Row, Summary};
pub use tool::Tool;

use crate::score::Found;
use crate::{Collection, Dataset, Error, Passage, Query, Result};
use dense::{Vectors, cosine, lexical_match, max_sim};

/// Passages that a tool hands out; what stands below counts as not found.
pub const DEPTH: usize = 100;

/// What is compared.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    pub tools: &'a [Tool],
    pub bm25: Bm25,
    /// Needed by every tool that [embeds](Tool::embeds).
    pub embedder: Option<&'a dyn Embedder>,
}

/// Searches all of a data set. `progress` is told how many of how many texts are embedded.
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
    let mut rankings = Rankings { tools: comparison.tools.to_vec(), ..Rankings::default() };
    for collection in &data.collections {
        let mut report = |embedded| progress(done + embedded, texts);
        let indexes = Indexes::of(collection, comparison, &mut report).await?;
        done += collection.passages.len() + collection.queries.len();
        rankings.cut_passages += indexes.passages.cut;
        rankings.cut_queries += indexes.queries.cut;
        for (number, query) in collection.queries.iter().enumerate() {
            let found = comparison.tools.iter().map(|tool| places(query, &indexes.hits(*tool, number, query)));
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

/// What is searched of one collection. Without a tool that embeds, there are no vectors.
struct Indexes {
    words: LexicalIndex,
    /// Titles and texts apart.
    fields: [LexicalIndex; 2],
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
        let (mut passages, mut queries) = (Vectors::default(), Vectors::default());
        if comparison.tools.iter().any(|tool| tool.embeds()) {
            let embedder = comparison.embedder.ok_or(Error::NoEmbedder)?;
            let heads = comparison.tools.iter().any(|tool| tool.needs_a_head());
            let wanted = if heads { Wanted::All } else { Wanted::Dense };
            passages = Vectors::of(&whole, embedder, wanted, progress).await?;
            let questions: Vec<&String> = collection.queries.iter().map(|query| &query.text).collect();
            queries = Vectors::of(&questions, embedder, wanted, &mut |done| progress(whole.len() + done)).await?;
            for tool in comparison.tools {
                let has = |vectors: &Vectors| match tool {
                    Tool::Sparse => vectors.all(|said| said.sparse.is_some()),
                    Tool::Colbert => vectors.all(|said| said.colbert.is_some()),
                    _ => true,
                };
                if !has(&passages) || !has(&queries) {
                    return Err(Error::NoHead { tool: *tool, embedder: embedder.name().to_owned() });
                }
            }
        }
        Ok(Indexes { words, fields: [titles, texts], passages, queries })
    }

    /// What a tool finds for the query with this number.
    fn hits(&self, tool: Tool, number: usize, query: &Query) -> Vec<Hit> {
        match tool {
            Tool::Bm25 => self.words.search(&query.text, DEPTH),
            Tool::Bm25Fields => {
                first(sum_scores(&self.fields.each_ref().map(|field| field.search(&query.text, usize::MAX))))
            }
            Tool::Dense => {
                let query = &self.queries.get(number).dense;
                self.passages.nearest(DEPTH, |passage| cosine(query, &passage.dense))
            }
            // Whether there is such a head was seen when the texts were embedded.
            Tool::Sparse => {
                let query = self.queries.get(number).sparse.as_deref().unwrap_or_default();
                self.passages
                    .nearest(DEPTH, |passage| lexical_match(query, passage.sparse.as_deref().unwrap_or_default()))
            }
            Tool::Colbert => {
                let query = self.queries.get(number).colbert.as_deref().unwrap_or_default();
                self.passages.nearest(DEPTH, |passage| max_sim(query, passage.colbert.as_deref().unwrap_or_default()))
            }
            Tool::Fused => first(rrf(&[Tool::Bm25, Tool::Dense].map(|tool| self.hits(tool, number, query)), RRF_K)),
        }
    }
}

fn lexical<'a>(texts: impl Iterator<Item = &'a String>, parameters: Bm25) -> LexicalIndex {
    LexicalIndex::build((0..).map(PassageId).zip(texts.map(String::as_str)), parameters)
}

fn first(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.truncate(DEPTH);
    hits
}

/// Where the passages that a query wants stand among the hits.
fn places(query: &Query, hits: &[Hit]) -> Vec<Found> {
    let ranks: HashMap<i64, usize> = hits.iter().map(|hit| hit.passage.0).zip(1..).collect();
    let found = |place| i64::try_from(place).ok().and_then(|id| ranks.get(&id)).copied();
    query.wanted.iter().map(|wanted| Found { grade: wanted.grade, rank: found(wanted.place) }).collect()
}
