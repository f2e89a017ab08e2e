//! One request on its way from tokens to tokens.

use std::collections::VecDeque;

use crate::page_pool::PageId;
use crate::prefix_tree::{NodeId, Parent};

/// Names a sequence for as long as it lives; chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// Names a workflow: calls that ask about the same texts one after the other, until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowId(pub u64);

/// A part of the prefix cache that is separate by content: a request shares pages only with requests of its own namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Namespace(pub u64);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: SequenceId,
    /// Where prefixes are matched and published.
    pub namespace: Namespace,
    /// The prompt; at least one token.
    pub prompt: Vec<u32>,
    /// So many of the prompt's first tokens begin other prompts too.
    pub stable_tokens: usize,
    /// What it is a part of, if more of the same will follow.
    pub workflow: Option<WorkflowId>,
    pub max_output_tokens: usize,
    /// Lower is sooner; within a priority first come, first served. A long-waiting request moves up.
    pub priority: u8,
}

/// Order of requests: earliest due step first, then order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    /// In steps.
    pub due: u64,
    pub arrival: u64,
}

/// Where one page of a sequence is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// In the tree; others may read it.
    Shared(NodeId),
    /// This sequence's own.
    Private(PageId),
}

/// What a page after these would continue; `None` after a private page, which nothing in the tree can continue.
pub(crate) fn parent_after(namespace: Namespace, slots: &[Slot]) -> Option<Parent> {
    match slots.last() {
        None => Some(Parent::Root(namespace)),
        Some(Slot::Shared(node)) => Some(Parent::Node(*node)),
        Some(Slot::Private(_)) => None,
    }
}

/// A sequence that has its pages.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub turn: QueueKey,
    pub namespace: Namespace,
    /// Prompt, then output.
    pub tokens: Vec<u32>,
    pub prompt_len: usize,
    /// Tokens that it may come to have.
    pub most_tokens: usize,
    pub slots: Vec<Slot>,
    /// Tokens from the start whose keys and values are there.
    pub ready_tokens: usize,
    /// What may come after `tokens`.
    pub draft: VecDeque<u32>,
    /// True if their keys and values are there.
    pub draft_is_computed: bool,
    /// Prompt tokens that this sequence computed itself.
    pub own_prompt_tokens: usize,
}

impl Sequence {
    /// True if only the newest token is still to be computed.
    pub fn is_decoding(&self) -> bool {
        self.ready_tokens >= self.prompt_len
    }

    /// The node of page `index`, if it is in the tree.
    pub fn node(&self, index: usize) -> Option<NodeId> {
        match self.slots.get(index) {
            Some(Slot::Shared(node)) => Some(*node),
            _ => None,
        }
    }
}
