//! What an encoder says of a text: one vector, and for BGE-M3 also weights of its words and a vector for every token.
//!
//! BGE-M3 (arXiv 2402.03216, section 3.1): *dense* is the normalised state of the first token; *sparse* gives every token
//! the weight `relu(w·h + b)`, of which each token id keeps the largest; `<s>`, `</s>`, `<pad>` and `<unk>` have none;
//! *ColBERT* is a normalised linear image of every state but the first. All three come from one pass.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use candle_core::{Device, Tensor};
use kernels::embedding::Pool;
use kernels::ops;

use crate::encoder::ranges;
use crate::error::{ModelError, Result};
use crate::linear::Linear;
use crate::manifest::Pooling;
use crate::weights::Weights;

/// The two additional heads of BGE-M3.
#[derive(Debug)]
pub struct Heads {
    /// `[1, H]`
    pub sparse: Linear,
    /// `[H, H]`
    pub colbert: Linear,
}

/// What was said of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Representation {
    /// `[H]`, of length 1.
    pub dense: Vec<f32>,
    /// Weights of token ids above 0, by id.
    pub sparse: Option<Vec<(u32, f32)>>,
    /// `[T - 1][H]`, each of length 1: every token but the first.
    pub colbert: Option<Vec<Vec<f32>>>,
}

impl Heads {
    /// Reads `sparse_linear` and `colbert_linear`, as `.safetensors` or as the `.pt` that BGE-M3 publishes, from a folder;
    /// `None` if the folder has neither.
    ///
    /// # Errors
    /// If only one of the two is there, or one is damaged.
    pub fn load(folder: &Path, hidden: usize, device: &Device) -> Result<Option<Heads>> {
        let sparse = head(folder, "sparse_linear", 1, hidden, device)?;
        let colbert = head(folder, "colbert_linear", hidden, hidden, device)?;
        match (sparse, colbert) {
            (Some(sparse), Some(colbert)) => Ok(Some(Heads { sparse, colbert })),
            (None, None) => Ok(None),
            (sparse, _) => {
                let missing = if sparse.is_none() { "sparse_linear.pt" } else { "colbert_linear.pt" };
                Err(ModelError::NotACheckpoint { path: folder.to_owned(), missing: missing.to_owned() })
            }
        }
    }
}

fn head(folder: &Path, name: &str, rows: usize, cols: usize, device: &Device) -> Result<Option<Linear>> {
    let Some(weights) = Weights::open_head(folder, name)? else { return Ok(None) };
    let bias = weights.values("bias", &[rows])?;
    Linear::new(weights.weight("weight", rows, cols, device)?, Some(bias), device).map(Some)
}

/// What the hidden states `[N, H]` of texts that lie end to end say; `unweighted` are the ids without a lexical weight.
///
/// # Errors
/// If the computation fails or gives no numbers.
pub fn represent(
    hidden: &Tensor,
    texts: &[Vec<u32>],
    pooling: Pooling,
    heads: Option<&Heads>,
    unweighted: &[u32],
) -> Result<Vec<Representation>> {
    let rows = ranges(texts);
    let pool = if pooling == Pooling::Mean { Pool::Mean } else { Pool::First };
    let dense = ops::pool_unit(hidden, &rows, pool)?.to_vec2::<f32>()?;
    let dense = dense.into_iter().map(direction);
    let Some(heads) = heads else {
        return dense.map(|dense| Ok(Representation { dense: dense?, sparse: None, colbert: None })).collect();
    };
    let ids = texts.concat();
    let weights = heads.sparse.forward(hidden)?.flatten_all()?; // [N]
    let weights = ops::sparse_max(&weights, &ids, &rows)?.to_vec1::<f32>()?;
    let images = ops::unit_rows(&heads.colbert.forward(hidden)?)?.to_vec2::<f32>()?; // [N, H]
    let say = |(dense, rows): (Result<Vec<f32>>, Range<usize>)| {
        let words = rows.clone().map(|row| (ids[row], weights[row]));
        let sparse: BTreeMap<u32, f32> =
            words.filter(|(id, weight)| *weight > 0.0 && !unweighted.contains(id)).collect();
        let colbert = images[rows.start + 1..rows.end].iter().cloned().map(direction).collect::<Result<_>>()?;
        Ok(Representation { dense: dense?, sparse: Some(sparse.into_iter().collect()), colbert: Some(colbert) })
    };
    dense.zip(rows).map(say).collect()
}

/// A vector of length 1, if it came out as one.
fn direction(vector: Vec<f32>) -> Result<Vec<f32>> {
    if vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0) {
        Ok(vector)
    } else {
        Err(ModelError::config("the embedding is not a number"))
    }
}

/// The lexical score of two texts: the products of the weights of the tokens that they share, summed up.
pub fn lexical_score(query: &[(u32, f32)], text: &[(u32, f32)]) -> f32 {
    let weight = |id: u32| text.binary_search_by_key(&id, |(id, _)| *id).map_or(0.0, |at| text[at].1);
    query.iter().map(|(id, w)| w * weight(*id)).sum()
}

/// ColBERT's late interaction: every query vector takes its best text vector; the mean over the query.
pub fn max_sim(query: &[Vec<f32>], text: &[Vec<f32>]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let best = |q: &Vec<f32>| text.iter().map(|t| dot(q, t)).fold(f32::NEG_INFINITY, f32::max);
    query.iter().map(best).sum::<f32>() / query.len() as f32
}
