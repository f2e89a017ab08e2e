//! MemCoT (arXiv:2604.08216): a question is answered by iterated search, with a short-term memory of what is known and
//! which queries failed.
//!
//! Each of at most J steps *perceives* (equation 8): it retrieves the K nearest turns, **zoom-in** selects the useful
//! ones, **zoom-out** reads W turns on either side of those and selects again. The **judge** (equations 6 and 7) adds the
//! useful turns to the semantic state memory, decides whether they answer the question, and if not decomposes or prunes
//! the query; queries that found nothing new are recorded in the episodic trajectory memory and not repeated. The
//! **responder** answers from the semantic state memory alone.
//!
//! The long-term memory is hybrid search over turns by default (the paper's table 7: 57.73 F1 without a graph, 58.03 with
//! one); [`lightrag`] builds the graph.
//!
//! # Departures
//! * Prose is cut into passages of whole sentences, at most 200 tokens; their session is the page. Turns of conversations are never split.
//! * Retrieval without a graph is dense and BM25, their scores combined ([`store::fuse::by_score`]); the paper's is dense
//!   alone.
//! * The captions of pictures are part of a turn only if the source was read with them; the paper always adds them.
//! * Ids are passage ids, and by the schema only those that were shown; the paper numbers every prompt anew, and the released code
//!   accepts all items when an id is out of range.
//! * Sessions keep the order of the source; the released code sorts them as strings, D10 before D2.
//! * The trajectory shows the newest three failures and no failed query is repeated; the released code keeps the oldest
//!   three. Queries are compared by their stems in any order; the released code compares strings.
//! * The judge writes up to two queries, as in the released code, and K turns are retrieved for each; the paper gives no number.
//! * A judge that writes no new query, or only such as have failed before, is called once more with a request for keywords,
//!   at the same temperature; the released code retries five times at rising temperature and falling length, and then fails
//!   the question. If the retry does not help, the search ends and the responder answers from the memory.
//! * A judge that can answer but names no turns, while the memory is empty, keeps all turns that were perceived (end of
//!   section 4.2).
//! * An invalid reply is requested once more; then zoom-in and zoom-out select nothing and the judge finds nothing useful.
//!   In the released code zoom-in retries without bound and the others fail the question.
//! * Every agent samples at the session's temperature and seed; the paper has 1.0, and 0.0 for the judge.
//! * The responder never answers from an empty memory. All J steps search; the released code answers at the last but one.
//! * The fallback, where the memory does not lead to an answer, is the whole text if it fits the context, else the memory
//!   and the turns nearest to the question with their windows, packed by rank. The released code always sends the whole
//!   text.
//! * The responder follows the released LoCoMo prompt: computed dates, yes or no, no refusal; after a reply that refuses all the
//!   same ("Not mentioned in the conversation.") the search continues if the judge has written a query, else the fallback
//!   answers. Numbers as words are the data set's style and belong to its answer rules. The paper takes LoCoMo's and
//!   LongMemEval's standard prompts.
//! * In the small profile the responder chooses the answer from the turns of the memory.
//! * The responder is called once, as free text; the released one for LoCoMo writes its reasoning first, as JSON. Its
//!   answer is streamed when it is accepted, not while it is generated.
//! * The three calls of a step run one after the other, as in the paper: each reads what the one before selected.
//! * Zoom-in, zoom-out and the judge read the memory in the same form, so the judge reads the memory and the new turns as two
//!   lists, each in the order of time; in the paper it is one.
//! * Prompts show turns by rank within a token budget and the trace lists those left out. The memory has at most a quarter
//!   of the context; its oldest and its newest turns have their places first. Strings and lists in replies have maximum lengths, which the prompts state in words.
//! * In the paper profile turns of several documents are shown with the folder and the name of their document, beside the time;
//!   the paper has one conversation.
//! * The fields for reasoning are part of the JSON, as in the paper; there is no thought before it.
//! * Zoom-out cannot be switched off, as the paper's ablation does.
//! * Panoramic visual grounding needs a vision model and is missing; the trace records each turn with a picture.

mod agent;
mod evolution;
mod judge;
pub mod lightrag;
mod long_term;
mod options;
mod passages;
mod perception;
mod prompts;
mod responder;
mod short_term;
mod timeline;
mod view;
mod visual;

use futures_util::future::LocalBoxFuture;
use store::{Corpus, Layer, Writer};

use crate::core::about::{About, Paper};
use crate::core::access::Access;
use crate::core::embed::{Indexed, embed, without_vectors};
use crate::core::error::Result;
use crate::core::graph_view::GraphKind;
use crate::core::method::{Method, Settings};
use crate::core::options::MethodOptions;
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;

pub use options::{MemcotStore, Options};
pub use timeline::Timeline;

/// The method.
pub struct Memcot;

static ABOUT: About = About {
    paper: Some(Paper {
        title: "MemCoT: Test-Time Scaling through Memory-Driven Chain-of-Thought",
        authors: "Haodong Lei, Junming Liu, Yirong Chen, Ding Wang, Hongsong Wang",
        arxiv: Some("2604.08216"),
    }),
    module: include_str!("mod.rs"),
};

impl Method for Memcot {
    fn name(&self) -> &'static str {
        "memcot"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn own_options(&self) -> MethodOptions {
        MethodOptions::of::<Options>(options::OPTIONS)
    }

    fn preparation_flags(&self, settings: &Settings) -> String {
        format!("--memcot-store {}", settings.options::<Options>().store)
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        missing(corpus, session)
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(prepare(writer, session, progress))
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(async move { evolution::ask(question, &corpus, session).await })
    }

    fn graph(&self) -> Option<&'static GraphKind> {
        Some(&lightrag::GRAPH)
    }
}

/// What the method needs that has not been done. Of a document that is not cut yet only the pages can be counted.
fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    let mut uncut_pages = 0;
    for document in passages::uncut(corpus)? {
        uncut_pages += corpus.passages_of(document, Layer::Page)?.len();
    }
    let vectors = uncut_pages + without_vectors(corpus, Layer::Turn, Indexed::Content, session)?;
    Ok(match session.settings.options::<Options>().store {
        MemcotStore::Hybrid => Missing { calls: 0, vectors },
        MemcotStore::Lightrag => {
            let graph = lightrag::missing(corpus, session)?;
            Missing { calls: uncut_pages + graph.calls, vectors: vectors + graph.vectors }
        }
    })
}

/// Cuts texts that have no turns, embeds all turns and, if the settings say so, builds the graph.
async fn prepare(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    passages::cut_prose(writer, session, progress)?;
    embed(writer, Layer::Turn, Indexed::Content, session, progress).await?;
    match session.settings.options::<Options>().store {
        MemcotStore::Hybrid => Ok(()),
        MemcotStore::Lightrag => lightrag::build(writer, session, progress).await,
    }
}
