//! Memory in large pages.
//!
//! Weights, keys and values are read front to back, gigabytes a second. In pages of 4 KiB a good part of that time goes into
//! finding where each page is, most of all in virtual machines, where every step of the search is a search itself. Linux
//! gives pages of 2 MiB to whoever asks (`madvise`); what they gain is measured by `cargo bench -p kernels --bench limits`.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator; asks for large pages where memory is large.
#[derive(Debug, Clone, Copy)]
pub struct LargePages;

const PAGE_BYTES: usize = 2 << 20;

// SAFETY: every call is passed on as it is, and advice changes no contents.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        let start = unsafe { System.alloc(layout) };
        // SAFETY: the memory was just given, or there is none.
        unsafe { advise(start, layout.size()) }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let start = unsafe { System.alloc_zeroed(layout) };
        // SAFETY: as above.
        unsafe { advise(start, layout.size()) }
        start
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let start = unsafe { System.realloc(old, layout, size) };
        // SAFETY: as above.
        unsafe { advise(start, size) }
        start
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Asks for large pages within `start .. start + len`, if it holds any. A refusal is no loss.
///
/// # Safety
/// The memory is the caller's, or `start` is null.
unsafe fn advise(start: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= 2 * PAGE_BYTES && !start.is_null() {
        let skipped = start.align_offset(PAGE_BYTES);
        let whole = (len - skipped) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the range lies within the caller's memory, since less than a page is skipped.
        unsafe { libc::madvise(start.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_size_is_whole_and_zeros_are_zeros() {
        for size in [1, 4096, PAGE_BYTES, 2 * PAGE_BYTES, 9 * PAGE_BYTES + 5] {
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: the layout is not empty, and every block is given back with the layout that it then has.
            unsafe {
                let zeros = LargePages.alloc_zeroed(layout);
                assert!(!zeros.is_null() && std::slice::from_raw_parts(zeros, size).iter().all(|byte| *byte == 0));
                zeros.write_bytes(7, size);
                let grown = LargePages.realloc(zeros, layout, 3 * size);
                assert!(std::slice::from_raw_parts(grown, size).iter().all(|byte| *byte == 7));
                grown.write_bytes(9, 3 * size);
                LargePages.dealloc(grown, Layout::from_size_align(3 * size, 64).unwrap());
                let block = LargePages.alloc(layout);
                block.write_bytes(1, size);
                LargePages.dealloc(block, layout);
            }
        }
    }
}
