//! Tokens of decoders: byte-level BPE or SentencePiece's, from a `tokenizer.json` or a GGUF file.
//!
//! Text that users or documents bring is always plain text: a `<|im_end|>` in it is nine ordinary characters, never the
//! token. Only the chat template's own markers become special tokens.

mod sentencepiece;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, DecoderWrapper, PostProcessorWrapper, SplitDelimiterBehavior, Tokenizer as HfTokenizer};

use crate::error::{ModelError, Result};
use crate::files;
use crate::gguf::Metadata;

/// A decoder's tokenizer.
pub struct Tokenizer {
    inner: HfTokenizer,
    /// The bytes of each token; a special token's are its name.
    words: Words,
    /// Special tokens by name.
    specials: HashMap<String, u32>,
    prefix: Prefix,
}

/// Where a prompt gets a space in front of its text: SentencePiece's dummy prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Nowhere,
    /// At its beginning, unless a special token or a space is there.
    Start,
    /// At its beginning and behind every special token.
    Segments {
        /// Also in front of a space.
        doubles: bool,
    },
}

impl Prefix {
    /// True if `segment`, which begins at byte `at` of a prompt, gets a space.
    fn applies(self, segment: &str, at: usize) -> bool {
        let has_space = segment.starts_with([' ', '\u{2581}']);
        let wants = match self {
            Prefix::Nowhere => false,
            Prefix::Start => at == 0 && !has_space,
            Prefix::Segments { doubles } => doubles || !has_space,
        };
        wants && !segment.is_empty()
    }
}

/// Maximum size of a vocabulary; the largest known ones have 262,144 tokens.
const MAX_TOKENS: usize = 1 << 22;

/// The bytes of each token, end to end.
#[derive(Default)]
struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, token: usize) -> Option<&[u8]> {
        let end = *self.ends.get(token)?;
        let start = token.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

/// Parses a `tokenizer.json`; the library panics on some damaged ones.
pub(crate) fn parse(bytes: Vec<u8>) -> Result<HfTokenizer> {
    let parsed = std::panic::catch_unwind(|| HfTokenizer::from_bytes(bytes));
    parsed.map_err(|_| unusable("it is damaged"))?.map_err(unusable)
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// If it is none, or is neither byte-level nor SentencePiece's BPE.
    pub fn from_file(path: &Path) -> Result<Tokenizer> {
        let mut inner = parse(files::read(path)?)?;
        // A prompt is rendered whole; nothing is added to it.
        inner.with_post_processor(None::<PostProcessorWrapper>);
        if matches!(inner.get_decoder(), Some(DecoderWrapper::ByteLevel(_))) {
            return Tokenizer::new(inner, &Spelling::ByteLevel(byte_alphabet()), |_| true);
        }
        let prefix = sentencepiece::take_prefix(&mut inner)?;
        Ok(Tokenizer { prefix, ..Tokenizer::new(inner, &Spelling::Pieces, |_| true)? })
    }

    /// Builds the tokenizer that a GGUF file describes.
    ///
    /// # Errors
    /// If it is neither byte-level BPE nor SentencePiece's, or of a kind whose way of splitting words is not known here.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer> {
        let kinds = metadata.numbers("tokenizer.ggml.token_type")?;
        // Padding ids of the vocabulary have no bytes.
        let is_real = |id: u32| kinds.get(id as usize) != Some(&UNUSED);
        match metadata.text("tokenizer.ggml.model")? {
            "gpt2" => Tokenizer::new(byte_level(metadata, &kinds)?, &Spelling::ByteLevel(byte_alphabet()), is_real),
            "llama" => {
                let inner = sentencepiece::from_gguf(metadata, &kinds)?;
                // As llama.cpp applies it. Gemma's tokenizer has none, and some of its files do not say so.
                let is_gemma = metadata.is_of("gemma3")?;
                let prefix = match metadata.optional_flag("tokenizer.ggml.add_space_prefix")? {
                    Some(false) => Prefix::Nowhere,
                    None if is_gemma => Prefix::Nowhere,
                    None | Some(true) => Prefix::Segments { doubles: true },
                };
                Ok(Tokenizer { prefix, ..Tokenizer::new(inner, &Spelling::Pieces, is_real)? })
            }
            other => Err(ModelError::Unsupported { what: format!("GGUF tokenizer `{other}`") }),
        }
    }

    /// `is_real` is false for padding ids.
    fn new(mut inner: HfTokenizer, spelling: &Spelling, is_real: impl Fn(u32) -> bool) -> Result<Tokenizer> {
        inner.with_padding(None);
        inner.with_truncation(None).map_err(unusable)?;
        inner.set_encode_special_tokens(true);
        let added = inner.get_added_tokens_decoder();
        let size = inner.get_vocab(true).into_values().max().map_or(0, |most| most as usize + 1);
        if size > MAX_TOKENS {
            return Err(unusable(format!("it has the token id {}; ids are below {MAX_TOKENS}", size - 1)));
        }
        let mut words = Words::default();
        for id in 0..u32::try_from(size).unwrap_or(u32::MAX) {
            match (added.get(&id), inner.id_to_token(id)) {
                _ if !is_real(id) => words.push(&[]),
                (Some(token), _) if token.special => words.push(token.content.as_bytes()),
                (Some(token), _) => words.push(&spelling.bytes(&token.content, true)),
                (None, Some(token)) => words.push(&spelling.bytes(&token, false)),
                (None, None) => words.push(&[]),
            }
        }
        let specials = added.iter().filter(|(_, token)| token.special).map(|(id, token)| (token.content.clone(), *id));
        Ok(Tokenizer { specials: specials.collect(), words, inner, prefix: Prefix::Nowhere })
    }

    /// Number of token ids; a network's vocabulary may be padded beyond it.
    pub fn len(&self) -> usize {
        self.words.ends.len()
    }

    /// True if there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.words.ends.is_empty()
    }

    /// The id of a special token.
    pub fn special(&self, name: &str) -> Option<u32> {
        self.specials.get(name).copied()
    }

    /// Ids of all special tokens.
    pub fn specials(&self) -> impl Iterator<Item = u32> {
        self.specials.values().copied()
    }

    /// The bytes of a token; empty for an id beyond the vocabulary.
    pub fn bytes(&self, token: u32) -> &[u8] {
        self.words.get(token as usize).unwrap_or_default()
    }

    /// Tokens of plain text that continues other text: their bytes are the text's.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.inner.encode_fast(text, false).map_err(unusable)?.get_ids().to_vec())
    }

    /// About how many tokens a text has, in memory that does not grow with it: it is tokenised in pieces, whose ends may add
    /// some.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn count(&self, text: &str) -> Result<usize> {
        pieces(text).map(|piece| self.encode(piece).map(|tokens| tokens.len())).sum()
    }

    /// Tokens of a rendered prompt from its beginning: the names of special tokens are those tokens, but not within `plain`,
    /// ascending byte ranges that came from outside the template.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode_prompt(&self, prompt: &str, plain: &[Range<usize>]) -> Result<Vec<u32>> {
        self.encode_marked(prompt, plain, self.prefix)
    }

    /// Tokens of text within a prompt or a reply, where the names of special tokens are those tokens.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn encode_within(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_marked(text, &[], Prefix::Nowhere)
    }

    fn encode_marked(&self, text: &str, plain: &[Range<usize>], prefix: Prefix) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let segment_ids = |segment: Range<usize>| match &text[segment.clone()] {
            segment_text if prefix.applies(segment_text, segment.start) => self.encode(&format!(" {segment_text}")),
            segment_text => self.encode(segment_text),
        };
        let mut start = 0;
        for (at, name, id) in self.markers(text) {
            let in_plain = plain.iter().any(|range| range.start < at + name.len() && at < range.end);
            if at < start || in_plain {
                continue;
            }
            ids.extend(segment_ids(start..at)?);
            ids.push(id);
            start = at + name.len();
        }
        ids.extend(segment_ids(start..text.len())?);
        Ok(ids)
    }

    /// Every occurrence of a special token's name in order; at one position the longest name first.
    fn markers<'a>(&'a self, prompt: &str) -> Vec<(usize, &'a str, u32)> {
        let find = |(name, id): (&'a String, &'a u32)| {
            prompt.match_indices(name.as_str()).map(|(at, _)| (at, name.as_str(), *id)).collect::<Vec<_>>()
        };
        let mut found: Vec<_> = self.specials.iter().filter(|(name, _)| !name.is_empty()).flat_map(find).collect();
        found.sort_by_key(|(at, name, _)| (*at, usize::MAX - name.len()));
        found
    }

    /// Byte ranges of the tokens of plain text, on character boundaries.
    ///
    /// # Errors
    /// If the tokenizer fails.
    pub fn spans(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let encoding = self.inner.encode(text, false).map_err(unusable)?;
        Ok(encoding.get_offsets().iter().map(|(start, end)| *start..*end).collect())
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens)", self.len())
    }
}

/// How tokens write bytes.
enum Spelling {
    /// A character for each byte.
    ByteLevel(HashMap<char, u8>),
    /// As SentencePiece.
    Pieces,
}

impl Spelling {
    /// The bytes of a token; those that were added to a byte-level vocabulary are written as they are.
    fn bytes(&self, token: &str, is_added: bool) -> Vec<u8> {
        match self {
            Spelling::ByteLevel(_) if is_added => token.as_bytes().to_vec(),
            Spelling::ByteLevel(alphabet) => token_bytes(token, alphabet),
            Spelling::Pieces => sentencepiece::bytes(token),
        }
    }
}

/// The byte-level BPE that a GGUF file describes.
fn byte_level(metadata: &Metadata, kinds: &[usize]) -> Result<HfTokenizer> {
    let tokens = metadata.texts("tokenizer.ggml.tokens")?;
    let merges = metadata.texts("tokenizer.ggml.merges")?.into_iter().map(split_merge).collect::<Result<Vec<_>>>()?;
    let vocab: ahash::AHashMap<String, u32> =
        tokens.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), id)).collect();
    let pre = metadata.optional_text("tokenizer.ggml.pre")?.unwrap_or("default");
    // Llama 3: a word that is a token is that token, whatever merges would make of it.
    let ignore_merges = matches!(pre, "llama-bpe" | "llama3");
    let bpe = BPE::builder().vocab_and_merges(vocab, merges).ignore_merges(ignore_merges);
    let mut inner = HfTokenizer::new(bpe.build().map_err(unusable)?);
    inner.with_pre_tokenizer(Some(pre_tokenizer(pre)?));
    if pre == "qwen2" {
        inner.with_normalizer(Some(NFC)).map_err(unusable)?;
    }
    inner.with_decoder(Some(ByteLevel::default()));
    add_gguf_tokens(&mut inner, kinds, &tokens)?;
    Ok(inner)
}

/// How words are split before merging, by the name that llama.cpp gives to it.
fn pre_tokenizer(name: &str) -> Result<PreTokenizerWrapper> {
    const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let by_regex = |regex: &str| -> Result<PreTokenizerWrapper> {
        let pattern = SplitPattern::Regex(regex.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(unusable)?;
        Ok(Sequence::new(vec![split.into(), ByteLevel::new(false, true, false).into()]).into())
    };
    match name {
        "smollm" => Ok(Sequence::new(vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()]).into()),
        "gpt-2" => Ok(ByteLevel::new(false, true, true).into()),
        "qwen2" => by_regex(QWEN2),
        "llama-bpe" | "llama3" => by_regex(LLAMA3),
        other => Err(ModelError::Unsupported { what: format!("GGUF pre-tokenizer `{other}`") }),
    }
}

// Kinds of tokens in a GGUF file.
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;
const UNUSED: usize = 5;

fn add_gguf_tokens(inner: &mut HfTokenizer, kinds: &[usize], tokens: &[&str]) -> Result<()> {
    let added = tokens.iter().zip(kinds).filter_map(|(token, kind)| match *kind {
        CONTROL => Some(AddedToken::from(*token, true)),
        USER_DEFINED => Some(AddedToken::from(*token, false).normalized(false)),
        _ => None,
    });
    inner.add_tokens(added.collect::<Vec<_>>()).map_err(unusable)?;
    Ok(())
}

fn split_merge(merge: &str) -> Result<(String, String)> {
    let (left, right) = merge.split_once(' ').ok_or_else(|| unusable(format!("merge `{merge}` has no space")))?;
    Ok((left.to_owned(), right.to_owned()))
}

/// The character that represents each byte in a byte-level vocabulary (GPT-2's table): printable bytes for themselves,
/// the others for U+0100 onwards.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..=u8::MAX).filter(|byte| !printable(*byte)).zip('\u{100}'..);
    let own = (0..=u8::MAX).filter(|byte| printable(*byte)).map(|byte| (char::from(byte), byte));
    own.chain(others.map(|(byte, c)| (c, byte))).collect()
}

fn token_bytes(token: &str, alphabet: &HashMap<char, u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(token.len());
    for c in token.chars() {
        match alphabet.get(&c) {
            Some(byte) => bytes.push(*byte),
            None => bytes.extend(c.to_string().bytes()),
        }
    }
    bytes
}

fn unusable(reason: impl ToString) -> ModelError {
    ModelError::Tokenizer { reason: reason.to_string() }
}

/// Bytes of a piece of a text whose tokens are counted.
const PIECE_BYTES: usize = 64 << 10;

/// A text in pieces of whole characters.
pub(crate) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_a_text_of_whole_characters() {
        for text in ["", "a", &"é".repeat(PIECE_BYTES), &"x".repeat(PIECE_BYTES)] {
            let found: Vec<&str> = pieces(text).collect();
            assert_eq!(found.concat(), text);
            assert_eq!(found.len(), text.len().div_ceil(PIECE_BYTES));
            assert!(found.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE_BYTES));
        }
    }

    #[test]
    fn every_byte_has_one_character() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(token_bytes("Ġthe", &alphabet), b" the");
        assert_eq!(token_bytes("Ã©Ċ", &alphabet), "é\n".as_bytes());
    }
}
