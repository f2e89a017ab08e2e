//! The edits that a builder proposes (section 3.2 and appendix D.1), and their stored form.

use serde::{Deserialize, Serialize};
use store::Span;

use super::quote::Match;

/// The type of a node: the paper's closed vocabulary (section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A person, object or place.
    Entity,
    /// Something that happens or is done.
    Event,
    /// A proposition that the text asserts or that follows from it.
    Claim,
    /// An abstract or collective theme.
    Concept,
    /// A fact with a quantity.
    Stat,
}

impl Kind {
    /// The names of all kinds, in the paper's order.
    pub const NAMES: [&str; 5] = ["entity", "event", "claim", "concept", "stat"];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Kind::NAMES[self as usize]
    }
}

/// One edit of a graph, as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    AddNode {
        id: String,
        #[serde(rename = "type")]
        kind: Kind,
        content: String,
        #[serde(default)]
        src: String,
    },
    AddEdge {
        source: String,
        target: String,
        relation: String,
        #[serde(default)]
        src: String,
    },
    EditNode {
        id: String,
        content: String,
        #[serde(default)]
        src: String,
    },
    DeleteNode {
        id: String,
    },
}

impl Operation {
    /// The id of the node that it describes, if it describes one.
    pub fn described(&self) -> Option<&str> {
        match self {
            Operation::AddNode { id, .. } | Operation::EditNode { id, .. } => Some(id.trim()),
            Operation::AddEdge { .. } | Operation::DeleteNode { .. } => None,
        }
    }

    /// What it describes a node by, if it describes one.
    pub fn content(&self) -> Option<&str> {
        match self {
            Operation::AddNode { content, .. } | Operation::EditNode { content, .. } => Some(content),
            Operation::AddEdge { .. } | Operation::DeleteNode { .. } => None,
        }
    }

    /// The supporting quote; blank if there is none.
    pub fn quote(&self) -> &str {
        match self {
            Operation::AddNode { src, .. } | Operation::AddEdge { src, .. } | Operation::EditNode { src, .. } => src,
            Operation::DeleteNode { .. } => "",
        }
    }
}

/// The span of a quote in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub span: Span,
    #[serde(rename = "match")]
    pub how: Match,
}

/// An operation with the place of its quote; without one it is unverified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    #[serde(flatten)]
    pub operation: Operation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// True if it describes a node whose content the builder was not shown: it adds to that content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_survives_being_written_down() {
        let span = Span { start_char: 3, end_char: 7, start_byte: 4, end_byte: 9 };
        let operation =
            Operation::AddNode { id: "ada".into(), kind: Kind::Entity, content: "A keeper.".into(), src: "Ada".into() };
        let edit = Edit { operation, place: Some(Place { span, how: Match::Fuzzy }), unseen: false };
        let text = serde_json::to_string(&edit).expect("an edit is JSON");
        assert!(text.starts_with(r#"{"op":"add_node","id":"ada","type":"entity","content":"A keeper.","src":"Ada","#));
        assert_eq!(serde_json::from_str::<Edit>(&text).expect("it was written so"), edit);
        let unseen = Edit { unseen: true, ..edit };
        let text = serde_json::to_string(&unseen).expect("an edit is JSON");
        assert_eq!(serde_json::from_str::<Edit>(&text).expect("it was written so"), unseen);
        let bare: Edit = serde_json::from_str(r#"{"op":"delete_node","id":"ada"}"#).expect("a place may be missing");
        assert_eq!(bare, Edit { operation: Operation::DeleteNode { id: "ada".into() }, place: None, unseen: false });
    }

    #[test]
    fn kinds_have_the_papers_names() {
        for name in Kind::NAMES {
            let kind: Kind = serde_json::from_value(name.into()).expect("the name is known");
            assert_eq!(kind.as_str(), name);
        }
    }
}
