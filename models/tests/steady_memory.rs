//! Memory of decode steps: once the first have run, further ones take none from the system, and a layer has few allocations.
//!
//! A program of its own, whose allocations it counts.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code, reason = "a global allocator that counts, and what malloc has taken from the system")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::Device;
use kernels::memory::LargePages;
use models::{Batch, KvCache, KvPrecision, LanguageModel, PAGE_TOKENS, PagedSequence};

/// The allocator of the program, with a count of its calls.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { LargePages.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { LargePages.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { LargePages.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { LargePages.dealloc(start, layout) }
    }
}

/// Bytes that malloc has taken from the system.
fn from_system() -> usize {
    // SAFETY: it only reads malloc's counts.
    let counts = unsafe { libc::mallinfo2() };
    counts.arena + counts.hblkhd
}

/// One token for each of some sequences at `position`.
fn decode(model: &LanguageModel, cache: &KvCache, sequences: usize, position: usize) {
    let pages: Vec<Vec<u32>> = (0..sequences as u32).map(|of| (0..16).map(|page| of * 16 + page).collect()).collect();
    let tokens: Vec<u32> = (0..sequences).map(|of| ((of * 613 + position * 31) % 40_000) as u32).collect();
    let positions = vec![position as u32; sequences];
    let slot = |pages: &Vec<u32>| pages[position / PAGE_TOKENS] * PAGE_TOKENS as u32 + (position % PAGE_TOKENS) as u32;
    let slots: Vec<u32> = pages.iter().map(slot).collect();
    let rows: Vec<u32> = (0..sequences as u32).collect();
    let paged: Vec<PagedSequence<'_>> = pages
        .iter()
        .enumerate()
        .map(|(row, pages)| PagedSequence { rows: row..row + 1, past: position, pages })
        .collect();
    let batch = Batch {
        tokens: &tokens,
        positions: &positions,
        slots: &slots,
        sequences: &paged,
        logit_rows: &rows,
        wanted: &[],
    };
    assert!(model.network.forward(batch, cache).unwrap().finite.iter().all(|finite| *finite));
}

/// Allocations of a layer, those of the whole step included: with one sequence 55, with eight 58. One more for each layer and
/// sequence is 66 with eight.
const MAX_ALLOCATIONS: usize = 64;

#[test]
fn decode_steps_have_few_allocations_and_take_no_memory_from_the_system() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let model = LanguageModel::load(&path, &Device::Cpu).unwrap();
    let cache = KvCache::new(model.spec(), 128, KvPrecision::F16, &Device::Cpu).unwrap();
    // All pages are written once: the system gives the memory of the cache as it is first used.
    for sequences in [8, 1] {
        (0..100).for_each(|position| decode(&model, &cache, sequences, position));
        let (before, calls) = (from_system(), CALLS.load(Ordering::Relaxed));
        (100..500).for_each(|position| decode(&model, &cache, sequences, position));
        let calls = (CALLS.load(Ordering::Relaxed) - calls) as f64 / 400.0;
        println!(
            "{sequences} sequences: {calls:.0} allocations a step, {} bytes from the system",
            from_system() - before
        );
        assert_eq!(from_system(), before, "{sequences} sequences");
        let most = MAX_ALLOCATIONS * model.spec().layers;
        assert!(calls <= most as f64, "{sequences} sequences: {calls} allocations a step of at most {most}");
    }
}
