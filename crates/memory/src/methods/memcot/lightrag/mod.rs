//! A graph of entities and relations over the turns, and search in it, as LightRAG does (Guo et al. 2024; the MemCoT
//! paper's retriever).
//!
//! `extract` asks the builder for the entities and relations of every turn, and once more for what it overlooked;
//! `graph` merges what it said by name; `search` splits a query into keywords of things and of themes, finds
//! entities by the ones and relations by the others, and takes the turns that these come from.
//!
//! # Departures
//! * Replies are JSON under a schema, not lines with delimiters; entities that only a relation names are entities too. Of a
//!   reply that was cut twice all but the last item is used.
//! * Descriptions of one name are put together, each once, and never summarised by a further call.
//! * Turns are picked by their cosine with the query; LightRAG's order by occurrence is for when there are no vectors.
//! * As in LightRAG's `hybrid` mode the query's nearest turns are not mixed in; a query without keywords is its own.

mod extract;
mod graph;
mod prompts;
mod search;

use std::collections::HashSet;

use store::{Bond, Corpus, DerivedId, Digest, Layer, NewDerived, Writer};

use crate::core::embed::pieces;
use crate::core::error::Result;
use crate::core::graph_view::{GraphKind, GraphView, Passages};
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;
use graph::{Described, Graph};

pub(super) use search::Lightrag;

/// The graph of this store.
pub(super) static GRAPH: GraphKind = GraphKind {
    name: "lightrag",
    view: |corpus, _| view(corpus),
    export: |corpus, _, format| view(corpus)?.export(format, "lightrag", corpus),
};

/// The kinds of derived texts: entities and relations.
const KINDS: [&str; 2] = ["memcot.entity/1", "memcot.relation/1"];

/// Texts that are embedded and stored together.
const TEXTS_PER_BATCH: usize = 32;

/// What the graph needs that has not been done. Vectors are only those of what has been extracted.
pub(super) fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
    let mut missing = Missing { calls: extract::pending(corpus)?, vectors: 0 };
    let graph = Graph::of(corpus)?;
    for (kind, texts) in KINDS.into_iter().zip(graph.texts()) {
        let known: HashSet<Digest> = corpus.derived(kind)?.into_iter().map(|derived| derived.key).collect();
        missing.vectors += texts.iter().filter(|text| !known.contains(&text.key)).count();
        missing.vectors += corpus.derived_without_vectors(kind, session.embedder.name())?.len();
    }
    Ok(missing)
}

/// The graph to look at; the places are the turns that say it.
///
/// # Errors
/// If the store cannot be read.
fn view(corpus: &Corpus) -> Result<GraphView> {
    let (nodes, edges) = Graph::of(corpus)?.drawn(&mut Passages::of(corpus))?;
    let turns = corpus.count(Layer::Turn)?;
    let read = turns - corpus.pending(Layer::Turn, extract::NOTES[0])?.len();
    Ok(GraphView::new(nodes, edges, read, turns))
}

/// Extracts, merges and embeds; every reply and every batch of vectors is durable before the next.
pub(super) async fn build(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    extract::extract(writer, session, progress).await?;
    let author = extract::author(session);
    let graph = Graph::of(writer)?;
    for (kind, texts) in KINDS.into_iter().zip(graph.texts()) {
        let wanted: HashSet<Digest> = texts.iter().map(|text| text.key).collect();
        let outdated = writer.derived(kind)?.into_iter().filter(|derived| !wanted.contains(&derived.key));
        let outdated: Vec<DerivedId> = outdated.map(|derived| derived.id).collect();
        writer.remove_derived(&outdated)?;
        // What one turn says of a name cannot be told apart from what another says, so all goes with any of them.
        let items: Vec<NewDerived<'_>> = texts
            .iter()
            .map(|Described { key, text, chunks }| NewDerived {
                kind,
                key: *key,
                text,
                sources: chunks,
                bond: Bond::All,
                author: &author,
            })
            .collect();
        writer.put_derived(&items)?;
        embed(writer, kind, session, progress).await?;
    }
    Ok(())
}

async fn embed(
    writer: &mut Writer,
    kind: &'static str,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let name = session.embedder.name().to_owned();
    let lacking = writer.derived_without_vectors(kind, &name)?;
    let texts: Vec<(_, String)> = writer
        .derived(kind)?
        .into_iter()
        .filter(|derived| lacking.binary_search(&derived.id).is_ok())
        .map(|derived| (derived.id, derived.text))
        .collect();
    let unit = if kind == KINDS[0] { "node" } else { "edge" };
    let report = |done| Progress { step: "embedding", unit, done, of: texts.len() };
    for (number, batch) in texts.chunks(TEXTS_PER_BATCH).enumerate() {
        progress(report(number * TEXTS_PER_BATCH));
        let vectors = vectors(batch.iter().map(|(_, text)| text.as_str()), session).await?;
        let vectors: Vec<_> = batch.iter().map(|(id, _)| *id).zip(vectors).collect();
        writer.put_derived_vectors(&name, &vectors)?;
    }
    if !texts.is_empty() {
        progress(report(texts.len()));
    }
    Ok(())
}

/// A vector for each text; for one longer than the embedder's window, the mean over its pieces.
async fn vectors(texts: impl Iterator<Item = &str>, session: &Session<'_>) -> Result<Vec<Vec<f32>>> {
    let embedder = session.embedder;
    let pieces: Vec<Vec<String>> = texts.map(|text| pieces(text, embedder)).collect();
    let mut embedded =
        embedder.embed_for(session.tenant, pieces.iter().flatten().cloned().collect()).await?.into_iter();
    let mean = |pieces: &Vec<String>| {
        let mut sum = vec![0.0; embedder.dims()];
        for vector in embedded.by_ref().take(pieces.len()) {
            sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
        }
        sum
    };
    Ok(pieces.iter().map(mean).collect())
}
