//! The memory that training may take.

use anyhow::Result;
use indicatif::BinaryBytes;
use launch::failure::refusal;
use launch::flags::GlobalFlags;
use launch::memory_budget::{free_bytes, release};

/// The most that training takes unless the user allows more; a machine with less free memory gives three quarters of it.
const USUAL: u64 = 4 << 30;

/// The memory that training may take, the weights of the model included. With little, activations are computed twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    bytes: u64,
    /// Free memory, where the system reports it.
    free: Option<u64>,
}

impl Limit {
    /// By what is free now, before the model is loaded; `asked` is the user's limit.
    pub fn now(asked: Option<u64>, global: &GlobalFlags) -> Limit {
        // What the model that wrote questions, or training before, has left.
        release(global);
        Limit::new(asked, free_bytes())
    }

    fn new(asked: Option<u64>, free: Option<u64>) -> Limit {
        let usual = || free.map_or(USUAL, |free| USUAL.min(free / 4 * 3));
        let bytes = asked.map_or_else(usual, |asked| asked.min(free.unwrap_or(u64::MAX)));
        Limit { bytes, free }
    }

    pub fn bytes(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// # Errors
    /// If training needs more.
    pub fn check(self, needed: usize) -> Result<()> {
        let (needed, Limit { bytes, free }) = (needed as u64, self);
        if needed <= bytes {
            return Ok(());
        }
        let hint = match free.filter(|free| *free < needed) {
            Some(free) => format!("{} are free: stop other programs, or train a smaller model", BinaryBytes(free)),
            None => format!("allow more: --memory {}MiB, or train a smaller model", needed.div_ceil(1 << 20)),
        };
        let sizes = [needed, bytes].map(BinaryBytes);
        Err(refusal(format!("training this model needs {} of memory; {} are allowed", sizes[0], sizes[1]), hint))
    }
}

#[cfg(test)]
mod tests {
    use ::train::memory::{Plan, parameters};
    use launch::failure::hint_of;
    use models::adapter::Projection;
    use models::{DecoderSpec, Spec};
    use serde_json::json;

    use super::*;

    const GIB: u64 = 1 << 30;

    /// What training needs for a network of Qwen2.5's shape.
    fn needed(hidden: usize, ffn: usize, layers: usize, heads: usize) -> usize {
        let spec = Spec::from_config(&json!({
            "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "vocab_size": 151_936,
            "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": 2, "max_position_embeddings": 32_768, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
            "tie_word_embeddings": true, "use_sliding_window": false,
        }));
        let Ok(Spec::Decoder(spec)) = spec else { panic!("{spec:?}") };
        let least = |spec: &DecoderSpec| Plan::least(spec, parameters(spec, 8, &Projection::ALL), 2048);
        least(&spec)
    }

    #[test]
    fn a_model_of_half_a_billion_weights_trains_with_four_gib_free() {
        let half = needed(896, 4864, 24, 14);
        assert!((2 * GIB..3 * GIB).contains(&(half as u64)), "{half}");
        assert!(Limit::new(None, Some(4 * GIB)).check(half).is_ok());
        assert!(Limit::new(None, Some(2 * GIB)).check(half).is_err());
    }

    #[test]
    fn a_larger_model_trains_where_the_user_allows_the_memory_that_is_free() {
        let larger = needed(1536, 8960, 28, 12);
        let hint = |limit: Limit| hint_of(&limit.check(larger).unwrap_err()).unwrap();
        let usual = hint(Limit::new(None, Some(16 * GIB)));
        assert_eq!(usual, format!("allow more: --memory {}MiB, or train a smaller model", larger.div_ceil(1 << 20)));
        assert!(Limit::new(Some(12 * GIB), Some(16 * GIB)).check(larger).is_ok());
        assert!(Limit::new(Some(12 * GIB), None).check(larger).is_ok());
        let scarce = hint(Limit::new(Some(12 * GIB), Some(5 * GIB)));
        assert_eq!(scarce, "5.00 GiB are free: stop other programs, or train a smaller model");
    }
}
