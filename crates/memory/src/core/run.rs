//! The operations of a method: counting what is missing, preparing a corpus, answering a question.

use store::{Corpus, Layer, Writer};

use crate::core::access::Access;
use crate::core::error::{MemoryError, Result};
use crate::core::method::{Choice, Settings};
use crate::core::outcome::Answer;
use crate::core::prefixes;
use crate::core::preparation::{Missing, Prepared, Progress};
use crate::core::session::Session;

/// Counts what [`prepare`] would do.
///
/// # Errors
/// If the store cannot be read.
pub fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    session.settings.method.missing(corpus, session)
}

/// The method that answers from a corpus if the method of the session leaves the choice.
///
/// # Errors
/// If the store cannot be read.
pub fn choose(corpus: &Corpus, session: &Session<'_>) -> Result<Option<Choice>> {
    session.settings.method.choose(corpus, session)
}

/// How much of a corpus is prepared for the method of the session; `None` if nothing is missing.
///
/// # Errors
/// If the store cannot be read.
pub fn prepared(corpus: &Corpus, session: &Session<'_>) -> Result<Option<Prepared>> {
    let Missing { calls, vectors } = missing(corpus, session)?;
    let pending = calls.max(vectors);
    if pending == 0 {
        return Ok(None);
    }
    let of = corpus.count(Layer::Page)?.max(pending);
    Ok(Some(Prepared { ready: of - pending, of }))
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
    let corpus = corpus.into();
    check(question, &corpus)?;
    if let Some(Prepared { ready, of }) = prepared(&corpus, session)? {
        return Err(not_ready(&corpus, of - ready, of, &session.settings));
    }
    run(question, corpus, session).await
}

/// The same from a corpus that is prepared in part, by a method that can do so ([`crate::Method::answers_in_part`]).
pub(crate) async fn ask_in_part(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    check(question, corpus)?;
    run(question, corpus.into(), session).await
}

/// The corpus is not prepared for the method of these settings.
pub(crate) fn not_ready(corpus: &Corpus, pending: usize, pages: usize, settings: &Settings) -> MemoryError {
    let (method, flags) = (settings.method.name(), settings.method.preparation_flags(settings));
    MemoryError::NotReady { corpus: corpus.name().to_string(), pending, pages, method, flags }
}

fn check(question: &str, corpus: &Corpus) -> Result<()> {
    if question.trim().is_empty() {
        return Err(MemoryError::EmptyQuestion);
    }
    if corpus.count(Layer::Page)? == 0 {
        return Err(MemoryError::EmptyCorpus { corpus: corpus.name().to_string() });
    }
    Ok(())
}

async fn run(question: &str, mut corpus: Access<'_>, session: &Session<'_>) -> Result<Answer> {
    prefixes::bring(&corpus, session).await?;
    let answer = session.settings.method.ask(question, corpus.reborrow(), session).await;
    let kept = if answer.is_ok() { prefixes::keep(&corpus, session).await } else { Ok(()) };
    session.caller.close_workflow(session.workflow);
    kept.and(answer)
}
