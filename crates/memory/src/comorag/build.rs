//! What is made ahead of time: chunks, facts, summaries, windows and the vectors of all of them. Each step does only what
//! has not been done.

use calls::{Embedder, Role};
use store::{Corpus, DocId, Layer, Meta, NewPassage, Writer};

use super::alike;
use super::entities::{ENTITY, FACT, link, parts, unlinked};
use super::extract::{ENTITIES_NOTE, TRIPLES_NOTE, extract};
use super::knowledge::Knowledge;
use super::tree::{SUMMARY, grow, unfinished};
use super::windows::{WINDOW, narrate, uncovered};
use crate::error::Result;
use crate::ingest::{Missing, Progress, embed, embedding_name, pieces};
use crate::library::Indexed;
use crate::paging::windows;
use crate::session::Session;

/// Counts what [`prepare`] would do.
pub(crate) fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    let options = &session.settings.comorag;
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

/// Makes the layers that the session's options name.
pub(crate) async fn prepare(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let options = &session.settings.comorag;
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
        alike::keep(writer, &vector_name(session))?;
    }
    Ok(())
}

/// What has vectors in the layers in use.
fn kinds(session: &Session<'_>) -> Vec<&'static str> {
    let kinds_of = |layer| match layer {
        Knowledge::Veridical => vec![ENTITY, FACT],
        Knowledge::Semantic => vec![SUMMARY],
        Knowledge::Episodic => vec![WINDOW],
    };
    session.settings.comorag.used().flat_map(kinds_of).collect()
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
    let most_tokens = session.settings.comorag.chunk_tokens.min(session.context(Role::Memorizer) / 8);
    for document in uncut(writer)? {
        let text = writer.document_text(document)?;
        let chunk = |(bytes, tokens)| NewPassage { layer: Layer::Chunk, bytes, tokens, meta: Meta::default() };
        let mut cut = windows(&text, most_tokens, |text| session.embedder.token_spans(text));
        if cut.is_empty() {
            // Signs that are no tokens of this embedder are a text all the same.
            cut.push((0..text.len(), 0));
        }
        let chunks: Vec<NewPassage> = cut.into_iter().map(chunk).collect();
        writer.put_layer(document, Layer::Chunk, &chunks)?;
    }
    Ok(())
}

/// The name under which this method's vectors are kept.
pub(super) fn vector_name(session: &Session<'_>) -> String {
    embedding_name(session.embedder, Indexed::Content)
}

/// Derived texts whose vectors are computed and stored together.
const TEXTS_PER_BATCH: usize = 64;

/// Computes the vectors that derived texts of a kind lack.
pub(super) async fn embed_derived(
    kind: &'static str,
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let name = vector_name(session);
    let pending = writer.derived_without_vectors(kind, &name)?;
    if pending.is_empty() {
        return Ok(());
    }
    let unit = if kind == ENTITY || kind == FACT { "name" } else { "text" };
    let report = |done| Progress { step: "embedding", unit, done, of: pending.len() };
    let mut texts = writer.derived(kind)?;
    texts.retain(|derived| pending.binary_search(&derived.id).is_ok());
    for (batch, texts) in texts.chunks(TEXTS_PER_BATCH).enumerate() {
        progress(report(batch * TEXTS_PER_BATCH));
        let vectors = vectors_of(texts.iter().map(|derived| embedded_text(kind, &derived.text)), session).await?;
        let vectors: Vec<_> = texts.iter().map(|derived| derived.id).zip(vectors).collect();
        writer.put_derived_vectors(&name, &vectors)?;
    }
    progress(report(pending.len()));
    Ok(())
}

/// A fact is embedded as a sentence, anything else as it stands.
fn embedded_text(kind: &str, text: &str) -> String {
    let sentence = (kind == FACT).then(|| parts(text)).flatten().map(|fact| fact.join(" "));
    sentence.unwrap_or_else(|| text.to_owned())
}

/// A vector for each text. A text longer than the embedder reads has the mean of the vectors of its pieces.
pub(super) async fn vectors_of(texts: impl Iterator<Item = String>, session: &Session<'_>) -> Result<Vec<Vec<f32>>> {
    let pieces: Vec<Vec<String>> = texts.map(|text| whole_or_pieces(text, session.embedder)).collect();
    let mut vectors = session.embedder.embed(pieces.iter().flatten().cloned().collect()).await?.into_iter();
    Ok(pieces.iter().map(|pieces| mean(vectors.by_ref().take(pieces.len()))).collect())
}

fn whole_or_pieces(text: String, embedder: &dyn Embedder) -> Vec<String> {
    let pieces = pieces(&text, embedder);
    // A blank text has no pieces, and is a text all the same.
    if pieces.len() <= 1 { vec![text] } else { pieces }
}

/// The mean of unit vectors, of length 1 again.
pub(super) fn mean(vectors: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let sum = vectors.reduce(|mut sum, vector| {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
        sum
    });
    let mut mean = sum.unwrap_or_default();
    let length = mean.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        mean.iter_mut().for_each(|x| *x /= length);
    }
    mean
}
