//! Taking cached prefixes out of the books and putting them back in after a restart.

use crate::page_pool::PageId;
use crate::prefix_tree::{Fill, NodeId};
use crate::scheduler::Scheduler;
use crate::sequence::{SequenceId, WorkflowId};

/// One page of a cached prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPage {
    /// The page before it, as an index into the same list, where it stands earlier.
    pub parent: Option<usize>,
    /// Its [`PAGE_TOKENS`](crate::PAGE_TOKENS) tokens.
    pub tokens: Vec<u32>,
}

/// Restored pages have been filled by nobody who runs.
const RESTORER: SequenceId = SequenceId(u64::MAX);

impl Scheduler {
    /// Every page that the prompts of a workflow under way begin with, and where it lies; none if none of them had to be
    /// computed. Pages stay valid until the next step.
    pub fn new_prefixes(&self, workflow: WorkflowId) -> Vec<(SavedPage, PageId)> {
        if !self.workflows.get(&workflow).is_some_and(|under_way| under_way.computes) {
            return Vec::new();
        }
        let nodes = self.tree.wanted_by(workflow);
        let index_of: std::collections::HashMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
        let saved = |node: &NodeId| {
            let parent = self.tree.parent(*node).map(|parent| index_of[&parent]);
            (SavedPage { parent, tokens: self.tree.tokens(*node).to_vec() }, self.tree.page(*node))
        };
        nodes.iter().map(saved).collect()
    }

    /// Puts saved pages into the tree, in the place of those that nobody is about to ask for; `fill` writes the contents of the
    /// page of an index to a page. Returns how many pages are there now that were not before.
    ///
    /// # Errors
    /// What `fill` fails with; the pages before stay.
    pub fn restore<E>(
        &mut self,
        saved: &[SavedPage],
        mut fill: impl FnMut(usize, PageId) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(saved.len());
        let mut restored = 0;
        let mut outcome = Ok(());
        for (index, page) in saved.iter().enumerate() {
            let parent = page.parent.map(|parent| nodes.get(parent).copied().flatten());
            // A page without the one before it is of no use.
            let Some(parent) = parent.map_or(Some(None), |parent| parent.map(Some)) else {
                nodes.push(None);
                continue;
            };
            if let Some(known) = self.tree.child(parent, &page.tokens) {
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
            self.tree.let_go(node, RESTORER);
        });
        outcome.map(|()| restored)
    }
}
