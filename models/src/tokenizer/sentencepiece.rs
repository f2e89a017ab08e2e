//! SentencePiece's BPE as GGUF files hold it (`tokenizer.ggml.model` = `llama`): pieces with scores, and a byte each for what
//! no piece writes.
//!
//! SentencePiece joins the pair of neighbours whose piece has the best score; the library joins by the rank of pairs, so each
//! way of splitting a piece becomes a pair, in the order of scores.

use std::cmp::Reverse;
use std::collections::HashMap;

use ahash::AHashMap;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::replace::Replace;
use tokenizers::{AddedToken, Tokenizer as HfTokenizer};

use super::unusable;
use crate::error::Result;
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
    inner.with_normalizer(Some(Replace::new(" ", SPACE).map_err(unusable)?)).map_err(unusable)?;
    let added = pieces.iter().zip(kinds).filter_map(|(piece, kind)| match *kind {
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

/// The bytes of a piece.
pub(super) fn bytes(piece: &str) -> Vec<u8> {
    let byte = piece.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|digits| digits.len() == 2);
    match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        Some(byte) => vec![byte],
        None => piece.replace(SPACE, " ").into_bytes(),
    }
}
