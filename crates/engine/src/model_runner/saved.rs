//! Prefixes that are saved to and restored from snapshots.

use std::path::Path;

use models::{KvCache, PAGE_TOKENS};
use scheduler::{Namespace, PageId, WorkflowId};

use super::ModelRunner;
use crate::snapshot::{Saved, SnapshotError, Writing};

impl ModelRunner {
    /// Saves the pages of the prefixes that a workflow's prompts begin with, if any of them was computed for it;
    /// returns the number of tokens.
    pub fn save_prefixes(
        &self,
        namespace: Namespace,
        workflow: calls::WorkflowId,
        identity: &str,
        path: &Path,
    ) -> Result<usize, SnapshotError> {
        let prefixes = self.scheduler.new_prefixes(namespace, WorkflowId(workflow.0));
        let (books, pages): (Vec<_>, Vec<_>) = prefixes.into_iter().unzip();
        if books.is_empty() {
            return Ok(0);
        }
        let page_bytes = KvCache::page_bytes(self.network.spec(), self.cache.precision());
        let mut writing = Writing::begin(path, identity, namespace, page_bytes, &books)?;
        let mut bytes = Vec::new();
        for page in pages {
            bytes.clear();
            self.cache.read_page(page.0 as usize, &mut bytes)?;
            writing.page(&bytes)?;
        }
        writing.end()?;
        Ok(books.len() * PAGE_TOKENS)
    }

    /// Restores saved pages into a namespace, as far as there is room; returns the number of tokens.
    pub fn load_prefixes(&mut self, namespace: Namespace, saved: &Saved) -> Result<usize, SnapshotError> {
        let cache = &self.cache;
        let fill = |index, page: PageId| cache.write_page(page.0 as usize, saved.page(index));
        Ok(self.scheduler.restore(namespace, &saved.books, fill)? * PAGE_TOKENS)
    }
}
