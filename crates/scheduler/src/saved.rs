//! Taking cached prefixes out of the books and putting them back in after a restart.

use crate::page_pool::PageId;
use crate::prefix_tree::{Fill, NodeId, Parent, Root};
use crate::request::{Namespace, WorkflowId};
use crate::scheduler::Scheduler;

/// One page of a cached prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPage {
    /// The preceding page, as an index of an earlier entry of the list.
    pub parent: Option<usize>,
    /// Its [`PAGE_TOKENS`](crate::PAGE_TOKENS) tokens.
    pub tokens: Vec<u32>,
}

impl Scheduler {
    /// Every page of a namespace that the prompts of a workflow under way begin with, and its page id; none if none of
    /// them had to be computed, and none behind pinned pages. Pages stay valid until the next step.
    pub fn new_prefixes(&self, namespace: Namespace, workflow: WorkflowId) -> Vec<(SavedPage, PageId)> {
        if !self.workflows.get(&workflow).is_some_and(|under_way| under_way.computes) {
            return Vec::new();
        }
        let nodes = self.tree.wanted_by(namespace, workflow);
        let index_of: std::collections::HashMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
        let saved = |node: &NodeId| {
            let parent = match self.tree.parent(*node) {
                Parent::Root(_) => None,
                Parent::Node(parent) => Some(index_of[&parent]),
            };
            (SavedPage { parent, tokens: self.tree.tokens(*node).to_vec() }, self.tree.page(*node))
        };
        nodes.iter().map(saved).collect()
    }

    /// Puts saved pages into a namespace, evicting pages that no workflow under way wants where room is short; `fill` writes the
    /// contents of the page of an index to a page. Returns how many pages are there now that were not before.
    ///
    /// # Errors
    /// What `fill` fails with; the pages before stay.
    pub fn restore<E>(
        &mut self,
        namespace: Namespace,
        saved: &[SavedPage],
        mut fill: impl FnMut(usize, PageId) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(saved.len());
        let mut restored = 0;
        let mut outcome = Ok(());
        for (index, page) in saved.iter().enumerate() {
            let parent = match page.parent {
                None => Some(Parent::Root(Root { namespace, pinned: 0 })),
                Some(parent) => nodes.get(parent).copied().flatten().map(Parent::Node),
            };
            // A page is useless without the one before it.
            let Some(parent) = parent else {
                nodes.push(None);
                continue;
            };
            if let Some(known) = self.tree.child(parent, &page.tokens) {
                // A page that is not computed yet goes with its sequence, which would leave pages below it without a parent.
                if !self.tree.is_ready(known) {
                    nodes.push(None);
                    continue;
                }
                self.tree.hold(known);
                nodes.push(Some(known));
                continue;
            }
            let Some(to) = self.pool.allocate().or_else(|| self.tree.evict_unwanted()) else {
                nodes.push(None);
                continue;
            };
            if let Err(error) = fill(index, to) {
                self.pool.release(to);
                outcome = Err(error);
                break;
            }
            let node = self.tree.insert(parent, &page.tokens, to, Fill::Ready);
            self.tree.want(node, None);
            restored += 1;
            nodes.push(Some(node));
        }
        // Held until all are in, so that none made room for another; children before their parents.
        nodes.into_iter().flatten().rev().for_each(|node| {
            self.tree.let_go(node, None);
        });
        outcome.map(|()| restored)
    }
}
