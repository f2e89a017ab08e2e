//! MemCoT (paper 001): a question is answered by searching again and again, with a short-term memory that says what is
//! known and what has been tried.
//!
//! Each of at most J steps *perceives* (equation 8): the K nearest turns are retrieved, **zoom-in** picks the useful ones,
//! **zoom-out** reads W turns on either side of those and picks again. The **judge** (equations 6 and 7) moves what is
//! useful into the semantic memory, says whether that suffices, and if not breaks the query up or prunes what is known
//! from it; queries that found nothing stay in the episodic memory and are not asked again. The **responder** answers
//! from the semantic memory alone.
//!
//! The long-term memory is hybrid search over turns by default (the paper's table 7: 57.73 F1 without a graph, 58.03 with
//! one); [`lightrag`] builds the graph.
//!
//! # Departures
//! * In texts that are no conversations the chunks are passages of whole sentences, at most 200 tokens, and their session
//!   is the page. Turns of conversations are never split.
//! * Retrieval without a graph is dense and BM25, the first 2 K of each fused by reciprocal rank; the paper's is dense
//!   alone.
//! * The captions of pictures are part of a turn only if the source was read with them; the paper always adds them.
//! * Ids are passage ids, and by the schema only those that were shown; the paper numbers every prompt anew, and its code
//!   takes everything when an id is out of range.
//! * Sessions stand in the order of the source; the paper's code sorts them as strings, D10 before D2.
//! * The trajectory shows the newest three failures, and no query that ever failed is asked again; the paper's code keeps
//!   the oldest three. A query has failed if one of the same stems has, in any order; there the strings are compared.
//! * A judge whose new queries have all failed before is asked once more and told to use keywords, at the same
//!   temperature; the paper's code asks five times, ever hotter and shorter, and then gives the question up. If that does
//!   not help, the search ends and what is known is answered from.
//! * Replies that make no sense are asked for once more; then zoom-in and zoom-out have picked nothing and the judge has
//!   found nothing useful. In the paper's code zoom-in asks for ever and the others give the question up.
//! * Every agent samples at the session's temperature and seed; the paper has 1.0, and 0.0 for the judge.
//! * An empty memory never suffices, and nobody answers from it. All J steps search; the paper's code answers at the last
//!   but one.
//! * The fallback, when the responder finds nothing, is the whole text if it fits the context, else what is known and the
//!   turns nearest to the question with their windows, packed by rank. The paper's code always sends the whole text.
//! * The responder is called once, as free text. Its answer is handed on when it is accepted, not while it is written.
//! * Prompts show turns by rank under a budget of tokens; those left out stand in the trace. In the judge's, half of it is
//!   kept for what was just perceived. Strings and lists in replies have greatest lengths.
//! * Panoramic visual grounding needs a vision model. Where it would begin, the trace says so; nothing is pretended.

mod evolution;
mod judge;
pub mod lightrag;
mod long_term;
mod passages;
mod perception;
mod prompts;
mod responder;
mod short_term;
mod timeline;
mod view;
mod visual;

use store::{Corpus, Layer, Writer};

use crate::error::Result;
use crate::ingest::{Missing, Progress, embed, embedding_name};
use crate::library::Indexed;
use crate::session::Session;
use crate::settings::MemcotStore;

pub(crate) use evolution::ask;
pub use timeline::Timeline;

/// What a user may choose about MemCoT.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Turns that each search brings (the paper's K).
    pub k: usize,
    /// Turns on either side of a useful one that zoom-out reads (W: 4 on LoCoMo, 15 on LongMemEval).
    pub window: usize,
    /// Steps of search (J).
    pub steps: usize,
    /// Where turns are searched.
    pub store: MemcotStore,
}

impl Default for Options {
    fn default() -> Self {
        Options { k: 10, window: 4, steps: 8, store: MemcotStore::Hybrid }
    }
}

/// What the method needs that has not been done. Of a document that is not cut yet only the pages can be counted.
pub(crate) fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    let name = embedding_name(session.embedder, Indexed::Content);
    let mut uncut_pages = 0;
    for document in passages::uncut(corpus)? {
        uncut_pages += corpus.passages_of(document, Layer::Page)?.len();
    }
    let vectors = uncut_pages + corpus.without_vectors(Layer::Turn, &name)?.len();
    Ok(match session.settings.memcot.store {
        MemcotStore::Hybrid => Missing { calls: 0, vectors },
        MemcotStore::Lightrag => {
            let graph = lightrag::missing(corpus, session)?;
            Missing { calls: uncut_pages + graph.calls, vectors: vectors + graph.vectors }
        }
    })
}

/// Cuts texts that have no turns, embeds all turns and, if the settings say so, builds the graph.
pub(crate) async fn prepare(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    passages::cut_prose(writer, session, progress)?;
    embed(writer, Layer::Turn, Indexed::Content, session, progress).await?;
    match session.settings.memcot.store {
        MemcotStore::Hybrid => Ok(()),
        MemcotStore::Lightrag => lightrag::build(writer, session, progress).await,
    }
}
