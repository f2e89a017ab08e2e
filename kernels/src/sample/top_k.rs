//! The most likely tokens of a row of logits, so that a step copies ids from a GPU instead of whole rows.
//!
//! # Contract
//! Of the tokens that a mask allows and whose logits are above -inf, the `wanted` largest, largest first, equal ones in the
//! order of their ids. A row with a NaN logit is reported.
//!
//! # Numerics
//! Exact.
//!
//! # Cost
//! Reads a row of V logits once for k = 1, seven times for more; on a GPU bound by the L2 cache.

use crate::cpu::active_isa;
use crate::per_isa::per_isa;
use crate::pool::{Disjoint, parallel_for};

/// Largest k.
pub const MAX_TOP_K: usize = 64;

/// The top-k request of one row.
#[derive(Debug, Clone, Copy)]
pub struct TopKRequest<'a> {
    /// Bit `id % 32` of word `id / 32` says whether a token is allowed, no token beyond its end; all are if there is no mask.
    pub mask: Option<&'a [u32]>,
    /// How many tokens, from 1 to [`MAX_TOP_K`].
    pub wanted: usize,
}

/// Tokens and their logits.
pub type TopK = Vec<(u32, f32)>;

/// [`top_k`] of each row of `logits: [R, V]`.
///
/// # Panics
/// If there are fewer rows than requests.
pub fn top_k_rows(logits: &[f32], width: usize, requests: &[TopKRequest<'_>]) -> Vec<Option<TopK>> {
    let mut found = vec![None; requests.len()];
    let all = Disjoint::new(&mut found);
    parallel_for(requests.len(), &|row| {
        // SAFETY: every task owns one row.
        let found = unsafe { all.part(row, 1) };
        found[0] = top_k(&logits[row * width..][..width], requests[row]);
    });
    found
}

/// The most likely tokens of one row; `None` if a logit is no number.
pub fn top_k(logits: &[f32], request: TopKRequest<'_>) -> Option<TopK> {
    let mut most = None;
    largest(active_isa(), logits, &mut most);
    let most = most?;
    let bit = |mask: &[u32], id: u32| mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1);
    let allowed = |id: u32| request.mask.is_none_or(|mask| bit(mask, id));
    if request.wanted == 1 && most > f32::NEG_INFINITY {
        // Most masks allow the most likely token.
        let mut ids = (0..).zip(logits).filter(|(_, logit)| **logit == most);
        if let Some((id, logit)) = ids.find(|(id, _)| allowed(*id)) {
            return Some(vec![(id, *logit)]);
        }
    }
    let tokens = (0..).zip(logits.iter().copied());
    let tokens = tokens.filter(|(id, logit)| *logit > f32::NEG_INFINITY && allowed(*id));
    // Zero and minus zero are equal.
    let order = |a: &(u32, f32), b: &(u32, f32)| (b.1 + 0.0).total_cmp(&(a.1 + 0.0)).then(a.0.cmp(&b.0));
    let wanted = request.wanted.min(MAX_TOP_K);
    if wanted == 1 {
        return Some(tokens.min_by(order).into_iter().collect());
    }
    let mut tokens: TopK = tokens.collect();
    if wanted < tokens.len() {
        tokens.select_nth_unstable_by(wanted, order);
        tokens.truncate(wanted);
    }
    tokens.sort_unstable_by(order);
    Some(tokens)
}

per_isa! {
    /// The largest logit, or `None` if one is NaN.
    fn largest(isa, logits: &[f32], found: &mut Option<f32>) = largest_of;
}

#[inline(always)]
fn largest_of(logits: &[f32], found: &mut Option<f32>) {
    // Independent partial maxima, so that lanes do not depend on each other.
    let (mut largest, mut unsound) = ([f32::NEG_INFINITY; 16], [0u32; 16]);
    let (whole, rest) = logits.as_chunks::<16>();
    for chunk in whole {
        for lane in 0..16 {
            let x = chunk[lane];
            largest[lane] = if x > largest[lane] { x } else { largest[lane] };
            unsound[lane] |= u32::from(x.is_nan());
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        largest[lane] = if *x > largest[lane] { *x } else { largest[lane] };
        unsound[lane] |= u32::from(x.is_nan());
    }
    let sound = unsound == [0; 16];
    *found = sound.then(|| largest.into_iter().fold(f32::NEG_INFINITY, f32::max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_ties_and_infinities_are_heeded() {
        let check = |logits: &[f32], mask: Option<&[u32]>, wanted, expect: Option<&[u32]>| {
            let found = top_k(logits, TopKRequest { mask, wanted });
            let ids = found.map(|found| found.iter().map(|(id, _)| *id).collect::<Vec<_>>());
            assert_eq!(ids.as_deref(), expect, "{logits:?}");
        };
        let logits = [1.0, 3.0, f32::NEG_INFINITY, 3.0, 2.0];
        check(&logits, None, 3, Some(&[1, 3, 4]));
        check(&logits, None, 1, Some(&[1]));
        check(&logits, None, 0, Some(&[]));
        check(&logits, Some(&[0b11001]), 9, Some(&[3, 4, 0]));
        check(&logits, Some(&[0b11001]), 1, Some(&[3]));
        check(&logits, Some(&[0b10001]), 1, Some(&[4]));
        check(&logits, Some(&[0b100]), 1, Some(&[]));
        check(&[f32::NEG_INFINITY; 3], None, 1, Some(&[]));
        let mut wide = [1.0; 40];
        wide[35] = 2.0;
        check(&wide, Some(&[0b110]), 1, Some(&[1]));
        check(&wide, Some(&[0b110]), 3, Some(&[1, 2]));
        check(&[0.0, -0.0, 0.0], None, 2, Some(&[0, 1]));
        check(&[0.0, f32::NAN], None, 1, None);
    }
}
