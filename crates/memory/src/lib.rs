//! The papers' methods over calls and a store: what to ask a language model, in which order, and what to keep.
//!
//! One folder a paper, each readable beside its PDF: [`gam`], [`memcot`], [`comorag`], [`mindgraph`]. [`rag`] and
//! [`direct`] are the baselines that papers
//! compare with. What methods share is a plain function in a file of its own: cutting ([`paging`]), indexing, searching,
//! packing evidence under a budget, answering, citing. There is no framework: a loop is a loop.
//!
//! # Invariants
//! * What a language model says becomes memory only if it is a reply. The text of an error never does.
//! * A prompt that does not fit is an error or packed by rank with what was left out in the trace; nothing is cut off
//!   silently.
//! * A citation is a span of a source, chosen mechanically, so that its quote is there to the byte.
//!
//! Not here: bytes on disk and distances (`store`), tokens and devices (`engine`), flags and colours (`cli`).

pub mod comorag;
pub mod direct;
pub mod drawing;
pub mod gam;
pub mod memcot;
pub mod mindgraph;
pub mod paging;
pub mod rag;

mod about;
mod access;
mod answer;
mod cite;
mod error;
mod evidence;
mod ingest;
mod library;
mod options;
mod prefixes;
mod prompt;
mod random;
mod search;
mod session;
mod settings;
mod trace;

use access::Access;

pub use answer::Answer;
pub use cite::Citation;
pub use error::{MemoryError, Result};
pub use ingest::{Added, Missing, Progress, add, missing, prepare};
pub use library::Library;
pub use random::Random;
pub use search::search;
pub use session::Session;
pub use settings::{Layout, MemcotStore, Method, OutputForm, SearchTool, Settings};
pub use trace::{Endings, Event, HitRecord, Trace};

/// Answers a question from a corpus by the method of the settings.
///
/// # Errors
/// [`MemoryError::EmptyQuestion`], [`MemoryError::EmptyCorpus`]; [`MemoryError::NotReady`] if [`prepare`] has not done
/// all that the method needs; any other [`MemoryError`].
pub async fn ask(question: &str, corpus: &store::Corpus, session: &Session<'_>) -> Result<Answer> {
    check_ready(question, corpus, session)?;
    prefixes::bring(corpus, session).await?;
    let answer = match session.settings.method {
        Method::Gam => gam::ask(question, corpus, session).await,
        Method::Memcot => memcot::ask(question, corpus, session).await,
        Method::Comorag => comorag::ask(question, corpus, session).await,
        Method::Mindgraph => mindgraph::ask(question, Access::Read(corpus), session).await,
        Method::Rag => rag::ask(question, corpus, session).await,
        Method::Direct => direct::ask(question, corpus, session).await,
    };
    end(corpus, session, answer).await
}

/// As [`ask`], and keeps what the method makes of the corpus on the way for the next time: MindGraph's reports.
///
/// # Errors
/// As [`ask`].
pub async fn ask_and_keep(question: &str, writer: &mut store::Writer, session: &Session<'_>) -> Result<Answer> {
    match session.settings.method {
        Method::Mindgraph => {
            check_ready(question, writer, session)?;
            prefixes::bring(writer, session).await?;
            let answer = mindgraph::ask(question, Access::Write(writer), session).await;
            end(writer, session, answer).await
        }
        _ => ask(question, writer, session).await,
    }
}

/// What is done when a question is answered, or not.
async fn end(corpus: &store::Corpus, session: &Session<'_>, answer: Result<Answer>) -> Result<Answer> {
    let kept = if answer.is_ok() { prefixes::keep(corpus, session).await } else { Ok(()) };
    session.caller.close_workflow(session.workflow);
    kept.and(answer)
}

fn check_ready(question: &str, corpus: &store::Corpus, session: &Session<'_>) -> Result<()> {
    if question.trim().is_empty() {
        return Err(MemoryError::EmptyQuestion);
    }
    let pages = corpus.passages(store::Layer::Page)?.len();
    if pages == 0 {
        return Err(MemoryError::EmptyCorpus { corpus: corpus.name().to_string() });
    }
    let Missing { calls, vectors } = missing(corpus, session)?;
    let pending = calls.max(vectors);
    if pending > 0 {
        let (corpus, settings) = (corpus.name().to_string(), Box::new(session.settings.clone()));
        return Err(MemoryError::NotReady { corpus, pending, pages: pages.max(pending), settings });
    }
    Ok(())
}
