//! Estimates the number of tokens of a text when the tokenizer is on another machine.
//!
//! Byte-pair vocabularies of 50,000 to 150,000 entries encode English with about 1.3 tokens a word. Here a token is
//! five letters of a word, a digit, a punctuation mark, a run of line breaks, or any character beyond ASCII: about 1.4
//! for each English word and more for most other texts, so that a prompt packed by this count fits.

use std::ops::Range;

use calls::Call;

/// Letters of a word that count as one token.
const LETTERS: usize = 5;

/// Tokens that a chat template adds to a turn.
const AROUND_TURN: usize = 8;

/// Byte ranges that count as one token each. Blanks belong to none.
pub(crate) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut before = Kind::Blank;
    for (start, c) in text.char_indices() {
        let (kind, end) = (Kind::of(c), start + c.len_utf8());
        match spans.last_mut() {
            _ if kind == Kind::Blank => {}
            Some(last) if kind == before && last.len() < kind.longest() => last.end = end,
            _ => spans.push(start..end),
        }
        before = kind;
    }
    spans
}

/// Tokens of a whole prompt.
pub(crate) fn of_prompt(call: &Call) -> usize {
    if let Some(text) = call.prompt.as_bare() {
        return spans(text).len() + call.prompt.suffix().map_or(0, |suffix| spans(suffix).len());
    }
    let turn = |message: &calls::Message| {
        let calls =
            message.tool_calls.iter().map(|call| spans(&call.name).len() + spans(&call.arguments).len() + AROUND_TURN);
        spans(&message.content).len() + AROUND_TURN + calls.sum::<usize>()
    };
    let tools = call.prompt.tools().iter().map(|tool| spans(&tool.definition().to_string()).len() + AROUND_TURN);
    let start = spans(call.prompt.reply_start()).len();
    tools.sum::<usize>() + call.prompt.messages().iter().map(turn).sum::<usize>() + start
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Letter,
    LineBreak,
    Other,
}

impl Kind {
    fn of(c: char) -> Kind {
        match c {
            '\n' => Kind::LineBreak,
            _ if c.is_ascii_alphabetic() => Kind::Letter,
            _ if c.is_whitespace() => Kind::Blank,
            _ => Kind::Other,
        }
    }

    /// Bytes of one token of this kind.
    fn longest(self) -> usize {
        match self {
            Kind::Letter => LETTERS,
            Kind::LineBreak => usize::MAX,
            Kind::Blank | Kind::Other => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_short() {
        let check = |text: &str, want: &[&str]| {
            let tokens: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
            assert_eq!(tokens, want);
        };
        check("", &[]);
        check("It was lighthouse 12.", &["It", "was", "light", "house", "1", "2", "."]);
        check("a\n\n\nb", &["a", "\n\n\n", "b"]);
        check("Zoë 灯塔", &["Zo", "ë", "灯", "塔"]);
        check("  ab cd", &["ab", "cd"]);
    }
}
