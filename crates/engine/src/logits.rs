//! Requests for rows of logits and their results: whole rows, or the top k tokens that sampling needs. From a GPU only
//! the top k are copied.

use std::sync::Arc;

use models::Output;
use models::sample::{TopK, TopKRequest};

/// A request for one row of logits.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The tokens whose logits are computed, ascending; all if `None`.
    pub outputs: Option<Vec<u32>>,
    /// Allowed tokens: bit `id % 32` of word `id / 32`; `None` if the mask is not known.
    pub mask: Option<Arc<[u32]>>,
    /// How many of the most likely tokens are needed; `None` for all logits.
    pub few: Option<usize>,
}

impl Wanted {
    fn top_k_request(&self) -> TopKRequest<'_> {
        TopKRequest { mask: self.mask.as_deref(), wanted: self.few.unwrap_or(1) }
    }
}

/// The result for a row.
#[derive(Debug)]
pub(crate) enum Logits {
    /// All logits, and the mask if it is known.
    All(Vec<f32>, Option<Arc<[u32]>>),
    /// The most likely allowed tokens, in descending order.
    Few(TopK),
}

/// Reads every row; `None` for a row with NaN.
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

/// Sets to -inf the logits that a mask does not allow, and those beyond its end.
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
