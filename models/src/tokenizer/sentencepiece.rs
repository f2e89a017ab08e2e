//! SentencePiece's BPE: pieces, and a byte each for what no piece writes.
//!
//! GGUF files (`tokenizer.ggml.model` = `llama`) hold pieces with scores. SentencePiece joins the pair of neighbours whose piece
//! has the best score; the library joins by the rank of pairs, so each way of splitting a piece becomes a pair, in the order of
//! scores.

use std::cmp::Reverse;
use std::collections::HashMap;

use ahash::AHashMap;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::replace::Replace;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::{AddedToken, ModelWrapper, Tokenizer as HfTokenizer};

use super::{Prefix, unusable};
use crate::error::{ModelError, Result};
use crate::gguf::Metadata;

/// How pieces write a space.
const SPACE: &str = "\u{2581}";

// Kinds of pieces in a GGUF file.
const NORMAL: usize = 1;
const UNKNOWN: usize = 2;
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// The tokenizer that a file describes.
pub(super) fn from_gguf(metadata: &Metadata, kinds: &[usize]) -> Result<HfTokenizer> {
    let pieces = metadata.texts("tokenizer.ggml.tokens")?;
    let scores = metadata.floats("tokenizer.ggml.scores")?;
    if (scores.len(), kinds.len()) != (pieces.len(), pieces.len()) {
        let (tokens, scores, kinds) = (pieces.len(), scores.len(), kinds.len());
        return Err(unusable(format!("{tokens} tokens have {scores} scores and {kinds} types")));
    }
    let vocab: AHashMap<String, u32> = pieces.iter().zip(0..).map(|(piece, id)| ((*piece).to_owned(), id)).collect();
    let normal = (0..pieces.len()).filter(|id| kinds[*id] == NORMAL).map(|id| (pieces[id], scores[id]));
    let mut bpe = BPE::builder().vocab_and_merges(vocab, merges(normal.collect())).byte_fallback(true).fuse_unk(true);
    if let Some(unknown) = kinds.iter().position(|kind| *kind == UNKNOWN) {
        bpe = bpe.unk_token(pieces[unknown].to_owned());
    }
    let mut inner = HfTokenizer::new(bpe.build().map_err(unusable)?);
    inner.with_normalizer(Some(spaces_as_pieces()?)).map_err(unusable)?;
    // Some converters store Gemma 3's turn tokens as normal pieces.
    let is_gemma = metadata.is_of("gemma3")?;
    let is_turn = |piece: &str| is_gemma && matches!(piece, "<start_of_turn>" | "<end_of_turn>");
    let added = pieces.iter().zip(kinds).filter_map(|(piece, kind)| match *kind {
        _ if is_turn(piece) => Some(AddedToken::from(*piece, true)),
        UNKNOWN | CONTROL => Some(AddedToken::from(*piece, true)),
        // Found before anything else, once spaces are written as in pieces.
        USER_DEFINED => Some(AddedToken::from(*piece, false).normalized(true)),
        _ => None,
    });
    inner.add_tokens(added.collect::<Vec<_>>()).map_err(unusable)?;
    Ok(inner)
}

/// All pairs that make up a piece: those of the best pieces first, and of one piece those with the longest left part.
fn merges(pieces: HashMap<&str, f32>) -> Vec<(String, String)> {
    let mut pairs: Vec<(&str, &str, f32)> = Vec::new();
    for (piece, score) in &pieces {
        let splits = piece.char_indices().skip(1).map(|(at, _)| piece.split_at(at));
        let splits = splits.filter(|(left, right)| pieces.contains_key(left) && pieces.contains_key(right));
        pairs.extend(splits.map(|(left, right)| (left, right, *score)));
    }
    pairs.sort_unstable_by(|(left, right, score), (other_left, other_right, other)| {
        let by_score = other.total_cmp(score);
        by_score
            .then_with(|| (Reverse(left.len()), left, right).cmp(&(Reverse(other_left.len()), other_left, other_right)))
    });
    pairs.into_iter().map(|(left, right, _)| (left.to_owned(), right.to_owned())).collect()
}

/// Takes the dummy prefix out of a tokenizer that was read from a `tokenizer.json`, and says where a prompt gets it.
///
/// # Errors
/// If it is of another kind, or changes text in another way.
pub(super) fn take_prefix(inner: &mut HfTokenizer) -> Result<Prefix> {
    let unsupported = |what: &str| ModelError::Unsupported { what: what.to_owned() };
    if !matches!(inner.get_model(), ModelWrapper::BPE(bpe) if bpe.byte_fallback) {
        return Err(unsupported("a decoder whose tokenizer is neither byte-level nor SentencePiece's BPE"));
    }
    // These take spaces beside them out of the text.
    let strips = |token: &AddedToken| token.special && (token.lstrip || token.rstrip);
    if let Some(token) = inner.get_added_tokens_decoder().values().find(|token| strips(token)) {
        return Err(unsupported(&format!("the special token `{}`, which strips spaces,", token.content)));
    }
    let steps = match inner.get_normalizer() {
        None => Vec::new(),
        Some(NormalizerWrapper::Sequence(steps)) => steps.as_ref().to_vec(),
        Some(step) => vec![step.clone()],
    };
    let replace = serde_json::to_value(spaces_as_pieces()?).map_err(unusable)?;
    let is_replace = |step: &NormalizerWrapper| serde_json::to_value(step).is_ok_and(|step| step == replace);
    let pre_tokenizer = inner.get_pre_tokenizer().cloned();
    let prefix = match (&steps[..], pre_tokenizer) {
        ([NormalizerWrapper::Prepend(first), second], None) if first.prepend == SPACE && is_replace(second) => {
            inner.with_normalizer(Some(spaces_as_pieces()?)).map_err(unusable)?;
            Prefix::Segments { doubles: true }
        }
        ([], Some(PreTokenizerWrapper::Metaspace(metaspace))) if SPACE.starts_with(metaspace.get_replacement()) => {
            let (scheme, split) = (metaspace.prepend_scheme, metaspace.split);
            inner.with_pre_tokenizer(Some(Metaspace::new(metaspace.get_replacement(), PrependScheme::Never, split)));
            match scheme {
                PrependScheme::First => Prefix::Start,
                PrependScheme::Always => Prefix::Segments { doubles: false },
                PrependScheme::Never => Prefix::Nowhere,
            }
        }
        ([step], None | Some(PreTokenizerWrapper::Split(_))) if is_replace(step) => Prefix::Nowhere,
        _ => return Err(unsupported("a SentencePiece tokenizer that changes texts in more than their spaces")),
    };
    Ok(prefix)
}

fn spaces_as_pieces() -> Result<Replace> {
    Replace::new(" ", SPACE).map_err(unusable)
}

/// The bytes of a piece.
pub(super) fn bytes(piece: &str) -> Vec<u8> {
    let byte = piece.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|digits| digits.len() == 2);
    match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        Some(byte) => vec![byte],
        None => piece.replace(SPACE, " ").into_bytes(),
    }
}
