//! Cutting sources into the pieces that are remembered: GAM's pages, and the turns of conversations.
//!
//! A page is a session of a conversation or a window of a text, at most so many tokens long (paper: 2,048, no overlap).
//!
//! # Departures
//! * Windows end at the last white space that fits, so that no word is cut in two; the paper cuts at the token.
//! * A session longer than a page becomes several pages, of which only the first has the session's heading; the paper's
//!   sessions all fit.
//! * A page is a slice of the original text, never text decoded from tokens.

use std::ops::Range;

use calls::{Caller, Role};
use sources::{Section, Source};
use store::{Layer, Meta, NewPassage};

/// The pages and turns of a source, for pages of at most `page_tokens` tokens of the memorizer's model.
pub fn cut(source: &Source, caller: &dyn Caller, page_tokens: usize) -> Vec<NewPassage> {
    let mut passages = Vec::new();
    for section in &source.sections {
        let text = &source.text[section.span.clone()];
        let spans = caller.token_spans(Role::Memorizer, text);
        for (bytes, tokens) in windows(text, &spans, page_tokens) {
            let bytes = section.span.start + bytes.start..section.span.start + bytes.end;
            let meta = Meta { label: section.title.clone(), time: section.time.clone(), speaker: None };
            passages.push(NewPassage { layer: Layer::Page, bytes, tokens, meta });
        }
        passages.extend(turns(source, section, caller));
    }
    passages
}

fn turns<'a>(
    source: &'a Source,
    section: &'a Section,
    caller: &'a dyn Caller,
) -> impl Iterator<Item = NewPassage> + 'a {
    section.turns.iter().map(move |turn| {
        let tokens = caller.count_tokens(Role::Memorizer, &source.text[turn.span.clone()]);
        let time = turn.time.clone().or_else(|| section.time.clone());
        let meta = Meta { label: Some(turn.id.clone()), time, speaker: Some(turn.speaker.clone()) };
        NewPassage { layer: Layer::Turn, bytes: turn.span.clone(), tokens: count(tokens), meta }
    })
}

/// Windows of at most `most` tokens over a text, with their number of tokens, none of them blank.
///
/// `spans` are the byte ranges of the text's tokens.
pub(crate) fn windows(text: &str, spans: &[Range<usize>], most: usize) -> Vec<(Range<usize>, u32)> {
    let mut windows = Vec::new();
    let mut first = 0;
    while first < spans.len() {
        let start = windows.last().map_or(0, |(window, _): &(Range<usize>, u32)| window.end);
        let mut end = (first + most.max(1)).min(spans.len());
        if end < spans.len() {
            end = word_end(text, spans, first, end);
        }
        let until = if end == spans.len() { text.len() } else { spans[end].start };
        windows.push((start..until, count(end - first)));
        first = end;
    }
    windows.retain(|(window, _)| !text[window.clone()].trim().is_empty());
    windows
}

/// The last token boundary in `first + 1 ..= end` that lies at white space; `end` if there is none in its second half.
fn word_end(text: &str, spans: &[Range<usize>], first: usize, end: usize) -> usize {
    let at_space = |i: &usize| {
        let at = spans[*i].start;
        text[at..].starts_with(char::is_whitespace) || text[..at].ends_with(char::is_whitespace)
    };
    let whole_character = |i: &usize| spans[*i].start >= spans[*i - 1].end;
    let candidates = || (first + (end - first) / 2 + 1..=end).rev();
    candidates().find(at_space).or_else(|| candidates().find(whole_character)).unwrap_or(end)
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calls::Scripted;

    fn check(text: &str, most: usize, want: &[&str]) {
        let spans = Scripted::new(1000).token_spans(Role::Memorizer, text);
        let windows = windows(text, &spans, most);
        let got: Vec<&str> = windows.iter().map(|(window, _)| &text[window.clone()]).collect();
        assert_eq!(got, want, "{text:?} by {most}");
        assert!(windows.iter().all(|(_, tokens)| *tokens as usize <= most.max(1)));
    }

    #[test]
    fn windows_cover_the_text_and_end_at_words() {
        check("one two three four", 2, &["one two ", "three four"]);
        check("one two three", 10, &["one two three"]);
        check("a b, c d", 3, &["a b, ", "c d"]);
        check("don't stop now", 4, &["don't stop ", "now"]);
        check("one two three don't", 5, &["one two three ", "don't"]);
        check("  lead and trail  ", 2, &["  lead and ", "trail  "]);
        check("", 4, &[]);
        check("   ", 4, &[]);
        check("!!!!!", 2, &["!!", "!!", "!"]);
    }
}
