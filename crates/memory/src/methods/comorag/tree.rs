//! The semantic layer: a tree of summaries by theme for each document (RAPTOR, section 3).

use std::collections::{HashMap, HashSet};

use store::{Bond, Corpus, DerivedId, Digest, DocId, Layer, NewDerived, PassageId, Writer};

use super::clusters::{Node, clusters};
use super::derive::author;
use super::prompts::SUMMARIZE;
use super::summarise::{Made, Task, room, summarise, tokens};
use super::vectors::{embed_derived, mean, vector_name};
use crate::core::error::Result;
use crate::core::origin::dated;
use crate::core::preparation::Progress;
use crate::core::session::Session;

/// The kind of a summary in the store.
pub(super) const SUMMARY: &str = "comorag.summary/1";
/// The kind of the record of a complete tree; its sources are all chunks of the document.
const TREE: &str = "comorag.tree/1";

const STEP: &str = "comorag.summarize";
/// Tokens of a summary (released code: 100).
const MAX_OUTPUT_TOKENS: usize = 100;
/// Tokens that are summarised together (RAPTOR).
const MAX_CLUSTER_TOKENS: usize = 3500;
const MAX_LEVELS: usize = 5;

/// The documents with incomplete trees.
pub(super) fn unfinished(corpus: &Corpus) -> Result<Vec<DocId>> {
    let whole: HashSet<PassageId> = corpus.derived(TREE)?.into_iter().flat_map(|tree| tree.sources).collect();
    let mut documents = Vec::new();
    for chunk in corpus.passages(Layer::Chunk)? {
        if !whole.contains(&chunk.id) && documents.last() != Some(&chunk.document) {
            documents.push(chunk.document);
        }
    }
    Ok(documents)
}

/// Completes the trees. The summaries of a level are written concurrently, levels one after the other.
pub(super) async fn grow(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let mut trees = Vec::new();
    for document in unfinished(writer)? {
        trees.push(Tree::of(document, writer, session)?);
    }
    for level in 1..=MAX_LEVELS {
        let mut tasks = Vec::new();
        let mut counts = Vec::new();
        for tree in &trees {
            let level = if tree.grown { Vec::new() } else { tree.next_level(level, session) };
            counts.push(level.len());
            tasks.extend(level);
        }
        if tasks.is_empty() {
            break;
        }
        let made = summarise(&tasks, ["summarising", "cluster"], writer, session, progress).await?;
        embed_derived(SUMMARY, writer, session, progress).await?;
        let mut vectors = vectors_by_key(writer, session)?;
        let mut made = made.into_iter();
        for (tree, count) in trees.iter_mut().zip(counts) {
            let summaries: Vec<Made> = made.by_ref().take(count).collect();
            tree.add_level(summaries, level, &mut vectors, session);
        }
    }
    trees.iter().try_for_each(|tree| tree.finish(writer, session))
}

/// The tree of one document during construction.
struct Tree {
    path: String,
    chunks: Vec<PassageId>,
    /// The topmost level.
    texts: Vec<String>,
    nodes: Vec<Node>,
    sources: Vec<Vec<PassageId>>,
    /// The summaries of all levels.
    made: Vec<Digest>,
    grown: bool,
}

impl Tree {
    /// The chunks of a document without a tree.
    fn of(document: DocId, corpus: &Corpus, session: &Session<'_>) -> Result<Tree> {
        let chunks: Vec<PassageId> =
            corpus.passages_of(document, Layer::Chunk)?.into_iter().map(|chunk| chunk.id).collect();
        let (mut texts, mut nodes) = (Vec::new(), Vec::new());
        for chunk in &chunks {
            let text = dated(*chunk, corpus)?.trim().to_owned();
            let parts = corpus.vectors(&vector_name(session), *chunk)?;
            let vector = mean(parts.into_iter().map(|part| part.vector));
            nodes.push(Node { vector, tokens: tokens(&text, session) });
            texts.push(text);
        }
        let sources = chunks.iter().map(|chunk| vec![*chunk]).collect();
        let path = corpus.document(document)?.path;
        Ok(Tree { path, chunks, texts, nodes, sources, made: Vec::new(), grown: false })
    }

    fn next_level(&self, level: usize, session: &Session<'_>) -> Vec<Task> {
        let most_tokens = MAX_CLUSTER_TOKENS.min(room(SUMMARIZE, MAX_OUTPUT_TOKENS, session));
        let task = |members: Vec<usize>| {
            let mut sources: Vec<PassageId> =
                members.iter().flat_map(|member| &self.sources[*member]).copied().collect();
            sources.sort_unstable();
            sources.dedup();
            Task {
                kind: SUMMARY,
                single_as_is: false,
                step: STEP,
                instructions: SUMMARIZE,
                max_output_tokens: MAX_OUTPUT_TOKENS,
                place: format!("{} level {level}", self.path),
                texts: members.iter().map(|member| self.texts[*member].clone()).collect(),
                sources,
            }
        };
        clusters(&self.nodes, most_tokens).into_iter().map(task).collect()
    }

    fn add_level(
        &mut self,
        summaries: Vec<Made>,
        level: usize,
        vectors: &mut HashMap<Digest, Vec<f32>>,
        session: &Session<'_>,
    ) {
        if summaries.is_empty() {
            return;
        }
        // If a level is no smaller than the one below, no further level would be.
        self.grown = summaries.len() == 1 || (level > 1 && summaries.len() >= self.nodes.len());
        self.made.extend(summaries.iter().map(|summary| summary.key));
        let node = |summary: &Made| Node {
            vector: vectors.get(&summary.key).cloned().unwrap_or_default(),
            tokens: tokens(&summary.text, session),
        };
        self.nodes = summaries.iter().map(node).collect();
        (self.texts, self.sources) = summaries.into_iter().map(|summary| (summary.text, summary.sources)).unzip();
    }

    /// Removes what an earlier, interrupted attempt left beside the tree, and marks it as complete.
    fn finish(&self, writer: &mut Writer, session: &Session<'_>) -> Result<()> {
        let (chunks, made): (HashSet<PassageId>, HashSet<Digest>) =
            (self.chunks.iter().copied().collect(), self.made.iter().copied().collect());
        let strays: Vec<DerivedId> = writer
            .derived(SUMMARY)?
            .into_iter()
            .filter(|summary| chunks.contains(&summary.sources[0]) && !made.contains(&summary.key))
            .map(|summary| summary.id)
            .collect();
        writer.remove_derived(&strays)?;
        let author = author(STEP, SUMMARIZE, calls::Agent::Memorizer, session);
        let text = format!("{} chunks, {} summaries", self.chunks.len(), self.made.len());
        let tree = NewDerived {
            kind: TREE,
            key: Digest::of(&[&self.path]),
            text: &text,
            sources: &self.chunks,
            bond: Bond::All,
            author: &author,
        };
        writer.put_derived(&[tree])?;
        Ok(())
    }
}

fn vectors_by_key(corpus: &Corpus, session: &Session<'_>) -> Result<HashMap<Digest, Vec<f32>>> {
    let keys: HashMap<DerivedId, Digest> =
        corpus.derived(SUMMARY)?.into_iter().map(|summary| (summary.id, summary.key)).collect();
    let vectors = corpus.derived_vectors(SUMMARY, &vector_name(session))?;
    Ok(vectors.into_iter().filter_map(|(id, vector)| Some((*keys.get(&id)?, vector))).collect())
}
