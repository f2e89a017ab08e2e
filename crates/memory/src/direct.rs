//! The whole text and one call: what any memory is measured against. A text that does not fit is refused.

use calls::Stability;
use store::{Corpus, Layer, PassageId};

use crate::answer::{self, Answer};
use crate::error::Result;
use crate::session::Session;

/// Answers a question from all documents at once.
///
/// # Errors
/// [`calls::CallError::TooLong`] with both numbers if they do not fit; any other [`crate::MemoryError`].
pub(crate) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let documents = corpus.documents()?;
    let texts = documents.iter().map(|document| Ok(corpus.document_text(document.id)?)).collect::<Result<Vec<_>>>()?;
    let pages: Vec<PassageId> = corpus.passages(Layer::Page)?.iter().map(|page| page.id).collect();
    let ask = answer::question(question, &texts.join("\n\n"), Stability::Corpus, session);
    answer::respond(question, ask, &pages, corpus, session).await
}
