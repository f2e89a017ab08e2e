//! Tokens of encoders: whatever a `tokenizer.json` says, with the special tokens that the encoder expects.

use std::ops::Range;
use std::path::Path;

use tokenizers::Tokenizer as HfTokenizer;

use crate::error::{ModelError, Result};
use crate::files;
use crate::tokenizer::{parse, pieces};

/// An encoder's tokenizer.
pub struct EncoderTokenizer {
    inner: HfTokenizer,
    special_tokens: usize,
    unweighted: Vec<u32>,
}

/// The tokens without a lexical weight, as in FlagEmbedding; `<mask>` has one.
const UNWEIGHTED: [&str; 4] = ["<s>", "</s>", "<pad>", "<unk>"];

impl EncoderTokenizer {
    /// Reads a `tokenizer.json`; its own truncation and padding are switched off.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_file(path: &Path) -> Result<EncoderTokenizer> {
        let mut inner = parse(files::read(path)?)?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(unusable)?;
        let special_tokens = inner.encode_fast("", true).map_err(unusable)?.len();
        let unweighted = UNWEIGHTED.iter().filter_map(|token| inner.token_to_id(token)).collect();
        Ok(EncoderTokenizer { inner, special_tokens, unweighted })
    }

    /// Special tokens that [`EncoderTokenizer::encode`] adds to a text.
    pub fn special_tokens(&self) -> usize {
        self.special_tokens
    }

    /// Ids without a lexical weight.
    pub fn unweighted(&self) -> &[u32] {
        &self.unweighted
    }

    /// Tokens of a text with the special tokens around it.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.inner.encode_fast(text, true).map_err(unusable)?.get_ids().to_vec())
    }

    /// About how many tokens a text has, as [`Tokenizer::count`](crate::Tokenizer::count) counts them.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn count(&self, text: &str) -> Result<usize> {
        pieces(text).map(|piece| Ok(self.inner.encode_fast(piece, false).map_err(unusable)?.len())).sum()
    }

    /// Byte ranges of the tokens of a text, special tokens not counted.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn spans(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let encoding = self.inner.encode(text, false).map_err(unusable)?;
        Ok(encoding.get_offsets().iter().map(|(start, end)| *start..*end).collect())
    }
}

impl std::fmt::Debug for EncoderTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncoderTokenizer")
    }
}

fn unusable(reason: impl ToString) -> ModelError {
    ModelError::Tokenizer { reason: reason.to_string() }
}
