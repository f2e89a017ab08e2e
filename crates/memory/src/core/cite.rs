//! Citations, and the sentences that they quote.
//!
//! Citations are selected, not generated, so every quote equals its source byte for byte.

use std::iter;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::grounding::is_function;

/// A span of a source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Citation {
    /// The path of the document.
    pub path: String,
    /// The id of the page.
    pub page: i64,
    /// Index of the first character in the document.
    pub start: u32,
    /// Index after the last character.
    pub end: u32,
    /// The text of the span.
    pub quote: String,
}

/// Byte ranges of the sentences of a text, without the white space around them.
///
/// Unicode's rules (UAX 29) end a sentence at every line break, which is wrong for prose with hard line breaks. So a piece
/// without a sentence end continues in the next line, unless that line is blank, starts a heading, an item or a table row,
/// or makes the sentence too long. They also end one behind "Mr." and "J. R."; what follows continues it. What is no prose,
/// such as a line of data, is cut where it is too long for a sentence.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences: Vec<Range<usize>> = Vec::new();
    let (mut open, mut before) = (false, "");
    for (start, piece) in text.split_sentence_bound_indices().flat_map(cut) {
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            (open, before) = (false, "");
            continue;
        }
        let from = start + (piece.len() - piece.trim_start().len());
        let range = from..from + trimmed.len();
        let goes_on = (open || is_abbreviated(before, trimmed)) && !MARKS.iter().any(|mark| trimmed.starts_with(mark));
        match sentences.last_mut() {
            Some(last) if goes_on && range.end - last.start <= LONGEST_BYTES => last.end = range.end,
            _ => sentences.push(range),
        }
        open = !trimmed.starts_with('#') && !trimmed.trim_end_matches(CLOSERS).ends_with(ENDS);
        before = trimmed;
    }
    sentences
}

/// Whether the dot at the end of a text only ends an abbreviation, by the text behind it.
fn is_abbreviated(before: &str, after: &str) -> bool {
    let Some(before) = before.strip_suffix('.') else { return false };
    let word = before.rsplit(|c: char| c.is_whitespace() || "(\"“'‘".contains(c)).next().unwrap_or(before);
    let is_initial = |part: &str| part.chars().count() == 1 && part.chars().all(char::is_uppercase);
    let begins_sentence = || {
        let first = after.unicode_words().next().unwrap_or_default().to_lowercase();
        is_function(&first)
    };
    TITLES.contains(&word)
        || word == "St" && !begins_sentence()
        || NUMBERED.contains(&word) && after.starts_with(|c: char| c.is_ascii_digit())
        || word != "I" && word.split('.').all(is_initial) && !begins_sentence()
}

/// Abbreviations that a name or another word follows.
const TITLES: [&str; 22] = [
    "Mr", "Mrs", "Ms", "Mx", "Dr", "Prof", "Gen", "Capt", "Rev", "Lt", "Col", "Sgt", "Sen", "Rep", "Gov", "Hon",
    "Messrs", "Mme", "Mlle", "e.g", "i.e", "vs",
];

/// Abbreviations before a number.
const NUMBERED: [&str; 22] = [
    "No", "Nos", "no", "Fig", "Figs", "Vol", "Ch", "Sec", "p", "pp", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug",
    "Sep", "Sept", "Oct", "Nov", "Dec",
];

/// Starts of lines that do not continue the line before.
const MARKS: [&str; 5] = ["#", "- ", "* ", "> ", "| "];

/// Closing signs after the end of a sentence.
const CLOSERS: [char; 12] = ['"', '\'', '”', '’', ')', ']', '»', '_', '*', '」', '』', '）'];

/// Signs that end a sentence or an independent clause.
const ENDS: [char; 13] = ['.', '!', '?', '…', '。', '！', '？', ':', ';', '：', '；', '।', '؟'];

/// Lines without sentence ends, such as those of a log, are not joined beyond this length.
const LONGEST_BYTES: usize = 2000;

/// A piece of a text in parts of at most [`LONGEST_BYTES`], between words if it has any.
fn cut((start, piece): (usize, &str)) -> impl Iterator<Item = (usize, &str)> {
    let mut done = 0;
    iter::from_fn(move || {
        let rest = &piece[done..];
        let most = rest.floor_char_boundary(LONGEST_BYTES);
        let end = match rest[..most].rfind(char::is_whitespace) {
            Some(space) if most < rest.len() && space > 0 => space,
            _ => most,
        };
        let at = start + done;
        done += end;
        (end > 0).then(|| (at, &rest[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_BYTES, sentences};

    fn check(text: &str, want: &[&str]) {
        let got: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn sentences_survive_hard_line_breaks() {
        check("One. Two!  Three?", &["One.", "Two!", "Three?"]);
        check(
            "The hatter was the\nfirst to break the silence. `What\nday is it?' he said.",
            &["The hatter was the\nfirst to break the silence.", "`What\nday is it?'", "he said."],
        );
        check("A TITLE\n\nText begins. And ends", &["A TITLE", "Text begins.", "And ends"]);
        check("你好。再见！", &["你好。", "再见！"]);
        check("   ", &[]);
    }

    #[test]
    fn abbreviations_do_not_end_a_sentence() {
        check(
            "Mr. Smith met Dr. Ann J. R. Lee of St. Paul. He left the U.S. Army.",
            &["Mr. Smith met Dr. Ann J. R. Lee of St. Paul.", "He left the U.S. Army."],
        );
        check(
            "He went to the U.S. The war began. So did I. Then",
            &["He went to the U.S.", "The war began.", "So did I.", "Then"],
        );
        check("See No. 5 on p. 12. No. Never", &["See No. 5 on p. 12.", "No.", "Never"]);
        check("He left on Sept. 5. She stayed.", &["He left on Sept. 5.", "She stayed."]);
        check("It was by J.\n\nChapter", &["It was by J.", "Chapter"]);
    }

    #[test]
    fn marked_lines_do_not_run_into_one_another() {
        check(
            "# Shopping\nWe need\n- two eggs\n- milk\n  and tea",
            &["# Shopping", "We need", "- two eggs", "- milk\n  and tea"],
        );
        check("| a | b\r\n| c | d", &["| a | b", "| c | d"]);
        check("「再见。」\n他走了。", &["「再见。」", "他走了。"]);
    }

    #[test]
    fn a_log_is_not_one_sentence() {
        let log = "127.0.0.1 GET /index 200\n".repeat(200);
        assert!(sentences(&log).iter().all(|range| range.len() <= LONGEST_BYTES));
    }

    #[test]
    fn what_has_no_end_is_cut_between_words_or_characters() {
        for text in ["word ".repeat(2000), "word".repeat(2000), "Wörter ".repeat(2000), "ö".repeat(5000)] {
            let found = sentences(&text);
            assert!(found.iter().all(|range| (1..=LONGEST_BYTES).contains(&range.len())), "{found:?}");
            let kept: String = found.iter().map(|range| &text[range.clone()]).collect();
            assert_eq!(kept.replace(' ', ""), text.replace(' ', ""));
            assert!(found.iter().all(|range| text[range.clone()].ends_with(['d', 'r', 'ö'])), "{text}");
        }
    }
}
