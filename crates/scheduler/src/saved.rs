//! Taking cached prefixes out of the books and putting them back in after a restart.

use crate::page_pool::PageId;
use crate::prefix_tree::{Fill, NodeId};
use crate::scheduler::Scheduler;
use crate::sequence::SequenceId;

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
    /// Every page that begins more than one prompt, and where it lies. Pages stay valid until the next step.
    pub fn stable_pages(&self) -> Vec<(SavedPage, PageId)> {
        let nodes = self.tree.stable();
        let index_of: std::collections::HashMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
        let saved = |node: &NodeId| {
            let parent = self.tree.parent(*node).map(|parent| index_of[&parent]);
            (SavedPage { parent, tokens: self.tree.tokens(*node).to_vec() }, self.tree.page(*node))
        };
        nodes.iter().map(saved).collect()
    }

    /// Puts saved pages into the tree, as far as free pages last; `fill` writes the contents of the page of an index to a
    /// page. Returns how many pages are there now that were not before.
    ///
    /// # Errors
    /// What `fill` fails with; the pages before stay.
    pub fn restore<E>(
        &mut self,
        saved: &[SavedPage],
        mut fill: impl FnMut(usize, PageId) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(saved.len());
        let mut restored = Vec::new();
        let mut outcome = Ok(());
        for (index, page) in saved.iter().enumerate() {
            let parent = page.parent.map(|parent| nodes.get(parent).copied().flatten());
            // A page without the one before it is of no use.
            let Some(parent) = parent.map_or(Some(None), |parent| parent.map(Some)) else {
                nodes.push(None);
                continue;
            };
            let known = self.tree.child(parent, &page.tokens);
            let free = if known.is_none() { self.pool.allocate() } else { None };
            let Some(to) = free else {
                nodes.push(known);
                continue;
            };
            if let Err(error) = fill(index, to) {
                self.pool.release(to);
                outcome = Err(error);
                break;
            }
            let node = self.tree.insert(parent, &page.tokens, to, Fill::Ready);
            self.tree.want(node, None);
            restored.push(node);
            nodes.push(Some(node));
        }
        // Held until all are in, so that parents were held while children came; last in, first out.
        restored.iter().rev().for_each(|node| {
            self.tree.let_go(*node, RESTORER);
        });
        outcome.map(|()| restored.len())
    }
}
