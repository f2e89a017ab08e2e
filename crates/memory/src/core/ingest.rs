//! Adding sources to a corpus, and embedding what is in it. Every step is durable by itself and does only what is missing,
//! so a killed run continues where it stopped.

use std::io;

use calls::{Agent, Embedder};
use sources::{Cause, Source, TextFile};
use store::{Change, Corpus, DocId, Layer, NewDocument, NewText, Offsets, Part, PassageId, Span, Writer};

use crate::core::error::Result;
use crate::core::library::{ABSTRACT, Indexed};
use crate::core::paging::{cut, cut_pieces, windows};
use crate::core::session::Session;

/// The outcome for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub document: DocId,
    pub change: Change,
    pub pages: usize,
}

/// Progress of a step of preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The activity, such as "memorising".
    pub step: &'static str,
    /// Its unit, such as "page".
    pub unit: &'static str,
    pub done: usize,
    pub of: usize,
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
    let passages = cut(source, session.caller, page_tokens);
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
    let passages = cut_pieces(pieces, title, session.caller, page_tokens(session))?;
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

/// Tokens of a page: a sixteenth of the context, so that a round of research holds many; the paper's 2,048 from a
/// context of 32,768 on.
fn page_tokens(session: &Session<'_>) -> usize {
    let by_context = (session.context(Agent::Memorizer) / 16).clamp(64, 2048);
    session.settings.page_tokens.unwrap_or(by_context)
}

/// Missing preparation of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// Passages about which a language model has yet to write something.
    pub calls: usize,
    /// Passages without vectors.
    pub vectors: usize,
}

/// The name under which vectors are stored: the embedder's, and the embedded text if it is more than the page itself.
pub(crate) fn embedding_name(embedder: &dyn Embedder, indexed: Indexed) -> String {
    match indexed {
        Indexed::Content => embedder.name().to_owned(),
        Indexed::HeaderAndContent => format!("{}+header", embedder.name()),
    }
}

/// Counts the passages of a layer that have no vectors.
pub(crate) fn without_vectors(corpus: &Corpus, layer: Layer, indexed: Indexed, session: &Session<'_>) -> Result<usize> {
    Ok(corpus.without_vectors(layer, &embedding_name(session.embedder, indexed))?.len())
}

/// Passages whose vectors are computed and stored together.
const PASSAGES_PER_BATCH: usize = 16;

/// Computes the vectors that passages of a layer lack.
pub(crate) async fn embed(
    writer: &mut Writer,
    layer: Layer,
    indexed: Indexed,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let name = embedding_name(session.embedder, indexed);
    let pending = writer.without_vectors(layer, &name)?;
    let report = |done| Progress { step: "embedding", unit: layer.as_str(), done, of: pending.len() };
    for (batch, pages) in pending.chunks(PASSAGES_PER_BATCH).enumerate() {
        progress(report(batch * PASSAGES_PER_BATCH));
        let stretches = pages.iter().map(|page| stretches(*page, writer, indexed, session.embedder));
        let stretches = stretches.collect::<Result<Vec<_>>>()?;
        let texts = stretches.iter().flatten().map(|(_, text)| text.clone()).collect();
        let mut vectors = session.embedder.embed(texts).await?.into_iter();
        let parts = pages.iter().zip(&stretches).map(|(page, stretches)| {
            let parts = stretches.iter().zip(vectors.by_ref()).map(|((span, _), vector)| Part { span: *span, vector });
            (*page, parts.collect())
        });
        writer.put_vectors(&name, &parts.collect::<Vec<(PassageId, Vec<Part>)>>())?;
    }
    if !pending.is_empty() {
        progress(report(pending.len()));
    }
    Ok(())
}

/// The embedded texts of a page, with the part of the page that each covers.
///
/// A header and its page are one text if the embedder can read them together, as in the paper; else the header alone
/// represents the whole page and the page follows in as many pieces as needed.
fn stretches(
    page: PassageId,
    writer: &Writer,
    indexed: Indexed,
    embedder: &dyn Embedder,
) -> Result<Vec<(Span, String)>> {
    let span = writer.passage(page)?.span;
    let whole = writer.index_text(page, indexed.text())?;
    if embedder.token_spans(&whole).len() <= embedder.window_tokens() {
        return Ok(vec![(span, whole)]);
    }
    let mut stretches = Vec::new();
    if indexed == Indexed::HeaderAndContent {
        let notes = writer.notes(page)?;
        let header = notes.iter().find(|note| note.name == ABSTRACT);
        let pieces = header.map_or_else(Vec::new, |note| pieces(&note.text, embedder));
        stretches.extend(pieces.into_iter().map(|piece| (span, piece)));
    }
    let text = writer.passage_text(page)?;
    let offsets = Offsets::new(&text);
    for (window, _) in windows(&text, embedder.window_tokens(), |text| embedder.token_spans(text)) {
        if let Some(inner) = offsets.span(window.clone()) {
            stretches.push((within(span, inner), text[window].to_owned()));
        }
    }
    Ok(stretches)
}

/// A text in pieces that the embedder can read.
pub(crate) fn pieces(text: &str, embedder: &dyn Embedder) -> Vec<String> {
    let windows = windows(text, embedder.window_tokens(), |text| embedder.token_spans(text));
    windows.into_iter().map(|(window, _)| text[window].to_owned()).collect()
}

/// A span of a passage's text as a span of its document.
pub(crate) fn within(outer: Span, inner: Span) -> Span {
    Span {
        start_char: outer.start_char + inner.start_char,
        end_char: outer.start_char + inner.end_char,
        start_byte: outer.start_byte + inner.start_byte,
        end_byte: outer.start_byte + inner.end_byte,
    }
}
