//! The global allocator: large allocations use huge pages, and freed blocks are cached for reuse.
//!
//! Weights and KV pages are streamed at gigabytes per second. With 4 KiB pages a good part of that time is TLB misses, most of
//! all in virtual machines, where a page walk is nested. Linux provides 2 MiB pages on request (`madvise`); the gain is
//! measured by `cargo bench -p kernels --bench limits`.
//!
//! The output of a layer is a few megabytes that live until the next layer. The system would unmap such a block at once and
//! clear it page by page at the next allocation, which took a third of the time of a small encoder. A thread that runs
//! networks therefore [caches its blocks](retain_blocks), [`MAX_KEPT`] bytes at most; blocks of other threads, such as
//! those of model loading, are returned to the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// The system allocator with huge pages for large blocks and a cache of blocks that the next step needs again.
#[derive(Debug, Clone, Copy)]
pub struct LargePages;

const PAGE_BYTES: usize = 2 << 20;
/// Blocks from this size on have huge pages.
const ADVISED_BYTES: usize = 2 * PAGE_BYTES;

thread_local! {
    static KEEPS: Cell<bool> = const { Cell::new(false) };
}

/// Enables the block cache for the calling thread: large blocks that it frees are reused by its next allocations.
pub fn retain_blocks() {
    KEEPS.set(true);
}

/// Returns free small blocks to the system, which its allocator otherwise keeps after loading a model.
pub fn release_unused() {
    // SAFETY: it only releases memory that is not allocated.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the cached blocks of all threads and free small blocks to the system: what an unloaded model has left.
pub fn release_cached() {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    while kept.count > 0 {
        let Block { start, layout, .. } = kept.remove(0);
        // SAFETY: a cached block came from the system allocator with this layout, and the cache was its only owner.
        unsafe { System.dealloc(start, layout) };
    }
    drop(kept);
    release_unused();
}

/// Keeps all freed memory in this process and serves large blocks from its heap: for programs that allocate the same
/// gigabytes repeatedly. Training spent 38 % of its time in clearing pages without it.
pub fn keep_everything() {
    // SAFETY: both settings only change how the allocator works from now on.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
    }
}

/// Limits the heaps of the system allocator, which otherwise makes one for almost every thread. A heap returns only whole free
/// pages, so each keeps some of what a model has used: a server without models held 75 MB with all heaps and 46 MB with two,
/// and served eight clients as fast. To be called before other threads start.
///
/// Blocks with huge pages are kept out of the heaps: a part of a heap that held one keeps its huge pages, and a small block
/// there takes 2 MiB from then on. The memory of a server with mixed work grew by 94 MiB/h, and by 47 without them.
pub fn limit_heaps() {
    // SAFETY: the settings only change how the allocator works from now on.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, ADVISED_BYTES as libc::c_int);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * ADVISED_BYTES as libc::c_int);
    }
}

/// Sizes of blocks that are cached.
const KEPT_SIZES: std::ops::RangeInclusive<usize> = 256 << 10..=128 << 20;
/// Upper bounds of the cache: bytes, and blocks.
pub const MAX_KEPT: usize = 256 << 20;
const SLOTS: usize = 32;
/// A cached block is freed after this many other blocks were freed without its reuse: a few steps of a deep network.
const MAX_WAITS: u64 = 1024;

/// Cached blocks, oldest first; each has a size that [`rounded`] returns.
struct Kept {
    blocks: [Block; SLOTS],
    count: usize,
    bytes: usize,
    /// Blocks freed so far.
    came: u64,
}

#[derive(Clone, Copy)]
struct Block {
    start: *mut u8,
    layout: Layout,
    /// Sequence number of the block among all that were freed.
    number: u64,
}

// SAFETY: the list is the only owner of its blocks.
unsafe impl Send for Kept {}

static KEPT: Mutex<Kept> = Mutex::new(Kept::NONE);

impl Kept {
    const NONE: Kept = {
        let block = Block { start: null_mut(), layout: Layout::new::<u8>(), number: 0 };
        Kept { blocks: [block; SLOTS], count: 0, bytes: 0, came: 0 }
    };

    /// Takes a cached block of this layout.
    fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        let at = self.blocks[..self.count].iter().rposition(|kept| kept.layout == layout)?;
        Some(self.remove(at).start)
    }

    /// Caches a block; blocks beyond the bounds or unused for too long go to `free`.
    fn put(&mut self, start: *mut u8, layout: Layout, free: impl Fn(*mut u8, Layout)) {
        let waits_too_long = |kept: &Kept| kept.count > 0 && kept.came - kept.blocks[0].number > MAX_WAITS;
        while self.count == SLOTS || self.bytes + layout.size() > MAX_KEPT || waits_too_long(self) {
            let oldest = self.remove(0);
            free(oldest.start, oldest.layout);
        }
        self.blocks[self.count] = Block { start, layout, number: self.came };
        self.count += 1;
        self.bytes += layout.size();
        self.came += 1;
    }

    fn remove(&mut self, at: usize) -> Block {
        let removed = self.blocks[at];
        self.blocks.copy_within(at + 1..self.count, at);
        self.count -= 1;
        self.bytes -= removed.layout.size();
        removed
    }
}

/// The layout under which a cacheable block is allocated: sizes are rounded up by an eighth at most, so that blocks fit
/// again where shapes differ slightly. Other layouts are unchanged.
fn rounded(layout: Layout) -> Layout {
    let size = layout.size();
    if !KEPT_SIZES.contains(&size) {
        return layout;
    }
    let step = size.next_power_of_two() / 16;
    // SAFETY: the alignment is unchanged, and a size of 128 MiB at most does not overflow.
    unsafe { Layout::from_size_align_unchecked(size.next_multiple_of(step), layout.align()) }
}

fn is_kept(layout: Layout) -> bool {
    KEPT_SIZES.contains(&layout.size()) && KEEPS.get()
}

/// Takes a cached block of this rounded layout.
fn take(layout: Layout) -> Option<*mut u8> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).take(layout)
}

// SAFETY: a block comes from the system allocator with the rounded layout and has one owner at a time: the code that
// allocated it or the cache. `madvise` changes no contents.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let rounded = rounded(layout);
        if is_kept(layout)
            && let Some(block) = take(rounded)
        {
            return block;
        }
        // SAFETY: the same contract as this function's.
        let start = unsafe { System.alloc(rounded) };
        // SAFETY: the block was just allocated, or is null.
        unsafe { advise(start, rounded.size()) }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let rounded = rounded(layout);
        if is_kept(layout)
            && let Some(block) = take(rounded)
        {
            // SAFETY: the block has as many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        // SAFETY: as above.
        let start = unsafe { System.alloc_zeroed(rounded) };
        // SAFETY: as above.
        unsafe { advise(start, rounded.size()) }
        start
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees a valid size.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (from, to) = (rounded(layout), rounded(new));
        if from == to {
            return old;
        }
        if is_kept(layout) || is_kept(new) {
            // SAFETY: both blocks hold the copied bytes, and the old one is freed once.
            return unsafe {
                let start = self.alloc(new);
                if !start.is_null() {
                    start.copy_from_nonoverlapping(old, size.min(layout.size()));
                    self.dealloc(old, layout);
                }
                start
            };
        }
        // SAFETY: as above.
        let start = unsafe { System.realloc(old, from, to.size()) };
        // SAFETY: as above.
        unsafe { advise(start, to.size()) }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the block comes from the system allocator with the rounded layout and is freed once, now or from the cache.
        let free = |block, layout| unsafe { System.dealloc(block, layout) };
        if is_kept(layout) {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).put(start, rounded(layout), free);
        } else {
            free(start, rounded(layout));
        }
    }
}

/// Requests huge pages within `start .. start + len` if the range holds any. A refusal is harmless.
///
/// # Safety
/// The memory is the caller's, or `start` is null.
unsafe fn advise(start: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= ADVISED_BYTES && !start.is_null() {
        let skipped = start.align_offset(PAGE_BYTES);
        let whole = (len - skipped) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the range is within the caller's memory, since less than a page is skipped.
        unsafe { libc::madvise(start.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn memory_of_any_size_is_whole_and_zeros_are_zeros() {
        thread::spawn(memory_is_whole).join().unwrap();
        thread::spawn(|| {
            retain_blocks();
            memory_is_whole();
        })
        .join()
        .unwrap();
    }

    fn memory_is_whole() {
        let sizes = [1, 4096, 255 << 10, 256 << 10, (256 << 10) + 1, PAGE_BYTES, 9 * PAGE_BYTES + 5, 50 << 20];
        // The second time blocks come from the cache.
        for size in sizes.into_iter().chain(sizes) {
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: the layout is not empty, and every block is freed with its current layout.
            unsafe {
                let zeros = LargePages.alloc_zeroed(layout);
                assert!(!zeros.is_null() && std::slice::from_raw_parts(zeros, size).iter().all(|byte| *byte == 0));
                zeros.write_bytes(7, size);
                let grown = LargePages.realloc(zeros, layout, 3 * size);
                assert!(std::slice::from_raw_parts(grown, size).iter().all(|byte| *byte == 7));
                grown.write_bytes(9, 3 * size);
                let three = Layout::from_size_align(3 * size, 64).unwrap();
                let shrunk = LargePages.realloc(grown, three, size);
                assert!(std::slice::from_raw_parts(shrunk, size).iter().all(|byte| *byte == 9));
                LargePages.dealloc(shrunk, layout);
                let block = LargePages.alloc(layout);
                block.write_bytes(1, size);
                LargePages.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn cached_blocks_are_returned_to_the_system() {
        // Tests beside this one cache no block of this size.
        let layout = Layout::from_size_align(60 << 20, 64).unwrap();
        thread::spawn(move || {
            retain_blocks();
            // SAFETY: the layout is not empty, and the block is freed with it.
            unsafe { LargePages.dealloc(LargePages.alloc(layout), layout) };
        })
        .join()
        .unwrap();
        release_cached();
        assert_eq!(take(rounded(layout)), None);
    }

    #[test]
    fn the_oldest_blocks_go_and_a_block_is_kept_once() {
        let mut kept = Kept::NONE;
        let block = |number: usize| std::ptr::without_provenance_mut::<u8>(number);
        let layout = |bytes: usize| Layout::from_size_align(bytes, 64).unwrap();
        let freed = std::cell::RefCell::new(Vec::new());
        let put = |kept: &mut Kept, number: usize, bytes: usize| {
            kept.put(block(number), layout(bytes), |block, _| freed.borrow_mut().push(block.addr()));
        };
        (1..=SLOTS + 2).for_each(|number| put(&mut kept, number, 1 << 20));
        assert_eq!(*freed.borrow(), [1, 2], "there are {SLOTS} slots");
        assert_eq!(kept.take(layout(1 << 20)), Some(block(SLOTS + 2)), "the newest is in the cache");
        assert_eq!(kept.take(layout(2 << 20)), None);
        put(&mut kept, 99, 128 << 20);
        put(&mut kept, 100, 128 << 20);
        assert_eq!(kept.bytes, MAX_KEPT, "all others went");
        assert_eq!([kept.take(layout(128 << 20)), kept.take(layout(128 << 20))], [Some(block(100)), Some(block(99))]);
        assert_eq!((kept.count, kept.bytes, freed.borrow().len()), (0, 0, SLOTS + 1));

        put(&mut kept, 7, 1 << 20);
        for _ in 0..MAX_WAITS {
            put(&mut kept, 8, 2 << 20);
            assert_eq!(kept.take(layout(2 << 20)), Some(block(8)));
        }
        assert_eq!(kept.take(layout(1 << 20)), Some(block(7)), "it waited no longer than it may");
        put(&mut kept, 7, 1 << 20);
        for _ in 0..=MAX_WAITS {
            put(&mut kept, 8, 2 << 20);
            assert_eq!(kept.take(layout(2 << 20)), Some(block(8)));
        }
        assert_eq!((kept.take(layout(1 << 20)), freed.borrow().last()), (None, Some(&7)), "it was not reused");
    }

    #[test]
    fn sizes_are_rounded_by_an_eighth_at_most() {
        for size in [256 << 10, (256 << 10) + 1, 1_000_000, 25_165_824, 128 << 20] {
            let rounded = rounded(Layout::from_size_align(size, 8).unwrap()).size();
            assert!(rounded >= size && rounded - size <= size / 8, "{size} becomes {rounded}");
        }
        assert_eq!(rounded(Layout::from_size_align(1000, 8).unwrap()).size(), 1000);
    }
}
