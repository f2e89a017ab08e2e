//! The pages of a device and which of them are free.

/// One page of keys and values, over all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

/// A fixed number of pages.
#[derive(Debug)]
pub struct PagePool {
    free: Vec<PageId>,
    total: usize,
}

impl PagePool {
    /// A pool of `total` free pages.
    pub fn new(total: usize) -> PagePool {
        let ids = (0..u32::try_from(total).unwrap_or(u32::MAX)).rev();
        PagePool { free: ids.map(PageId).collect(), total }
    }

    /// Takes a free page; its contents are undefined.
    pub fn allocate(&mut self) -> Option<PageId> {
        self.free.pop()
    }

    /// Takes a page out of the pool for good.
    pub fn withdraw(&mut self) -> Option<PageId> {
        let page = self.free.pop()?;
        self.total -= 1;
        Some(page)
    }

    /// Gives a page back.
    pub fn release(&mut self, page: PageId) {
        debug_assert!(!self.free.contains(&page), "{page:?} released twice");
        self.free.push(page);
    }

    /// Free pages.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Pages in all.
    pub fn total(&self) -> usize {
        self.total
    }
}
