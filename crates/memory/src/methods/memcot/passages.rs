//! The minimal chunks of a text that is no conversation: whole sentences, about 200 tokens (section 3.2).

use std::ops::Range;

use calls::{Agent, Tokens};
use store::{Corpus, DocId, Layer, Meta, NewPassage, Writer};

use crate::core::cite::sentences;
use crate::core::error::Result;
use crate::core::paging::windows;
use crate::core::preparation::Progress;
use crate::core::session::Session;

/// Tokens of a passage at most.
const PASSAGE_TOKENS: usize = 200;

/// The documents without turns.
pub(super) fn uncut(corpus: &Corpus) -> Result<Vec<DocId>> {
    let mut uncut = Vec::new();
    for document in corpus.documents()? {
        if corpus.passages_of(document.id, Layer::Turn)?.is_empty() {
            uncut.push(document.id);
        }
    }
    Ok(uncut)
}

/// Gives every document without turns passages in their place, page by page, each document in one transaction.
pub(super) fn cut_prose(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let uncut = uncut(writer)?;
    let report = |done| Progress { step: "cutting", unit: "document", done, of: uncut.len() };
    for (done, document) in uncut.iter().enumerate() {
        progress(report(done));
        let text = writer.document_text(*document)?;
        let mut passages = Vec::new();
        for page in writer.passages_of(*document, Layer::Page)? {
            let Some(words) = text.get(page.span.bytes()) else { continue };
            let start = page.span.bytes().start;
            let meta = Meta { speaker: None, ..page.meta };
            passages.extend(cut(words, session.caller.tokens()).into_iter().map(|(bytes, tokens)| NewPassage {
                layer: Layer::Turn,
                bytes: start + bytes.start..start + bytes.end,
                tokens,
                meta: meta.clone(),
            }));
        }
        writer.put_layer(*document, Layer::Turn, &passages)?;
    }
    if !uncut.is_empty() {
        progress(report(uncut.len()));
    }
    Ok(())
}

/// Passages of a page: as many sentences as fit; a longer sentence in pieces. With their tokens.
fn cut(text: &str, counter: &dyn Tokens) -> Vec<(Range<usize>, u32)> {
    let spans = counter.token_spans(Agent::Memorizer, text);
    let within = |bytes: &Range<usize>| {
        let first = spans.partition_point(|span| span.start < bytes.start);
        first..spans.partition_point(|span| span.start < bytes.end).max(first)
    };
    let mut passages: Vec<(Range<usize>, u32)> = Vec::new();
    for sentence in sentences(text) {
        let joined = passages.last().map(|(last, _)| last.start..sentence.end);
        if let (Some(joined), Some(last)) = (joined, passages.last_mut())
            && within(&joined).len() <= PASSAGE_TOKENS
        {
            *last = (joined.clone(), within(&joined).len() as u32);
            continue;
        }
        let inner = within(&sentence);
        if inner.len() <= PASSAGE_TOKENS {
            passages.push((sentence, inner.len() as u32));
            continue;
        }
        let start = sentence.start;
        let long = &text[sentence];
        let pieces = windows(long, PASSAGE_TOKENS, |text| counter.token_spans(Agent::Memorizer, text));
        passages.extend(pieces.into_iter().map(|(piece, tokens)| (start + piece.start..start + piece.end, tokens)));
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;
    use calls::Scripted;

    /// Words of each passage.
    fn check(text: &str, want: &[usize]) {
        let passages = cut(text, &Scripted::new(1000));
        let words: Vec<usize> =
            passages.iter().map(|(bytes, _)| text[bytes.clone()].split_whitespace().count()).collect();
        assert_eq!(words, want, "{text:?}");
        assert!(passages.iter().all(|(_, tokens)| *tokens as usize <= PASSAGE_TOKENS));
        assert!(passages.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "{passages:?}");
        let kept: String = passages.iter().flat_map(|(bytes, _)| text[bytes.clone()].split_whitespace()).collect();
        assert_eq!(kept, text.split_whitespace().collect::<String>(), "no word is lost");
    }

    #[test]
    fn passages_are_whole_sentences_up_to_200_tokens() {
        check("", &[]);
        check(" \n ", &[]);
        check("One. Two!  Three?", &[3]);
        // A sentence of ten tokens: nine words and a full stop.
        let sentence = format!("{}nine. ", "word ".repeat(8));
        check(&sentence.repeat(20), &[180]);
        check(&sentence.repeat(21), &[180, 9]);
        check(&sentence.repeat(45), &[180, 180, 45]);
    }

    #[test]
    fn a_sentence_longer_than_a_passage_is_cut_at_words() {
        check(&format!("Short. Long {}end. Last.", "word ".repeat(448)), &[1, 200, 200, 51]);
    }
}
