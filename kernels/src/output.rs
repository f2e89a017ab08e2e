//! What a kernel gives: values that its tasks write, and that nobody cleared before.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::pool::{Disjoint, parallel_for};

/// `len` values, of which tasks write `part` each; `write` is told which.
///
/// # Safety
/// `write` must write every value of the part that it is given.
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
    // SAFETY: every value was written, as the caller promises.
    unsafe { out.set_len(len) };
    out
}
