//! The concept graph: a directed labelled multigraph with the provenance of every part (section 3.1).
//!
//! Nodes and edges keep the order of insertion, so that the head of a rendered graph is stable while it
//! grows, and with it the KV cache of prompts.

use std::fmt;

use serde_json::json;
use store::{Digest, DocId, PassageId};

use super::operation::{Edit, Kind, Operation, Place};

/// The graph built from the blocks read so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Deleted nodes, kept as a record.
    pub deleted: Vec<Node>,
    /// Blocks read.
    pub blocks: usize,
    /// Blocks without a valid reply.
    pub skipped: usize,
}

/// A piece of knowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: String,
    pub kind: Kind,
    pub content: String,
    /// The place of insertion, followed by every place that edited it; never empty.
    pub sources: Vec<Source>,
}

/// A relation from one node to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub source: String,
    pub target: String,
    pub relation: String,
    /// As for a node.
    pub sources: Vec<Source>,
}

/// The origin of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    pub document: DocId,
    pub block: PassageId,
    /// The span of its quote; none if the quote was not found.
    pub place: Option<Place>,
}

impl Graph {
    /// Applies the edits of one block in their order and returns the refused ones with reasons.
    ///
    /// Edges whose ends do not exist yet wait for the end of the block.
    pub fn apply(&mut self, document: DocId, block: PassageId, edits: &[Edit]) -> Vec<String> {
        let mut refused = Vec::new();
        let mut waiting = Vec::new();
        for edit in edits {
            let source = Source { document, block, place: edit.place };
            match self.edit(edit, source) {
                Err(Refusal::NoNode(_)) if matches!(edit.operation, Operation::AddEdge { .. }) => {
                    waiting.push((edit, source));
                }
                outcome => refused.extend(outcome.err().map(|refusal| refusal.to_string())),
            }
        }
        for (edit, source) in waiting {
            refused.extend(self.edit(edit, source).err().map(|refusal| refusal.to_string()));
        }
        self.blocks += 1;
        refused
    }

    fn edit(&mut self, edit: &Edit, source: Source) -> Result<(), Refusal> {
        match &edit.operation {
            Operation::AddNode { id, kind, content, .. } => self.add_node(id.trim(), *kind, content.trim(), source),
            Operation::EditNode { id, content, .. } => {
                let change = if edit.unseen { Change::Add } else { Change::Replace };
                self.edit_node(id.trim(), content.trim(), change, source)
            }
            Operation::AddEdge { source: from, target, relation, .. } => {
                self.add_edge(from.trim(), target.trim(), relation.trim(), source)
            }
            Operation::DeleteNode { id } => self.delete_node(id.trim()),
        }
    }

    /// Adding an existing node adds to its content: a builder that writes it as a new one writes what its block says. The node
    /// keeps its type and its first place.
    fn add_node(&mut self, id: &str, kind: Kind, content: &str, source: Source) -> Result<(), Refusal> {
        if self.node(id).is_some() {
            return self.edit_node(id, content, Change::Add, source);
        }
        if id.is_empty() || content.is_empty() {
            return Err(Refusal::Blank("a node"));
        }
        self.nodes.push(Node { id: id.to_owned(), kind, content: content.to_owned(), sources: vec![source] });
        Ok(())
    }

    fn edit_node(&mut self, id: &str, content: &str, change: Change, source: Source) -> Result<(), Refusal> {
        let node = self.nodes.iter_mut().find(|node| node.id == id).ok_or_else(|| Refusal::NoNode(id.to_owned()))?;
        if content.is_empty() {
            return Err(Refusal::Blank("a node"));
        }
        match change {
            Change::Replace => content.clone_into(&mut node.content),
            Change::Add => node.content = both(&node.content, content),
        }
        node.sources.push(source);
        Ok(())
    }

    /// Adding an existing edge adds a source to it.
    fn add_edge(&mut self, from: &str, target: &str, relation: &str, source: Source) -> Result<(), Refusal> {
        for end in [from, target] {
            self.node(end).ok_or_else(|| Refusal::NoNode(end.to_owned()))?;
        }
        if relation.is_empty() {
            return Err(Refusal::Blank("an edge"));
        }
        let same = |edge: &&mut Edge| edge.source == from && edge.target == target && edge.relation == relation;
        if let Some(edge) = self.edges.iter_mut().find(same) {
            edge.sources.push(source);
            return Ok(());
        }
        let [source_id, target, relation] = [from, target, relation].map(str::to_owned);
        self.edges.push(Edge { source: source_id, target, relation, sources: vec![source] });
        Ok(())
    }

    /// Removes its edges too.
    fn delete_node(&mut self, id: &str) -> Result<(), Refusal> {
        let at = self.nodes.iter().position(|node| node.id == id).ok_or_else(|| Refusal::NoNode(id.to_owned()))?;
        self.deleted.push(self.nodes.remove(at));
        self.edges.retain(|edge| edge.source != id && edge.target != id);
        Ok(())
    }

    /// The node of this id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The ids of all nodes, in their order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.id.as_str())
    }

    /// A digest of everything that a model sees of the graph.
    pub fn digest(&self) -> Digest {
        Digest::of(&[&self.to_string()])
    }

    /// Its size in the paper's words.
    pub fn stats(&self) -> String {
        let read = self.blocks - self.skipped;
        let of = if self.skipped > 0 { format!(" of {}", self.blocks) } else { String::new() };
        format!("{} nodes, {} edges, built from {read}{of} chunks", self.nodes.len(), self.edges.len())
    }
}

/// How an edit changes the content of a node.
#[derive(Debug, Clone, Copy)]
enum Change {
    Replace,
    /// The author of the edit did not see the content or left it out of account.
    Add,
}

/// Two descriptions of a node as one; a description that is part of the other is left out.
fn both(old: &str, new: &str) -> String {
    if old.contains(new) {
        return old.to_owned();
    }
    if new.contains(old) {
        return new.to_owned();
    }
    let between = if old.ends_with(['.', '!', '?', '。', '！', '？']) { " " } else { "; " };
    [old, between, new].concat()
}

/// Why an edit was refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("there is no node `{0}`")]
    NoNode(String),
    #[error("{0} needs an id and words")]
    Blank(&'static str),
}

impl Node {
    /// The form in prompts: a line of JSON.
    pub fn line(&self) -> String {
        json!({ "id": self.id, "type": self.kind, "content": self.content }).to_string()
    }

    /// The form in prompts without room for its content.
    pub fn bare_line(&self) -> String {
        json!({ "id": self.id, "type": self.kind }).to_string()
    }
}

impl Edge {
    /// The form in prompts: a line of JSON.
    pub fn line(&self) -> String {
        json!({ "source": self.source, "target": self.target, "relation": self.relation }).to_string()
    }
}

/// Joins lines of nodes and edges into one JSON object.
pub(super) fn object(nodes: &[String], edges: &[String]) -> String {
    let lines = |lines: &[String]| lines.iter().map(|line| format!("\n{line}")).collect::<Vec<_>>().join(",");
    format!("{{\"nodes\":[{}],\n\"edges\":[{}]}}", lines(nodes), lines(edges))
}

impl fmt::Display for Graph {
    /// The graph as models see it; the paper's literal for an empty graph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes.is_empty() {
            return f.write_str("(empty)");
        }
        let nodes: Vec<String> = self.nodes.iter().map(Node::line).collect();
        let edges: Vec<String> = self.edges.iter().map(Edge::line).collect();
        f.write_str(&object(&nodes, &edges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: DocId = DocId(1);

    /// Parses edits from JSON.
    fn edits(operations: &str) -> Vec<Edit> {
        serde_json::from_str(operations).unwrap_or_else(|error| panic!("{error}: {operations}"))
    }

    /// Applies the operations of each block; returns the graph and the refused edits.
    fn replay(blocks: &[&str]) -> (Graph, Vec<String>) {
        let mut graph = Graph::default();
        let refused = (1..).zip(blocks).flat_map(|(id, block)| graph.apply(DOCUMENT, PassageId(id), &edits(block)));
        let refused = refused.collect();
        (graph, refused)
    }

    fn check(blocks: &[&str], nodes: &[&str], edges: &[&str], refused: &[&str]) {
        let (graph, found) = replay(blocks);
        let shown: Vec<String> =
            graph.nodes.iter().map(|node| format!("{} {}: {}", node.id, node.kind.as_str(), node.content)).collect();
        assert_eq!(shown, nodes, "{blocks:?}");
        let shown: Vec<String> =
            graph.edges.iter().map(|edge| format!("{} {} {}", edge.source, edge.relation, edge.target)).collect();
        assert_eq!(shown, edges, "{blocks:?}");
        assert_eq!(found, refused, "{blocks:?}");
        assert_eq!(graph.blocks, blocks.len());
    }

    const ADA: &str = r#"{"op":"add_node","id":"ada","type":"entity","content":"A keeper.","src":"Ada"}"#;
    const TOM: &str = r#"{"op":"add_node","id":"tom","type":"entity","content":"A builder.","src":"Tom"}"#;
    const WED: &str = r#"{"op":"add_edge","source":"ada","target":"tom","relation":"married","src":"wed"}"#;
    const DROP: &str = r#"{"op":"delete_node","id":"tom"}"#;

    fn block(operations: &[&str]) -> String {
        format!("[{}]", operations.join(","))
    }

    #[test]
    fn operations_are_applied_in_their_order() {
        let (ada, tom, wed) = ("ada entity: A keeper.", "tom entity: A builder.", "ada married tom");
        check(&[&block(&[ADA, TOM, WED])], &[ada, tom], &[wed], &[]);
        check(&[&block(&[ADA]), &block(&[TOM, WED])], &[ada, tom], &[wed], &[]);
        // An edge waits until the end of its block, not longer.
        check(&[&block(&[WED, TOM, ADA])], &[tom, ada], &[wed], &[]);
        check(&[&block(&[ADA, WED]), &block(&[TOM])], &[ada, tom], &[], &["there is no node `tom`"]);
        check(&["[]"], &[], &[], &[]);
    }

    #[test]
    fn a_node_that_goes_takes_its_edges_along() {
        let ada = "ada entity: A keeper.";
        check(&[&block(&[ADA, TOM, WED]), &block(&[DROP])], &[ada], &[], &[]);
        check(&[&block(&[ADA, TOM, DROP, WED])], &[ada], &[], &["there is no node `tom`"]);
        check(&[&block(&[DROP, ADA])], &[ada], &[], &["there is no node `tom`"]);
        // A node added again is new, without its old edges.
        check(&[&block(&[ADA, TOM, WED, DROP, TOM])], &[ada, "tom entity: A builder."], &[], &[]);
        let (graph, _) = replay(&[&block(&[TOM, DROP])]);
        assert_eq!(graph.deleted.iter().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["tom"]);
    }

    #[test]
    fn the_same_id_is_the_same_node() {
        let again = r#"{"op":"add_node","id":" ada ","type":"claim","content":"Keeps the lamp.","src":"lamp"}"#;
        check(&[&block(&[ADA]), &block(&[again])], &["ada entity: A keeper. Keeps the lamp."], &[], &[]);
        let edit = r#"{"op":"edit_node","id":"ada","content":"Keeps the lamp."}"#;
        check(&[&block(&[ADA]), &block(&[edit])], &["ada entity: Keeps the lamp."], &[], &[]);
        check(&[&block(&[edit])], &[], &[], &["there is no node `ada`"]);
        let (graph, _) = replay(&[&block(&[ADA]), &block(&[again])]);
        let blocks: Vec<i64> = graph.nodes[0].sources.iter().map(|source| source.block.0).collect();
        assert_eq!(blocks, [1, 2], "the first place stays the first");
    }

    #[test]
    fn a_description_that_was_not_shown_is_added_to() {
        let after = |operation: &str, content: &str, want: &str| {
            let edit =
                format!(r#"{{"op":"{operation}","id":"ada","type":"claim","content":"{content}","unseen":true}}"#);
            check(&[&block(&[ADA]), &block(&[&edit])], &[want], &[], &[]);
        };
        after("edit_node", "Sells the lamp.", "ada entity: A keeper. Sells the lamp.");
        after("add_node", "Sells the lamp.", "ada entity: A keeper. Sells the lamp.");
        after("edit_node", "A keeper", "ada entity: A keeper.");
        after("edit_node", "She is A keeper.", "ada entity: She is A keeper.");
        let unseen = |content: &str| format!(r#"{{"op":"edit_node","id":"tom","content":"{content}","unseen":true}}"#);
        let bare = r#"{"op":"add_node","id":"tom","type":"entity","content":"A builder","unseen":true}"#;
        let edits = [bare, &unseen("Is old"), &unseen("Is old")];
        check(&[&block(&edits)], &["tom entity: A builder; Is old"], &[], &[]);
        // A node that was deleted has no content that could be added to.
        check(&[&block(&[TOM]), &block(&[DROP, bare])], &["tom entity: A builder"], &[], &[]);
    }

    #[test]
    fn an_edge_is_there_once_for_each_relation() {
        let other = r#"{"op":"add_edge","source":"ada","target":"tom","relation":"knows","src":""}"#;
        let (ada, tom) = ("ada entity: A keeper.", "tom entity: A builder.");
        let edges = ["ada married tom", "ada knows tom"];
        check(&[&block(&[ADA, TOM, WED, other]), &block(&[WED])], &[ada, tom], &edges, &[]);
        let (graph, _) = replay(&[&block(&[ADA, TOM, WED]), &block(&[WED])]);
        assert_eq!(graph.edges[0].sources.len(), 2);
    }

    #[test]
    fn nothing_blank_becomes_part_of_the_graph() {
        let blank = r#"{"op":"add_node","id":"x","type":"stat","content":" "}"#;
        let nameless = r#"{"op":"add_node","id":" ","type":"stat","content":"x"}"#;
        let node = "a node needs an id and words";
        check(&[&block(&[blank, nameless])], &[], &[], &[node, node]);
        let erased = r#"{"op":"edit_node","id":"ada","content":""}"#;
        check(&[&block(&[ADA, erased])], &["ada entity: A keeper."], &[], &[node]);
        let unnamed = r#"{"op":"add_edge","source":"ada","target":"ada","relation":""}"#;
        check(&[&block(&[ADA, unnamed])], &["ada entity: A keeper."], &[], &["an edge needs an id and words"]);
    }

    #[test]
    fn the_digest_is_of_what_is_seen() {
        let digest = |blocks: &[&str]| replay(blocks).0.digest().to_string();
        let whole = digest(&[&block(&[ADA, TOM, WED])]);
        assert_eq!(whole, digest(&[&block(&[ADA]), &block(&[TOM, WED])]), "blocks are not seen");
        assert_ne!(whole, digest(&[&block(&[TOM, ADA, WED])]), "order is");
        assert_ne!(whole, digest(&[&block(&[ADA, TOM])]));
        assert_eq!(
            whole, "27ed8fbc9a7398a60ac2b14be42fb23a1860bb437dd29739e588ed5f5558c348",
            "stable from version to version"
        );
    }

    #[test]
    fn a_graph_is_rendered_a_line_an_item() {
        let (graph, _) = replay(&[&block(&[ADA, TOM, WED])]);
        let want = "{\"nodes\":[\n{\"id\":\"ada\",\"type\":\"entity\",\"content\":\"A keeper.\"},\n\
                    {\"id\":\"tom\",\"type\":\"entity\",\"content\":\"A builder.\"}],\n\
                    \"edges\":[\n{\"source\":\"ada\",\"target\":\"tom\",\"relation\":\"married\"}]}";
        assert_eq!(graph.to_string(), want);
        assert!(serde_json::from_str::<serde_json::Value>(want).is_ok());
        assert_eq!(Graph::default().to_string(), "(empty)");
        assert_eq!(graph.stats(), "2 nodes, 1 edges, built from 1 chunks");
        assert_eq!(Graph { skipped: 1, ..graph }.stats(), "2 nodes, 1 edges, built from 0 of 1 chunks");
    }
}
