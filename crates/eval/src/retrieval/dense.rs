//! Vectors of texts, compared one by one.

use calls::Embedder;
use store::{Hit, PassageId};

use crate::Result;

/// Texts that are embedded in one call.
const BATCH: usize = 64;

/// The vectors of some texts, each of length 1.
#[derive(Default)]
pub(super) struct Vectors {
    vectors: Vec<Vec<f32>>,
    /// How many texts were longer than the embedder's window.
    pub cut: usize,
}

impl Vectors {
    /// Embeds texts, of those that are too long the beginning. `progress` is told how many are done.
    pub async fn of(
        texts: &[impl AsRef<str>],
        embedder: &dyn Embedder,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vectors> {
        let mut vectors = Vectors::default();
        for batch in texts.chunks(BATCH) {
            let heads: Vec<&str> = batch.iter().map(|text| head(text.as_ref(), embedder)).collect();
            vectors.cut += batch.iter().zip(&heads).filter(|(text, head)| text.as_ref().len() > head.len()).count();
            let embedded = embedder.embed(heads.into_iter().map(str::to_owned).collect()).await?;
            vectors.vectors.extend(embedded);
            progress(vectors.vectors.len());
        }
        Ok(vectors)
    }

    /// The vector of the text with this number.
    pub fn get(&self, number: usize) -> &[f32] {
        &self.vectors[number]
    }

    /// The `k` texts whose vectors have the highest cosines with `query`, by number; the lower of equals first.
    pub fn nearest(&self, query: &[f32], k: usize) -> Vec<Hit> {
        let score = |vector: &Vec<f32>| vector.iter().zip(query).map(|(a, b)| a * b).sum();
        let scores = self.vectors.iter().map(score);
        let mut hits: Vec<Hit> = (0..).zip(scores).map(|(id, score)| Hit { passage: PassageId(id), score }).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        hits.truncate(k);
        hits
    }
}

/// As much of a text as the embedder reads.
fn head<'a>(text: &'a str, embedder: &dyn Embedder) -> &'a str {
    let mut head = text;
    // A tokenizer may need more tokens for a beginning than for the same signs within the whole.
    while let Some(left_out) = embedder.token_spans(head).get(embedder.window_tokens()) {
        head = &head[..head.floor_char_boundary(left_out.start)];
    }
    head
}
