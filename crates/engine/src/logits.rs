//! Requests for rows of logits and their results: a sampled token, or the whole row.

use std::sync::Arc;

use models::Output;
use models::sample::{Adjustment, Drawn};

use crate::sample::Sampler;

/// A request for one row of logits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// The tokens whose logits are computed, ascending; all if `None`.
    pub outputs: Option<Vec<u32>>,
    pub purpose: Purpose,
}

/// What a row is used for.
#[derive(Debug, Clone, Default)]
pub(crate) enum Purpose {
    /// All logits are read.
    #[default]
    All,
    /// A token is drawn.
    Draw(RowDraw),
    /// It is not read.
    Nothing,
}

/// A draw from one row.
#[derive(Debug, Clone)]
pub(crate) struct RowDraw {
    pub sampler: Sampler,
    /// Bit `id % 32` of word `id / 32` says whether a token is allowed.
    pub mask: Arc<[u32]>,
    pub adjustments: Arc<Vec<Adjustment>>,
    /// Tokens of the reply before this one.
    pub position: usize,
}

/// The result for one row.
#[derive(Debug)]
pub(crate) enum Logits {
    All(Vec<f32>),
    /// The drawn token; none if no token is allowed.
    Drawn(Option<u32>),
    /// Logits were not needed.
    Unused,
}

/// Reads every row; `None` for a row with NaN. The ids of `padding` have no probability in rows of which all logits are read.
pub(crate) fn read(output: &mut Output, wanted: &[Wanted], padding: &[u32]) -> models::Result<Vec<Option<Logits>>> {
    let without_padding = |mut logits: Vec<f32>| {
        padding.iter().for_each(|id| logits[*id as usize] = f32::NEG_INFINITY);
        Logits::All(logits)
    };
    let mut read = Vec::new();
    let mut draws = Vec::new();
    for (row, wanted) in wanted.iter().enumerate() {
        read.push(match &wanted.purpose {
            Purpose::All => output.row(row)?.map(without_padding),
            Purpose::Nothing => Some(Logits::Unused),
            Purpose::Draw(RowDraw { sampler, mask, adjustments, position }) => {
                draws.push((row, sampler.request(Some(mask), adjustments, *position)));
                None
            }
        });
    }
    for ((row, _), drawn) in draws.iter().zip(output.draw(&draws)?) {
        read[*row] = match drawn {
            Drawn::Token(token) => Some(Logits::Drawn(Some(token))),
            Drawn::Nothing => Some(Logits::Drawn(None)),
            Drawn::NotFinite => None,
        };
    }
    Ok(read)
}
