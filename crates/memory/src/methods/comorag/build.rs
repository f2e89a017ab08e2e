//! The preparation: chunks, facts, summaries, windows and the vectors of all of them. Each step computes only what
//! is missing.

use std::ops::Range;

use calls::Agent;
use store::{Corpus, DocId, Layer, Meta, NewPassage, Writer};

use super::entities::{ENTITY, FACT, link, unlinked};
use super::extract::{ENTITIES_NOTE, TRIPLES_NOTE, extract};
use super::knowledge::Knowledge;
use super::options::Options;
use super::synonyms;
use super::tree::{SUMMARY, grow, unfinished};
use super::vectors::{embed_derived, vector_name};
use super::windows::{WINDOW, narrate, uncovered};
use crate::core::embed::{Indexed, embed};
use crate::core::error::Result;
use crate::core::origin::time_at;
use crate::core::paging::windows;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;

/// Counts what [`prepare`] would do.
pub(super) fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    let options: Options = session.settings.options();
    let name = vector_name(session);
    let mut calls = uncut(corpus)?.len();
    let mut vectors = corpus.without_vectors(Layer::Chunk, &name)?.len();
    if options.uses(Knowledge::Veridical) {
        calls += corpus.pending(Layer::Chunk, ENTITIES_NOTE)?.len();
        calls += corpus.pending(Layer::Chunk, TRIPLES_NOTE)?.len();
        calls += unlinked(corpus)?.len();
    }
    if options.uses(Knowledge::Semantic) {
        calls += unfinished(corpus)?.len();
    }
    if options.uses(Knowledge::Episodic) {
        calls += uncovered(corpus)?.len();
    }
    for kind in kinds(session) {
        vectors += corpus.derived_without_vectors(kind, &name)?.len();
    }
    Ok(Missing { calls, vectors })
}

/// Builds the layers of the session's options.
pub(super) async fn prepare(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let options: Options = session.settings.options();
    cut(writer, session)?;
    embed(writer, Layer::Chunk, Indexed::Content, session, progress).await?;
    if options.uses(Knowledge::Veridical) {
        extract(writer, session, progress).await?;
        link(writer, session)?;
    }
    if options.uses(Knowledge::Episodic) {
        narrate(writer, session, progress).await?;
    }
    if options.uses(Knowledge::Semantic) {
        grow(writer, session, progress).await?;
    }
    for kind in kinds(session) {
        embed_derived(kind, writer, session, progress).await?;
    }
    if options.uses(Knowledge::Veridical) {
        synonyms::keep(writer, &vector_name(session))?;
    }
    Ok(())
}

/// The texts of the layers in use that have vectors.
fn kinds(session: &Session<'_>) -> Vec<&'static str> {
    let kinds_of = |layer| match layer {
        Knowledge::Veridical => vec![ENTITY, FACT],
        Knowledge::Semantic => vec![SUMMARY],
        Knowledge::Episodic => vec![WINDOW],
    };
    session.settings.options::<Options>().used().flat_map(kinds_of).collect()
}

/// The documents that have pages and no chunks.
fn uncut(corpus: &Corpus) -> Result<Vec<DocId>> {
    let mut uncut = Vec::new();
    for document in corpus.documents()? {
        let has = |layer| corpus.passages_of(document.id, layer).map(|passages| !passages.is_empty());
        if has(Layer::Page)? && !has(Layer::Chunk)? {
            uncut.push(document.id);
        }
    }
    Ok(uncut)
}

fn cut(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let most_tokens = session.settings.options::<Options>().chunk_tokens.min(session.context(Agent::Memorizer) / 8);
    for document in uncut(writer)? {
        let text = writer.document_text(document)?;
        let pages = writer.passages_of(document, Layer::Page)?;
        let chunk = |(bytes, tokens): (Range<usize>, u32)| {
            let meta = Meta { time: time_at(&pages, bytes.start), ..Meta::default() };
            NewPassage { layer: Layer::Chunk, bytes, tokens, meta }
        };
        let mut cut = windows(&text, most_tokens, |text| session.embedder.token_spans(text));
        if cut.is_empty() {
            // Characters that are no tokens of this embedder are still a text.
            cut.push((0..text.len(), 0));
        }
        let chunks: Vec<NewPassage> = cut.into_iter().map(chunk).collect();
        writer.put_layer(document, Layer::Chunk, &chunks)?;
    }
    Ok(())
}
