//! Vectors of texts: computing those that are missing, and arithmetic on them.

use calls::Embedder;
use store::Writer;

use super::entities::{ENTITY, FACT, parts};
use crate::core::embed::{Indexed, embedding_name, pieces};
use crate::core::error::Result;
use crate::core::preparation::Progress;
use crate::core::session::Session;

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

/// The embedded text: a sentence for a fact, otherwise the text itself.
fn embedded_text(kind: &str, text: &str) -> String {
    let sentence = (kind == FACT).then(|| parts(text)).flatten().map(|fact| fact.join(" "));
    sentence.unwrap_or_else(|| text.to_owned())
}

/// A vector for each text. A text longer than the embedder reads has the mean of the vectors of its pieces.
pub(super) async fn vectors_of(texts: impl Iterator<Item = String>, session: &Session<'_>) -> Result<Vec<Vec<f32>>> {
    let pieces: Vec<Vec<String>> = texts.map(|text| whole_or_pieces(text, session.embedder)).collect();
    let mut vectors =
        session.embedder.embed_for(session.tenant, pieces.iter().flatten().cloned().collect()).await?.into_iter();
    Ok(pieces.iter().map(|pieces| mean(vectors.by_ref().take(pieces.len()))).collect())
}

fn whole_or_pieces(text: String, embedder: &dyn Embedder) -> Vec<String> {
    let pieces = pieces(&text, embedder);
    // A blank text has no pieces, but is still a text.
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

/// The inner product: of unit vectors, the cosine.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Scores scaled so that the best is 1 and the worst 0; all 1 if they are equal.
pub(super) fn min_max(scores: &[f32]) -> Vec<f32> {
    let low = scores.iter().copied().fold(f32::INFINITY, f32::min);
    let high = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().map(|score| if high > low { (score - low) / (high - low) } else { 1.0 }).collect()
}
