//! A view of entities and facts as a graph; the places are the chunks that name them.

use std::collections::BTreeSet;

use store::{Corpus, Layer};

use super::entities::{ENTITY, FACT, parts};
use super::extract::TRIPLES_NOTE;
use crate::core::error::Result;
use crate::core::graph_view::{Edge, GraphKind, GraphView, Node, Passages};

/// The graph of this method.
pub(super) static GRAPH: GraphKind = GraphKind {
    name: "comorag",
    view: |corpus, _| view(corpus),
    export: |corpus, _, format| view(corpus)?.export(format, "comorag", corpus),
};

/// The veridical layer's entities and facts.
///
/// # Errors
/// If the store cannot be read.
fn view(corpus: &Corpus) -> Result<GraphView> {
    let mut passages = Passages::of(corpus);
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for entity in corpus.derived(ENTITY)? {
        let sources = passages.sources(&entity.sources)?;
        nodes.push(Node { id: entity.text, kind: "entity".into(), content: String::new(), sources, degree: 0 });
    }
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    for fact in corpus.derived(FACT)? {
        let Some([source, relation, target]) = parts(&fact.text) else { continue };
        if known.contains(source.as_str()) && known.contains(target.as_str()) {
            edges.push(Edge { source, target, relation, sources: passages.sources(&fact.sources)? });
        }
    }
    let chunks = corpus.count(Layer::Chunk)?;
    let read = chunks - corpus.pending(Layer::Chunk, TRIPLES_NOTE)?.len();
    Ok(GraphView::new(nodes, edges, read, chunks))
}
