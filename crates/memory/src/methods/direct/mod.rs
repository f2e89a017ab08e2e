//! The whole text and one call: the upper bound of context that a memory is measured against. A text that does not fit
//! the model's context is an error; GAM's "long-LLM" cuts such a text into parts of the context's length and reports the best
//! of their scores.

use futures_util::future::LocalBoxFuture;
use store::{Corpus, Layer, PassageId, Writer};

use crate::core::about::About;
use crate::core::access::Access;
use crate::core::answer;
use crate::core::error::Result;
use crate::core::method::Method;
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;

/// The method.
pub struct Direct;

static ABOUT: About = About { paper: None, module: include_str!("mod.rs") };

impl Method for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn embeds(&self) -> bool {
        false
    }

    fn missing(&self, _: &Corpus, _: &Session<'_>) -> Result<Missing> {
        Ok(Missing::default())
    }

    fn prepare<'a>(
        &'a self,
        _: &'a mut Writer,
        _: &'a Session<'_>,
        _: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
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

/// Answers a question from all documents at once.
///
/// # Errors
/// [`calls::CallError::TooLong`] with both numbers if they do not fit; any other [`crate::MemoryError`].
async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let pages: Vec<PassageId> = corpus.passages(Layer::Page)?.iter().map(|page| page.id).collect();
    let ask = answer::question_on_all(question, corpus, session)?;
    answer::respond(question, ask, &pages, corpus, session).await
}
