//! Tokens of encoders: whatever a `tokenizer.json` says, with the special tokens that the encoder expects.

use std::ops::Range;
use std::path::Path;

use tokenizers::Tokenizer as HfTokenizer;

use crate::error::{ModelError, Result};

/// An encoder's tokenizer.
pub struct EncoderTokenizer {
    inner: HfTokenizer,
    special_tokens: usize,
    specials: Vec<u32>,
}

impl EncoderTokenizer {
    /// Reads a `tokenizer.json`; its own truncation and padding are switched off.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_file(path: &Path) -> Result<EncoderTokenizer> {
        let bytes = std::fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        let mut inner = HfTokenizer::from_bytes(bytes).map_err(unusable)?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(unusable)?;
        // A text that mentions `<pad>` or `<mask>` contains no such token.
        inner.set_encode_special_tokens(true);
        let special_tokens = inner.encode_fast("", true).map_err(unusable)?.len();
        let added = inner.get_added_tokens_decoder();
        let specials = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        Ok(EncoderTokenizer { inner, special_tokens, specials })
    }

    /// Special tokens that [`EncoderTokenizer::encode`] adds to a text.
    pub fn special_tokens(&self) -> usize {
        self.special_tokens
    }

    /// Ids that are no words.
    pub fn specials(&self) -> &[u32] {
        &self.specials
    }

    /// Tokens of a text with the special tokens around it.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.inner.encode_fast(text, true).map_err(unusable)?.get_ids().to_vec())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokenizer() -> EncoderTokenizer {
        let names = ["<s>", "</s>", "<pad>", "<mask>"];
        let special = |(id, name): (usize, &&str)| {
            json!({ "id": id, "content": name, "single_word": false, "lstrip": *name == "<mask>", "rstrip": false,
                "normalized": false, "special": true })
        };
        let added: Vec<_> = names.iter().enumerate().map(special).collect();
        let words = ["<s>", "</s>", "<pad>", "<mask>", "<", ">", "pad", "mask", "a", "b"];
        let vocab: serde_json::Map<_, _> =
            words.iter().zip(0..).map(|(word, id)| ((*word).to_owned(), json!(id))).collect();
        let special = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
        let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null, "decoder": null,
            "pre_tokenizer": { "type": "Sequence", "pretokenizers": [{ "type": "Whitespace" }, { "type": "Punctuation", "behavior": "Isolated" }] },
            "post_processor": { "type": "TemplateProcessing", "single": [special("<s>"), text, special("</s>")], "pair": [text],
                "special_tokens": { "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] }, "</s>": { "id": "</s>", "ids": [1], "tokens": ["</s>"] } } },
            "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "a" },
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, json.to_string()).unwrap();
        EncoderTokenizer::from_file(&path).unwrap()
    }

    #[test]
    fn the_name_of_a_special_token_in_a_text_is_plain_text() {
        let tokenizer = tokenizer();
        assert_eq!(tokenizer.encode("a <pad> b").unwrap(), [0, 8, 4, 6, 5, 9, 1]);
        assert_eq!(tokenizer.encode("a <mask> b").unwrap(), [0, 8, 4, 7, 5, 9, 1]);
        assert_eq!(tokenizer.encode("</s>").unwrap().last(), Some(&1));
        assert_eq!(tokenizer.encode("</s>").unwrap().iter().filter(|id| **id == 1).count(), 1);
        assert_eq!(tokenizer.special_tokens(), 2);
        assert_eq!(tokenizer.spans("a <pad>").unwrap().len(), 4);
    }
}
