//! The three operations of a method: counting what is missing, preparing a corpus, answering a question.

use store::{Corpus, Layer, Writer};

use crate::core::access::Access;
use crate::core::answer::Answer;
use crate::core::error::{MemoryError, Result};
use crate::core::ingest::{Missing, Progress};
use crate::core::prefixes;
use crate::core::session::Session;

/// Counts what [`prepare`] would do.
///
/// # Errors
/// If the store cannot be read.
pub fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    session.settings.method.missing(corpus, session)
}

/// Prepares a corpus for the method of the session: abstracts, vectors, graphs.
///
/// # Errors
/// If a call or the store fails; what was done until then stays.
pub async fn prepare(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    session.settings.method.prepare(writer, session, progress).await
}

/// Answers a question from a corpus by the method of the settings. With a [`Writer`] the method stores what it computes
/// on the way, such as reports on a graph; with a [`Corpus`] it stores nothing.
///
/// # Errors
/// [`MemoryError::EmptyQuestion`], [`MemoryError::EmptyCorpus`]; [`MemoryError::NotReady`] if [`prepare`] has not done
/// all that the method needs; any other [`MemoryError`].
pub async fn ask<'a>(question: &'a str, corpus: impl Into<Access<'a>>, session: &'a Session<'_>) -> Result<Answer> {
    let mut corpus = corpus.into();
    check_ready(question, &corpus, session)?;
    prefixes::bring(&corpus, session).await?;
    let answer = session.settings.method.ask(question, corpus.reborrow(), session).await;
    let kept = if answer.is_ok() { prefixes::keep(&corpus, session).await } else { Ok(()) };
    session.caller.close_workflow(session.workflow);
    kept.and(answer)
}

fn check_ready(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<()> {
    if question.trim().is_empty() {
        return Err(MemoryError::EmptyQuestion);
    }
    let pages = corpus.passages(Layer::Page)?.len();
    if pages == 0 {
        return Err(MemoryError::EmptyCorpus { corpus: corpus.name().to_string() });
    }
    let Missing { calls, vectors } = missing(corpus, session)?;
    let pending = calls.max(vectors);
    if pending > 0 {
        return Err(MemoryError::not_ready(corpus, pending, pages.max(pending), &session.settings));
    }
    Ok(())
}
