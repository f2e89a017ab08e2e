//! Vectors of texts, compared exhaustively.

use std::collections::HashMap;

use calls::{Embedder, Embedding, Heads};
use store::{Hit, PassageId};

use crate::Result;

/// Texts that are embedded in one call.
const BATCH: usize = 64;

/// The embedder's outputs for some texts.
#[derive(Default)]
pub(super) struct Vectors {
    embeddings: Vec<Embedding>,
    /// How many texts were longer than the embedder's window.
    pub cut: usize,
}

impl Vectors {
    /// Embeds texts; longer texts are truncated to the embedder's window, and counted. `progress` gets the number done.
    pub async fn of(
        texts: &[impl AsRef<str>],
        embedder: &dyn Embedder,
        heads: Heads,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vectors> {
        let mut vectors = Vectors::default();
        for batch in texts.chunks(BATCH) {
            let beginnings: Vec<&str> = batch.iter().map(|text| head(text.as_ref(), embedder)).collect();
            vectors.cut +=
                batch.iter().zip(&beginnings).filter(|(text, head)| text.as_ref().len() > head.len()).count();
            let beginnings = beginnings.into_iter().map(str::to_owned).collect();
            vectors.embeddings.extend(embedder.encode(beginnings, heads).await?);
            progress(vectors.embeddings.len());
        }
        Ok(vectors)
    }

    /// The vectors of the text with this number.
    pub fn get(&self, number: usize) -> &Embedding {
        &self.embeddings[number]
    }

    /// True if every text has the output that `has` checks.
    pub fn all(&self, has: impl Fn(&Embedding) -> bool) -> bool {
        self.embeddings.iter().all(has)
    }

    /// The `k` texts with the highest scores, by number; the lower number first among equals.
    pub fn nearest(&self, k: usize, score: impl Fn(&Embedding) -> f32) -> Vec<Hit> {
        let scores = self.embeddings.iter().map(score);
        let mut hits: Vec<Hit> = (0..).zip(scores).map(|(id, score)| Hit { passage: PassageId(id), score }).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(k);
        hits
    }
}

/// The cosine of two vectors of length 1.
pub(super) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of products of the weights of tokens that both texts have (BGE-M3's lexical matching score).
pub(super) fn lexical_match(query: &[(u32, f32)], passage: &[(u32, f32)]) -> f32 {
    let weights: HashMap<u32, f32> = passage.iter().copied().collect();
    query.iter().filter_map(|(id, weight)| Some(weight * weights.get(id)?)).sum()
}

/// MaxSim: the mean, over the query's tokens, of the highest cosine with any token of the passage (Khattab and Zaharia
/// 2020; BGE-M3 divides by the number of the query's tokens).
pub(super) fn max_sim(query: &[Vec<f32>], passage: &[Vec<f32>]) -> f32 {
    let best = |token: &Vec<f32>| passage.iter().map(|other| cosine(token, other)).fold(f32::MIN, f32::max);
    if passage.is_empty() { 0.0 } else { query.iter().map(best).sum::<f32>() / query.len().max(1) as f32 }
}

/// The beginning of a text that the embedder reads.
fn head<'a>(text: &'a str, embedder: &dyn Embedder) -> &'a str {
    let mut head = text;
    // A tokenizer may need more tokens for a prefix than for the same characters within the whole text.
    while let Some(left_out) = embedder.token_spans(head).get(embedder.window_tokens()) {
        head = &head[..head.floor_char_boundary(left_out.start)];
    }
    head
}
