//! Cuts sources into the passages that are stored: GAM's pages, and the turns of conversations.
//!
//! A page is a session of a conversation or a window of a text, of limited length in tokens (paper: 2,048, no overlap).
//!
//! Long texts are tokenised in stretches, so that the memory for tokens does not grow with the text: a tokenizer takes
//! about 100 bytes for each byte of text.
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
        for (bytes, tokens) in windows(text, page_tokens, |text| caller.token_spans(Role::Memorizer, text)) {
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
/// `tokenise` gives the byte ranges of a text's tokens.
pub(crate) fn windows(
    text: &str,
    most: usize,
    tokenise: impl Fn(&str) -> Vec<Range<usize>>,
) -> Vec<(Range<usize>, u32)> {
    let most = most.max(1);
    let mut windows = Vec::new();
    let mut stretches = stretches(text);
    // The tokens behind the last window, as far as they are known.
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    loop {
        while spans.len() <= most
            && let Some(stretch) = stretches.next()
        {
            spans.extend(placed(&tokenise(&text[stretch.clone()]), stretch.start));
        }
        let end = if spans.len() <= most { spans.len() } else { word_end(text, &spans, most) };
        if end == 0 {
            break;
        }
        let until = spans.get(end).map_or(text.len(), |next| next.start);
        windows.push((start..until, count(end)));
        start = until;
        spans.drain(..end);
    }
    windows.retain(|(window, _)| !text[window.clone()].trim().is_empty());
    windows
}

fn placed(spans: &[Range<usize>], start: usize) -> impl Iterator<Item = Range<usize>> {
    spans.iter().map(move |span| start + span.start..start + span.end)
}

/// How much text is tokenised at once, where it can be divided there.
const STRETCH_BYTES: usize = 64 << 10;
/// How much text is tokenised at once at most.
const LONGEST_STRETCH_BYTES: usize = 1 << 20;

/// Divides a text where its tokens divide too, whatever is around: stretches have the tokens that the whole has. A text
/// without such a place within [`LONGEST_STRETCH_BYTES`] is divided anywhere between two characters.
fn stretches(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let longest = rest.floor_char_boundary(LONGEST_STRETCH_BYTES);
        let near = rest.floor_char_boundary(STRETCH_BYTES);
        let divides = |at: &usize| is_division(rest, *at);
        let length = if rest.len() <= STRETCH_BYTES {
            rest.len()
        } else {
            let behind = || (near..longest).find(divides);
            (1..near).rev().find(divides).or_else(behind).unwrap_or(longest)
        };
        start += length;
        Some(start - length..start)
    })
}

/// Whether tokens divide at a byte: before a space behind a character that is none, and behind a single line break between
/// two characters that are none. Pre-tokenizers begin a new piece there and look neither back nor ahead.
fn is_division(text: &str, at: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let line = before.strip_suffix('\n');
    (after.starts_with(' ') && !is_blank(before.chars().next_back()))
        || (line.is_some_and(|line| !is_blank(line.chars().next_back())) && !is_blank(after.chars().next()))
}

/// The last token boundary in `1 ..= end` that is at white space; `end` if there is none in its second half.
fn word_end(text: &str, spans: &[Range<usize>], end: usize) -> usize {
    let at_space = |i: &usize| {
        let at = spans[*i].start;
        text[at..].starts_with(char::is_whitespace) || text[..at].ends_with(char::is_whitespace)
    };
    let whole_character = |i: &usize| spans[*i].start >= spans[*i - 1].end;
    let candidates = || (end / 2 + 1..=end).rev();
    candidates().find(at_space).or_else(|| candidates().find(whole_character)).unwrap_or(end)
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calls::Scripted;

    fn tokens(text: &str) -> Vec<Range<usize>> {
        Scripted::new(1000).token_spans(Role::Memorizer, text)
    }

    fn check(text: &str, most: usize, want: &[&str]) {
        let windows = windows(text, most, tokens);
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

    #[test]
    fn a_long_text_has_the_windows_and_tokens_that_it_has_as_a_whole() {
        let word = |i: usize| "wörd ".repeat(i % 7) + ["\n", ".\n\n", "  x\t"][i % 3];
        let words: String = (0..60_000).map(word).collect();
        for text in [words.as_str(), &words.replace(' ', "-")] {
            let whole = tokens(text);
            let in_stretches = stretches(text)
                .flat_map(|stretch| placed(&tokens(&text[stretch.clone()]), stretch.start).collect::<Vec<_>>());
            assert_eq!(in_stretches.collect::<Vec<_>>(), whole);
            let windows = windows(text, 512, tokens);
            let mut first = 0;
            for (window, tokens) in &windows {
                let last = first + *tokens as usize;
                assert!(last <= whole.len() && *tokens <= 512);
                assert_eq!(window.end, whole.get(last).map_or(text.len(), |next| next.start));
                first = last;
            }
            assert_eq!(first, whole.len());
        }
    }

    #[test]
    fn stretches_cover_any_text_and_are_bounded() {
        for text in ["é".repeat(2 << 20), " \n".repeat(1 << 20), "a b ".repeat(1 << 18), "x".to_owned(), String::new()]
        {
            let mut end = 0;
            for stretch in stretches(&text) {
                assert_eq!(stretch.start, end);
                assert!(!stretch.is_empty() && stretch.len() <= LONGEST_STRETCH_BYTES);
                end = stretch.end;
            }
            assert_eq!(end, text.len());
        }
    }
}
