//! A running request: its tokens and its pages.

use std::collections::VecDeque;

use crate::page_pool::PageId;
use crate::prefix_tree::{NodeId, Parent, Root};
use crate::request::{Namespace, QueueKey, TenantId, WorkflowId};

/// Where one page of a sequence is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// In the tree; others may read it.
    Shared(NodeId),
    /// Pinned, at the start of the sequence; sequences of all namespaces may read it.
    Pinned(PageId),
    /// This sequence's own.
    Private(PageId),
}

/// What a page after these would continue; `None` after a private page, which nothing in the tree can continue.
pub(crate) fn parent_after(namespace: Namespace, slots: &[Slot]) -> Option<Parent> {
    match slots.last() {
        None | Some(Slot::Pinned(_)) => Some(Parent::Root(Root { namespace, pinned: slots.len() })),
        Some(Slot::Shared(node)) => Some(Parent::Node(*node)),
        Some(Slot::Private(_)) => None,
    }
}

/// A sequence that has its pages.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub turn: QueueKey,
    pub tenant: TenantId,
    pub priority: u8,
    /// The step in which it was admitted.
    pub admitted: u64,
    pub namespace: Namespace,
    pub workflow: Option<WorkflowId>,
    /// Prompt, then output.
    pub tokens: Vec<u32>,
    pub prompt_len: usize,
    /// The most tokens that it may have.
    pub most_tokens: usize,
    pub slots: Vec<Slot>,
    /// Tokens from the start whose keys and values are there.
    pub ready_tokens: usize,
    /// What may come after `tokens`.
    pub draft: VecDeque<u32>,
    /// True if their keys and values are there.
    pub draft_is_computed: bool,
    /// Prompt tokens that were cached, or that another sequence was computing, when it was admitted.
    pub shared_tokens: usize,
    /// Prompt tokens that this sequence computed itself.
    pub own_prompt_tokens: usize,
}

/// Most tokens of a reply that a decode computes at once. More of them, which needed no logits, are work like that of a prompt.
const MAX_DECODED: usize = 16;

impl Sequence {
    /// True if its prompt is computed, and its reply but for a few tokens. Others get their rows as prompts do.
    pub fn is_decoding(&self) -> bool {
        self.ready_tokens >= self.prompt_len && self.tokens.len() - self.ready_tokens <= MAX_DECODED
    }

    /// Prompt tokens that it still has to compute itself.
    pub fn uncomputed(&self) -> usize {
        self.prompt_len.saturating_sub(self.ready_tokens.max(self.shared_tokens))
    }

    /// The node of page `index`, if it is in the tree.
    pub fn node(&self, index: usize) -> Option<NodeId> {
        match self.slots.get(index) {
            Some(Slot::Shared(node)) => Some(*node),
            _ => None,
        }
    }
}
