//! Our tokenizer through llguidance's interface.

use std::sync::Arc;

use models::Tokenizer;
use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// A tokenizer and the trie of its tokens.
pub(crate) struct TokenEnv {
    pub tokenizer: Arc<Tokenizer>,
    /// The tokens that contain a quotation mark.
    pub quoting: Vec<u32>,
    trie: TokTrie,
}

impl TokenEnv {
    /// The tokens below `vocab`; each of `eos` ends a reply.
    ///
    /// # Errors
    /// If the vocabulary has more than 2^32 tokens, or no token ends a reply.
    pub fn new(tokenizer: Arc<Tokenizer>, vocab: usize, eos: &[u32]) -> Result<TokenEnv, String> {
        let size = u32::try_from(vocab).map_err(|error| error.to_string())?;
        let first = *eos.first().ok_or("no token ends a reply")?;
        let quoting = (0..size).filter(|id| tokenizer.bytes(*id).contains(&b'"')).collect();
        let mut words: Vec<Vec<u8>> = (0..size).map(|id| tokenizer.bytes(id).to_vec()).collect();
        for special in tokenizer.specials().filter(|special| *special < size) {
            words[special as usize].insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
        }
        let trie = TokTrie::from(&TokRxInfo::new(size, first), &words).with_eos_tokens(eos);
        Ok(TokenEnv { tokenizer, quoting, trie })
    }

    /// Tokens with exactly these bytes: the tokenizer's own where possible, otherwise the longest that match.
    ///
    /// # Errors
    /// If the tokenizer has no token for one of the bytes.
    pub fn tokens(&self, bytes: &[u8]) -> Result<Vec<u32>, String> {
        let own = std::str::from_utf8(bytes).ok().and_then(|text| self.tokenizer.encode(text).ok()).unwrap_or_default();
        let is_same = |tokens: &[u32]| tokens.iter().flat_map(|token| self.tokenizer.bytes(*token)).eq(bytes);
        if own.len() <= bytes.len()
            && own.iter().all(|token| (*token as usize) < self.trie.vocab_size())
            && is_same(&own)
        {
            return Ok(own);
        }
        let longest = self.trie.greedy_tokenize(bytes);
        if is_same(&longest) { Ok(longest) } else { Err("the tokenizer has no token for one of its bytes".into()) }
    }
}

impl TokenizerEnv for TokenEnv {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode(text).unwrap_or_default())
    }
}
