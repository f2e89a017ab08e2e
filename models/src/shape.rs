//! The dimensions of a decoder, and the memory that follows from them.

use serde::Deserialize;

/// The dimensions of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub layers: usize,
    pub hidden: usize,
    pub heads: usize,
    /// Key and value heads.
    pub key_heads: usize,
    pub head_dim: usize,
    /// Of one expert, if there are experts.
    pub ffn: usize,
    /// Experts of a layer; 0 without.
    #[serde(default)]
    pub experts: usize,
    pub vocab: usize,
    /// The output matrix is the token embedding.
    pub tied: bool,
}

impl Shape {
    /// Number of weights, without norms and biases.
    pub fn parameters(self) -> u64 {
        let attention = 2 * (self.heads + self.key_heads) * self.head_dim * self.hidden;
        let embeddings = if self.tied { 1 } else { 2 } * self.vocab * self.hidden;
        let feed_forward = 3 * self.hidden * self.ffn * self.experts.max(1) + self.hidden * self.experts;
        (self.layers * (attention + feed_forward) + embeddings) as u64
    }

    /// Keys and values of a token in 16 bits.
    pub fn kv_bytes_per_token(self) -> u64 {
        (2 * 2 * self.layers * self.key_heads * self.head_dim) as u64
    }

    /// Activations of a row of a step that exist together, in `f32`: the residual stream and its norm, queries, keys, values
    /// and their mixture, or gate, up and their product.
    pub fn row_bytes(self) -> u64 {
        let attention = (2 * self.heads + 2 * self.key_heads) * self.head_dim;
        // The sums of experts, and inputs, products and outputs of one of them, to which all rows may go.
        let experts = if self.experts > 0 { 3 * self.hidden + self.experts } else { 0 };
        (4 * (2 * self.hidden + attention.max(3 * self.ffn + experts))) as u64
    }
}
