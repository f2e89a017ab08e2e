//! The vectors of passages: which text is embedded, under which name it is stored, and computing what is missing.

use calls::Embedder;
use store::{Corpus, IndexText, Layer, Offsets, Part, PassageId, Span, Writer};

use crate::core::error::Result;
use crate::core::paging::windows;
use crate::core::preparation::Progress;
use crate::core::session::Session;

/// The name of the note that holds a page's abstract, which is also the page's header.
pub(crate) const ABSTRACT: &str = "abstract";

/// The text of a passage that is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexed {
    Content,
    /// The page with its header before it (GAM, equation 2).
    HeaderAndContent,
}

impl Indexed {
    pub fn text(self) -> IndexText<'static> {
        match self {
            Indexed::Content => IndexText::Content,
            Indexed::HeaderAndContent => IndexText::NoteAndContent(ABSTRACT),
        }
    }
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
        let mut vectors = session.embedder.embed_for(session.tenant, texts).await?.into_iter();
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
