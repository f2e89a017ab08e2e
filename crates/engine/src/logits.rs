//! What is asked of a row of logits, and what comes back of it: all of them, or the few tokens that a draw needs. From a card
//! the few are copied, not the row.

use std::sync::Arc;

use models::Output;
use models::sample::{TopK, TopKRequest};

/// What one row is wanted for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The tokens whose logits are computed, ascending; all if `None`.
    pub outputs: Option<Vec<u32>>,
    /// Bit `id % 32` of word `id / 32` says whether a token is allowed, if that is known.
    pub mask: Option<Arc<[u32]>>,
    /// How many of the likeliest are enough; `None` if all logits are needed.
    pub few: Option<usize>,
}

impl Wanted {
    fn top_k_request(&self) -> TopKRequest<'_> {
        TopKRequest { mask: self.mask.as_deref(), wanted: self.few.unwrap_or(1) }
    }
}

/// What came back of a row.
#[derive(Debug)]
pub(crate) enum Logits {
    /// All of them, and what is allowed of them, if that is known.
    All(Vec<f32>, Option<Arc<[u32]>>),
    /// The likeliest of those that are allowed, likeliest first.
    Few(TopK),
}

/// Reads every row; `None` for one that is no numbers.
pub(crate) fn read(output: &Output, wanted: &[Wanted]) -> models::Result<Vec<Option<Logits>>> {
    let mut top_k = if wanted.iter().any(|wanted| wanted.few.is_some()) {
        output.top_k(&wanted.iter().map(Wanted::top_k_request).collect::<Vec<_>>())?
    } else {
        vec![None; wanted.len()]
    };
    let row = |(row, wanted): (usize, &Wanted)| match wanted.few {
        Some(_) => Ok(top_k[row].take().map(Logits::Few)),
        None => Ok(output.row(row)?.map(|logits| Logits::All(logits, wanted.mask.clone()))),
    };
    wanted.iter().enumerate().map(row).collect()
}

/// Cfg out what a mask does not allow, and what lies beyond its end.
pub(crate) fn forbid(logits: &mut [f32], mask: &[u32]) {
    for (logits, word) in logits.chunks_mut(32).zip(mask.iter().chain(std::iter::repeat(&0))) {
        let allowed = |bit: usize| word >> bit & 1 == 1;
        (0..logits.len()).filter(|bit| !allowed(*bit)).for_each(|bit| logits[bit] = f32::NEG_INFINITY);
    }
}

#[cfg(test)]
mod tests {
    use super::forbid;

    #[test]
    fn what_a_mask_leaves_out_becomes_impossible() {
        let mut logits: Vec<f32> = (0..70u8).map(f32::from).collect();
        forbid(&mut logits, &[1 << 31 | 1, 0b10]);
        let left: Vec<f32> = logits.into_iter().filter(|logit| logit.is_finite()).collect();
        assert_eq!(left, [0.0, 31.0, 33.0]);
    }
}
