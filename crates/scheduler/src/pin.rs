//! Pins: prefixes that stay until their owner lets them go.

use std::collections::BTreeSet;

use crate::PAGE_TOKENS;
use crate::prefix_tree::{Fill, NodeId, Parent};
use crate::request::{Namespace, PinId, SequenceId};
use crate::scheduler::Scheduler;

/// Of this many pages one may be pinned: requests must still run.
const PINNED_SHARE: usize = 2;

/// Holds nodes that no sequence fills.
const NO_FILLER: SequenceId = SequenceId(u64::MAX);

impl Scheduler {
    /// Keeps what is cached of a prefix in a namespace, whole pages, from being evicted, until [`Scheduler::unpin`]. Returns
    /// how many of its tokens are kept: fewer than asked for where they have not been computed, where half of all pages are pinned, or
    /// where running requests have been promised the rest.
    pub fn pin(&mut self, id: PinId, namespace: Namespace, prefix: &[u32]) -> usize {
        self.unpin(id);
        let room = (self.pool.total() / PINNED_SHARE).saturating_sub(self.pins.values().map(Vec::len).sum());
        let mut unpromised = self.pool.free() + self.tree.idle_pages() - self.promised();
        let mut held: Vec<NodeId> = Vec::new();
        for tokens in prefix.chunks_exact(PAGE_TOKENS).take(room) {
            let parent = held.last().map_or(Parent::Root(namespace), |node| Parent::Node(*node));
            let node = self.tree.child(parent, tokens);
            let Some(node) = node.filter(|node| self.tree.fill(*node) == Fill::Ready) else { break };
            if self.tree.is_idle(node) {
                let Some(fewer) = unpromised.checked_sub(1) else { break };
                unpromised = fewer;
            }
            self.tree.hold(node);
            held.push(node);
        }
        let pinned_tokens = held.len() * PAGE_TOKENS;
        self.pins.insert(id, held);
        pinned_tokens
    }

    /// Pages that are pinned, each counted once.
    pub fn pinned_pages(&self) -> usize {
        self.pins.values().flatten().collect::<BTreeSet<_>>().len()
    }

    /// Lets a pinned prefix go; it stays cached until its pages are needed.
    pub fn unpin(&mut self, id: PinId) {
        for node in self.pins.remove(&id).unwrap_or_default().into_iter().rev() {
            self.tree.let_go(node, NO_FILLER);
        }
    }
}
