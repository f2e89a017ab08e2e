//! Prefixes that are copied for snapshots and restored from them.

use candle_core::Device;
use models::{KvCache, PAGE_TOKENS};
use scheduler::{Namespace, PageId, WorkflowId};

use super::ModelRunner;
use crate::snapshot::{CopiedPages, Saved, SnapshotError};

/// Bytes that are copied between two steps.
const COPIED_BYTES: usize = 4 << 20;

impl ModelRunner {
    /// Lists the pages of the prefixes that a workflow's prompts begin with, and copies those from this place of the list on, as many as take
    /// milliseconds. None if no page was computed for the workflow.
    pub fn copy_prefixes(
        &self,
        namespace: Namespace,
        workflow: calls::WorkflowId,
        from: usize,
    ) -> Result<Option<CopiedPages>, SnapshotError> {
        let pages = self.scheduler.new_prefixes(namespace, WorkflowId(workflow.0));
        if pages.is_empty() {
            return Ok(None);
        }
        let page_bytes = KvCache::page_bytes(self.network.spec(), self.cache.precision());
        let most = (COPIED_BYTES / page_bytes).max(1);
        let copied: Vec<PageId> = pages.iter().skip(from).take(most).map(|(_, page)| *page).collect();
        let copies = self.copies_of(&copied)?;
        Ok(Some(CopiedPages { pages, copies, count: copied.len() }))
    }

    /// Copies pages to the main memory. Their conversion to bytes takes several times as long and is left to others.
    fn copies_of(&self, pages: &[PageId]) -> models::Result<KvCache> {
        let copies = KvCache::new(self.network.spec(), pages.len(), self.cache.precision(), &Device::Cpu)?;
        for (index, page) in pages.iter().enumerate() {
            for (from, to) in self.cache.layers().iter().zip(copies.layers()) {
                // A copy from a GPU is of the whole storage that a view is a part of.
                let values = from.narrow(0, page.0 as usize, 1)?.force_contiguous()?;
                to.slice_set(&values.to_device(&Device::Cpu)?, 0, index)?;
            }
        }
        Ok(copies)
    }

    /// Restores saved pages into a namespace, as far as there is room; returns the number of tokens.
    pub fn load_prefixes(&mut self, namespace: Namespace, saved: &Saved) -> Result<usize, SnapshotError> {
        let cache = &self.cache;
        let fill = |index, page: PageId| cache.write_page(page.0 as usize, saved.page(index));
        Ok(self.scheduler.restore(namespace, &saved.books, fill)? * PAGE_TOKENS)
    }
}
