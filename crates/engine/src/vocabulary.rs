//! The masks of free text and thoughts, and the end tokens, of one model.

use std::sync::Arc;

use models::Tokenizer;
use toktrie::SimpleVob;

use crate::thought::Markers;

/// The masks and end tokens shared by all replies of one model.
pub(crate) struct Vocabulary {
    pub tokenizer: Arc<Tokenizer>,
    pub eos: Vec<u32>,
    /// Mask of free text, end tokens included.
    pub text: Arc<[u32]>,
    /// Mask of free text before the minimum length is reached.
    pub more: Arc<[u32]>,
    /// Mask of a thought.
    pub thought: Arc<[u32]>,
    /// The ids without bytes, with which the vocabulary is padded; no mask allows them.
    pub padding: Vec<u32>,
}

impl Vocabulary {
    /// Masks for logits of this width; `eos` ends a reply, `markers` end a thought.
    pub fn new(tokenizer: Arc<Tokenizer>, width: usize, eos: Vec<u32>, markers: &Markers) -> Vocabulary {
        let mut more = SimpleVob::alloc(width);
        let is_padding = |token: &u32| tokenizer.bytes(*token).is_empty() && !eos.contains(token);
        let (padding, words): (Vec<u32>, Vec<u32>) = (0..).take(width).partition(is_padding);
        words.iter().for_each(|token| more.set(*token as usize, true));
        tokenizer
            .specials()
            .filter(|token| (*token as usize) < width)
            .for_each(|token| more.set(token as usize, false));
        let mut text = more.clone();
        eos.iter().for_each(|token| text.set(*token as usize, true));
        eos.iter().for_each(|token| more.set(*token as usize, false));
        let mut thought = more.clone();
        let close = markers.close.filter(|token| (*token as usize) < width);
        close.into_iter().for_each(|token| thought.set(token as usize, true));
        let [text, more, thought] = [text, more, thought].map(|mask| mask.as_slice().into());
        Vocabulary { tokenizer, eos, text, more, thought, padding }
    }
}
