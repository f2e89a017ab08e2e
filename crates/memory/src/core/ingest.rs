//! Adding sources to a corpus. Every source is added durably by itself and only if it is missing, so a killed run continues
//! where it stopped.

use std::io;

use calls::Agent;
use sources::{Cause, Source, TextFile};
use store::{Change, Corpus, DocId, Layer, NewDocument, NewText, Writer};

use crate::core::error::Result;
use crate::core::paging::{cut, cut_pieces};
use crate::core::session::Session;

/// The outcome for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub document: DocId,
    pub change: Change,
    pub pages: usize,
}

/// Adds a source and its pages to the corpus. An unchanged source changes nothing, unless the page size
/// changes; a changed one replaces its pages.
///
/// # Errors
/// If the store refuses.
pub fn add(source: &Source, writer: &mut Writer, session: &Session<'_>) -> Result<Added> {
    // Cutting a text anew discards all its abstracts, so another model with another context is no reason.
    if session.settings.page_tokens.is_none()
        && let Some(document) = unchanged(source, writer)?
    {
        let pages = writer.passages_of(document, Layer::Page)?.len();
        return Ok(Added { document, change: Change::Unchanged, pages });
    }
    let page_tokens = page_tokens(session);
    let passages = cut(source, session.caller.tokens(), page_tokens);
    let pages = passages.iter().filter(|passage| passage.layer == Layer::Page).count();
    let (document, change) = writer.put_document(&NewDocument {
        path: &source.path,
        kind: &source.kind.to_string(),
        title: source.title.as_deref().unwrap_or_default(),
        text: &source.text,
        passages: &passages,
    })?;
    Ok(Added { document, change, pages })
}

/// The same for a plain text, which is read from its file piece by piece: the memory does not grow with its length.
///
/// # Errors
/// If the file cannot be read, or the store refuses.
pub fn add_text(file: &TextFile, writer: &mut Writer, session: &Session<'_>) -> Result<Added> {
    let (kind, text) = (file.kind.to_string(), FileText(file));
    let title = file.title.as_deref();
    let unreadable = |source| store::Error::Unreadable { document: file.path.clone(), source };
    if session.settings.page_tokens.is_none()
        && let Some(stored) = writer.document_at(&file.path)?
        && stored.is_of_text(&kind, title.unwrap_or_default(), &text).map_err(unreadable)?
    {
        let pages = writer.passages_of(stored.id, Layer::Page)?.len();
        return Ok(Added { document: stored.id, change: Change::Unchanged, pages });
    }
    let pieces = file.pieces().map_err(|cause| unreadable(io_error(cause)))?;
    let pieces = pieces.map(|piece| piece.map_err(|cause| unreadable(io_error(cause))));
    let passages = cut_pieces(pieces, title, session.caller.tokens(), page_tokens(session))?;
    let (document, change) = writer.put_text(&NewText {
        path: &file.path,
        kind: &kind,
        title: title.unwrap_or_default(),
        text: &text,
        passages: &passages,
    })?;
    Ok(Added { document, change, pages: passages.len() })
}

/// A file as the store reads it.
struct FileText<'a>(&'a TextFile);

impl store::Text for FileText<'_> {
    fn len_bytes(&self) -> usize {
        self.0.bytes
    }

    fn pieces(&self) -> store::Pieces<'_> {
        match self.0.pieces() {
            Ok(pieces) => Box::new(pieces.map(|piece| piece.map(Into::into).map_err(io_error))),
            Err(cause) => Box::new(std::iter::once(Err(io_error(cause)))),
        }
    }
}

fn io_error(cause: Cause) -> io::Error {
    match cause {
        Cause::Io(error) => error,
        cause => io::Error::other(cause),
    }
}

/// The document that is exactly this source, if there is one.
fn unchanged(source: &Source, corpus: &Corpus) -> Result<Option<DocId>> {
    let title = source.title.as_deref().unwrap_or_default();
    let stored = corpus.document_at(&source.path)?;
    let same = stored.filter(|document| document.is_of(&source.kind.to_string(), title, &source.text));
    Ok(same.map(|document| document.id))
}

fn page_tokens(session: &Session<'_>) -> usize {
    session.settings.page_tokens.unwrap_or_else(|| default_page_tokens(session.context(Agent::Memorizer)))
}

/// Tokens of a page for a memorizer with this context: a sixteenth, so that a round of research holds many; the paper's
/// 2,048 from a context of 32,768 on.
pub fn default_page_tokens(context_tokens: usize) -> usize {
    (context_tokens / 16).clamp(64, 2048)
}
