//! Retrieval-augmented generation, the baseline: an answer from the nearest pages.
//!
//! Pages are searched by words and by meaning, and their scores are combined ([`store::fuse::by_score`]), or by one of both alone
//! (`search`); a page is indexed alone, without a header. The papers' presets search by meaning alone, as the baselines of GAM
//! (the top 5 pages of 2,048 tokens) and ComoRAG (as many pages of 512 tokens as 6,000 tokens hold) do; MemCoT's paper does not
//! describe its own.
//!
//! A model with an adapter for reading is shown the best blocks of four times as many pages instead, and of those about the names
//! in the best of these blocks: a question about two documents often shares no word with the second. The latter pages are found
//! by words, so a search by meaning alone adds none.

use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use store::{Corpus, Layer, PassageId, Writer};

use crate::core::about::About;
use crate::core::access::Access;
use crate::core::answer;
use crate::core::embed::{Indexed, embed, without_vectors};
use crate::core::error::Result;
use crate::core::library::Library;
use crate::core::method::Method;
use crate::core::options::{MethodOptions, OptionKind, OptionSpec, Stage};
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::quotable::Quotable;
use crate::core::search::SearchTool;
use crate::core::session::Session;
use crate::core::span;
use crate::grounding;

/// The method.
pub struct Rag;

/// How many times [`Options::k`] pages a model with an adapter for reading chooses its blocks from: a block is found by words that
/// its page has few of.
const READ_PAGES: usize = 4;

/// Pages that each name of the best block is looked up in, and the most that are added; chosen on HotpotQA by a prototype
/// that was not kept.
const OF_NAME: usize = 2;
const MOST_OF_NAMES: usize = 8;

/// Options of retrieval-augmented generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Pages in the prompt.
    pub k: usize,
    /// How they are found; BM25 needs no vectors.
    pub search: SearchTool,
}

impl Default for Options {
    fn default() -> Self {
        Options { k: 5, search: SearchTool::Fused }
    }
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::K,
    OptionSpec {
        name: "search",
        value_name: "TOOL",
        kind: OptionKind::Name(&["fused", "dense", "bm25"]),
        stage: Stage::Prepare,
        required_with: None,
        help: "How rag searches pages: fused (by words and by meaning), dense (by meaning alone, as the papers' baselines) \
               or bm25 (by words alone, for which ingest computes no vectors)",
    },
];

static ABOUT: About = About { paper: None, module: include_str!("mod.rs") };

impl Method for Rag {
    fn name(&self) -> &'static str {
        "rag"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn own_options(&self) -> MethodOptions {
        MethodOptions::of::<Options>(OPTIONS)
    }

    fn answers_in_part(&self) -> bool {
        true
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        let vectors = match session.settings.options::<Options>().search {
            SearchTool::Bm25 => 0,
            _ => without_vectors(corpus, Layer::Page, Indexed::Content, session)?,
        };
        Ok(Missing { calls: 0, vectors })
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match session.settings.options::<Options>().search {
                SearchTool::Bm25 => Ok(()),
                _ => embed(writer, Layer::Page, Indexed::Content, session, progress).await,
            }
        })
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(async move { ask(question, &corpus, session).await })
    }
}

/// Answers a question from the nearest pages.
async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let Options { k, search } = session.settings.options();
    let query = session.settings.search_query.as_deref().unwrap_or(question);
    let reads_blocks = span::reads_blocks(session);
    let library = Library::open(corpus, Layer::Page, Indexed::Content, session.embedder)?;
    let depth = if reads_blocks { k * READ_PAGES } else { k };
    let hits = search.find(query, depth, &library, session).await?;
    let mut pages: Vec<PassageId> = hits.iter().map(|hit| hit.passage).collect();
    // With fewer pages than were searched for there are no others.
    if reads_blocks && search != SearchTool::Dense && pages.len() == depth {
        pages.extend(of_names(question, &pages, &library, session)?);
    }
    let (ask, shown) = answer::question_on_pages(question, &pages[..k.min(pages.len())], "search", corpus, session)?;
    let pages = if reads_blocks { pages } else { shown };
    let answer = answer::respond(question, ask, &pages, corpus, session).await?;
    Ok(Answer { searched_with: session.settings.search_query.clone(), ..answer })
}

/// Pages that are about a name of the best block of those that were found, and that were not found.
fn of_names(
    question: &str,
    found: &[PassageId],
    library: &Library<'_>,
    session: &Session<'_>,
) -> Result<Vec<PassageId>> {
    let names = grounding::leading_names(question, &Quotable::of_pages(found, library.corpus())?.headed());
    if names.is_empty() {
        return Ok(Vec::new());
    }
    library.about_names(&names, (OF_NAME, MOST_OF_NAMES), found, session)
}
