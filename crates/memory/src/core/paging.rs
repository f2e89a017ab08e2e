//! Cuts sources into the passages that are stored: GAM's pages, and the turns of conversations.
//!
//! A page is a session of a conversation or a window of a text, of limited length in tokens (paper: 2,048, no overlap).
//!
//! Long texts are tokenised in stretches, so that the memory for tokens does not grow with the text: a tokenizer takes
//! about 100 bytes for each byte of text.
//!
//! # Departures
//! * Windows end at the last white space that fits, so that no word is cut in two; the paper cuts at the token. They end before
//!   a table that begins in their second half and does not fit, so that its rows stay below the names of their columns, or else
//!   before a row.
//! * A session longer than a page becomes several pages, of which only the first has the session's heading; the paper's
//!   sessions all fit.
//! * A page is a slice of the original text, never text decoded from tokens.

use std::convert::Infallible;
use std::ops::Range;

use calls::{Agent, Tokens};
use sources::{Section, Source};
use store::{Layer, Meta, NewPassage};

/// The pages and turns of a source, for pages of at most `page_tokens` tokens of the memorizer's model.
pub fn cut(source: &Source, counter: &dyn Tokens, page_tokens: usize) -> Vec<NewPassage> {
    let mut passages = Vec::new();
    for section in &source.sections {
        let text = &source.text[section.span.clone()];
        for (bytes, tokens) in windows(text, page_tokens, |text| counter.token_spans(Agent::Memorizer, text)) {
            let bytes = section.span.start + bytes.start..section.span.start + bytes.end;
            let meta = Meta { label: section.title.clone(), time: section.time.clone(), speaker: None };
            passages.push(NewPassage { layer: Layer::Page, bytes, tokens, meta });
        }
        passages.extend(turns(source, section, counter));
    }
    passages
}

/// The pages of a plain text that comes in pieces: those that [`cut`] gives for the whole.
///
/// # Errors
/// Those of the pieces.
pub(crate) fn cut_pieces<E>(
    pieces: impl Iterator<Item = Result<String, E>>,
    title: Option<&str>,
    counter: &dyn Tokens,
    page_tokens: usize,
) -> Result<Vec<NewPassage>, E> {
    let windows = windows_of_pieces(pieces, page_tokens, |text| counter.token_spans(Agent::Memorizer, text))?;
    let page = |(bytes, tokens)| NewPassage {
        layer: Layer::Page,
        bytes,
        tokens,
        meta: Meta { label: title.map(str::to_owned), time: None, speaker: None },
    };
    Ok(windows.into_iter().map(page).collect())
}

fn turns<'a>(
    source: &'a Source,
    section: &'a Section,
    counter: &'a dyn Tokens,
) -> impl Iterator<Item = NewPassage> + 'a {
    section.turns.iter().map(move |turn| {
        let tokens = counter.count_tokens(Agent::Memorizer, &source.text[turn.span.clone()]);
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
    let mut rest = text;
    let pieces = std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(LONGEST_STRETCH_BYTES));
        rest = behind;
        (!piece.is_empty()).then_some(Ok(piece))
    });
    let Ok(windows) = windows_of_pieces::<_, Infallible>(pieces, most, tokenise);
    windows
}

/// The same over a text that comes in pieces. The memory does not grow with the text.
///
/// # Errors
/// Those of the pieces.
pub(crate) fn windows_of_pieces<P: AsRef<str>, E>(
    pieces: impl Iterator<Item = Result<P, E>>,
    most: usize,
    tokenise: impl Fn(&str) -> Vec<Range<usize>>,
) -> Result<Vec<(Range<usize>, u32)>, E> {
    let most = most.max(1);
    let mut windows = Vec::new();
    let mut text = Buffer { pieces: pieces.fuse(), text: String::new(), base: 0 };
    // The tokens behind the last window, as far as they are known, and where the next ones begin.
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut next = 0;
    let mut start = 0;
    loop {
        while spans.len() <= most
            && let Some(rest) = text.after(next)?
        {
            let stretch = &rest[..stretch_bytes(rest)];
            spans.extend(placed(&tokenise(stretch), next));
            next += stretch.len();
        }
        let end = if spans.len() <= most { spans.len() } else { text.word_end(&spans, most) };
        if end == 0 {
            return Ok(windows);
        }
        let until = spans.get(end).map_or(next, |next| next.start);
        if !text.get(start..until).trim().is_empty() {
            windows.push((start..until, count(end)));
        }
        start = until;
        spans.drain(..end);
        text.forget(start);
    }
}

/// The part of a text that is being divided. Positions are those in the whole text.
struct Buffer<I> {
    pieces: I,
    text: String,
    /// Where `text` begins.
    base: usize,
}

impl<P: AsRef<str>, E, I: Iterator<Item = Result<P, E>>> Buffer<I> {
    /// What follows a position, as much as the next stretch depends on; none at the end.
    fn after(&mut self, position: usize) -> Result<Option<&str>, E> {
        while self.base + self.text.len() < position + LONGEST_STRETCH_BYTES + 4
            && let Some(piece) = self.pieces.next()
        {
            self.text.push_str(piece?.as_ref());
        }
        let rest = &self.text[position - self.base..];
        Ok((!rest.is_empty()).then_some(rest))
    }
}

impl<I> Buffer<I> {
    fn get(&self, range: Range<usize>) -> &str {
        &self.text[range.start - self.base..range.end - self.base]
    }

    /// Drops what is before a position, once it is much: every time costs as much as what is left.
    fn forget(&mut self, position: usize) {
        if position - self.base > LONGEST_STRETCH_BYTES {
            self.text.drain(..position - self.base);
            self.base = position;
        }
    }

    /// The last token boundary in `1 ..= end` that is at white space, or the one before the table, or else the row, that it
    /// divides; `end` if there is none in its second half.
    fn word_end(&self, spans: &[Range<usize>], end: usize) -> usize {
        let at_space = |i: &usize| {
            let (before, after) = self.text.split_at(spans[*i].start - self.base);
            after.starts_with(char::is_whitespace) || before.ends_with(char::is_whitespace)
        };
        let whole_character = |i: &usize| spans[*i].start >= spans[*i - 1].end;
        let candidates = || (end / 2 + 1..=end).rev();
        let last = candidates().find(at_space).or_else(|| candidates().find(whole_character)).unwrap_or(end);
        let start = spans[0].start;
        let text = self.get(start..spans[spans.len() - 1].end);
        let token_at = |at: usize| spans.partition_point(|span| span.start < start + at);
        let rows = table_and_row(text, spans[last].start - start).into_iter().flatten();
        rows.map(token_at).find(|at| (end / 2 + 1..=last).contains(at)).unwrap_or(last)
    }
}

/// Where the table begins that the first word behind a byte is in, and where its row does; `None` outside of tables.
fn table_and_row(text: &str, at: usize) -> Option<[usize; 2]> {
    let at = text.len() - text[at..].trim_start().len();
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_row = |start: usize| {
        let line = text[start..].lines().next().unwrap_or_default();
        line.trim_start().starts_with('|') || line.contains(" | ")
    };
    let row = line_start(at);
    let mut table = row;
    while table > 0 && is_row(line_start(table - 1)) {
        table = line_start(table - 1);
    }
    is_row(row).then_some([table, row])
}

fn placed(spans: &[Range<usize>], start: usize) -> impl Iterator<Item = Range<usize>> {
    spans.iter().map(move |span| start + span.start..start + span.end)
}

/// How much text is tokenised at once, where it can be divided there.
const STRETCH_BYTES: usize = 64 << 10;
/// How much text is tokenised at once at most.
const LONGEST_STRETCH_BYTES: usize = 1 << 20;

/// The length of the first stretch of a text. Texts are divided where their tokens divide too, whatever is around:
/// stretches have the tokens that the whole has. A text without such a place within [`LONGEST_STRETCH_BYTES`] is divided
/// anywhere between two characters.
fn stretch_bytes(rest: &str) -> usize {
    if rest.len() <= STRETCH_BYTES {
        return rest.len();
    }
    let longest = rest.floor_char_boundary(LONGEST_STRETCH_BYTES);
    let near = rest.floor_char_boundary(STRETCH_BYTES);
    let divides = |at: &usize| is_division(rest, *at);
    let behind = || (near..longest).find(divides);
    (1..near).rev().find(divides).or_else(behind).unwrap_or(longest)
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

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calls::Scripted;

    fn tokens(text: &str) -> Vec<Range<usize>> {
        Scripted::new(1000).token_spans(Agent::Memorizer, text)
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
    fn windows_end_before_a_table_that_does_not_fit_or_between_its_rows() {
        let (words, rows) = ("one two three four five\n\n", ["day | opens\n", "mon | six\n", "tue | ten"]);
        let text = [words, &rows.concat()].concat();
        check(&text, 9, &[words, &rows.concat()]);
        check(&text, 8, &[words, &rows[..2].concat(), rows[2]]);
        check(&text, 14, &[&text]);
        let (words, table) = ("one two three four five six seven eight\n\n", "| a | b |\n| - | - |\n| c | d |\n");
        check(&[words, table].concat(), 15, &[words, table]);
    }

    #[test]
    fn a_long_text_has_the_windows_and_tokens_that_it_has_as_a_whole() {
        let word = |i: usize| "wörd ".repeat(i % 7) + ["\n", ".\n\n", "  x\t"][i % 3];
        let words: String = (0..60_000).map(word).collect();
        for text in [words.as_str(), &words.replace(' ', "-")] {
            let whole = tokens(text);
            let (mut in_stretches, mut start) = (Vec::new(), 0);
            while start < text.len() {
                let stretch = &text[start..][..stretch_bytes(&text[start..])];
                in_stretches.extend(placed(&tokens(stretch), start));
                start += stretch.len();
            }
            assert_eq!(in_stretches, whole);
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
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let length = stretch_bytes(rest);
                assert!((1..=LONGEST_STRETCH_BYTES).contains(&length));
                rest = &rest[length..];
            }
        }
    }
}
