//! Uninitialised output buffers that tasks fill in parallel.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::pool::{Disjoint, parallel_for};

/// `len` values in parts of `part`; one task calls `write` with the range and the memory of each part.
///
/// # Safety
/// `write` must initialise every value of its part.
pub(crate) unsafe fn in_parts(
    len: usize,
    part: usize,
    write: impl Fn(Range<usize>, &mut [MaybeUninit<f32>]) + Sync,
) -> Vec<f32> {
    let mut out = Vec::with_capacity(len);
    let parts = Disjoint::new(&mut out.spare_capacity_mut()[..len]);
    parallel_for(len.div_ceil(part.max(1)), &|task| {
        let range = task * part..len.min((task + 1) * part);
        // SAFETY: every task owns one part.
        write(range.clone(), unsafe { parts.part(range.start, range.len()) });
    });
    // SAFETY: every value was written, as the caller guarantees.
    unsafe { out.set_len(len) };
    out
}
