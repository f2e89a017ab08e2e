//! Citations, and the sentences that they quote.
//!
//! Citations are selected, not generated, so every quote equals its source byte for byte.

use std::iter;
use std::mem;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::grounding::is_function;

/// A span of a source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Citation {
    /// The path of the document.
    pub path: String,
    /// The id of the page in the corpus, which is no page number.
    pub page: i64,
    /// The name of the page in its source: `page 3` of a PDF, a slide, a sheet, a chapter, a subject; else the document's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
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
/// without a sentence end continues in the next line, unless that line is blank, starts a heading, an item, a table row, a
/// numbered item or clause, or a field of a form, or makes the sentence too long. They also end one behind "Mr.", "J. R." and
/// the number of an item; what follows continues it. Closing signs and numbers of notes behind a sentence belong to it. What is
/// no prose, such as a line of data, is cut where it is too long for a sentence.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences: Vec<Range<usize>> = Vec::new();
    let (mut open, mut before) = (false, "");
    for (start, piece) in pieces(text).flat_map(cut) {
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            (open, before) = (false, "");
            continue;
        }
        let from = start + (piece.len() - piece.trim_start().len());
        let range = from..from + trimmed.len();
        let last = sentences.last().cloned().unwrap_or_default();
        let said = &text[last.clone()];
        let begins = begins_line(text, from)
            && (MARKS.iter().any(|mark| trimmed.starts_with(mark))
                || is_next_in_list(&text[from..], open.then_some(said)));
        let is_in_line = || begins_line(text, last.start) && !text[last.end..from].contains('\n');
        // Behind the number of an item, and behind a cell that ends as a sentence does.
        let is_rest = || (is_number_alone(said) || trimmed.starts_with("| ")) && is_in_line();
        let goes_on = (open || is_abbreviated(before, trimmed) || is_rest()) && !begins;
        match sentences.last_mut() {
            Some(last) if goes_on && range.end - last.start <= LONGEST_BYTES => last.end = range.end,
            _ => sentences.push(range),
        }
        open = !trimmed.starts_with('#') && !without_notes(trimmed).trim_end_matches(CLOSERS).ends_with(ENDS);
        before = trimmed;
    }
    sentences
}

/// The sentences of Unicode's rules, with the closing signs and numbers of notes directly behind them.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    let ends = text.split_sentence_bound_indices().map(move |(at, piece)| at + closing_bytes(&text[..at], piece));
    ends.chain([text.len()]).map(move |end| {
        let start = mem::replace(&mut start, end);
        (start, &text[start..end])
    })
}

/// The length of the closing signs and numbers of notes that a text begins with, directly behind a sentence and before white
/// space: Unicode's rules divide `It is done.**` and `It is done.[1]` before `**` and `1`.
fn closing_bytes(before: &str, text: &str) -> usize {
    let in_note = before.ends_with('[') || text.trim_start_matches(CLOSERS).starts_with('[');
    let is_closing = |c: char| CLOSERS.contains(&c) || in_note && (c.is_ascii_digit() || "[^".contains(c));
    let rest = text.trim_start_matches(is_closing);
    let is_behind = !before.is_empty() && !before.ends_with(char::is_whitespace);
    if is_behind && (rest.is_empty() || rest.starts_with(char::is_whitespace)) { text.len() - rest.len() } else { 0 }
}

/// A sentence without the numbers of notes at its end.
fn without_notes(mut sentence: &str) -> &str {
    let is_number = |number: &str| number.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_digit());
    while let Some((rest, number)) = sentence.strip_suffix(']').and_then(|inner| inner.rsplit_once('['))
        && is_number(number)
    {
        sentence = rest;
    }
    sentence
}

/// Whether only blanks are between a byte of a text and the beginning of its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// Whether a text begins with a numbered item, a field of a form such as "Absent: Ann" or a row of a table such as "Power | 40 W". Behind a
/// sentence that is `open` it has to be the first item before a second one, or that sentence to be of the same kind: "It was built in\n12.
/// Then" has no item.
fn is_next_in_list(rest: &str, open: Option<&str>) -> bool {
    let line = rest.split('\n').next().unwrap_or_default().trim_end();
    let is_behind = |is_alike: &dyn Fn(&str) -> bool| open.is_none_or(is_alike);
    let is_row = |line: &str| line.contains(" | ");
    match item_number(line) {
        Some(number) => is_behind(&|last: &str| item_number(last).is_some() || begins_list(number, rest)),
        None => is_row(line) && is_behind(&is_row) || has_label(line) && is_behind(&has_label),
    }
}

/// Whether a number is that of the first item of a text that has a second one in a line near: "1. April 2024" has none.
fn begins_list(number: &str, rest: &str) -> bool {
    let last_part = |number: &str| number.trim_matches(['(', ')', '.']).rsplit('.').next().map(str::to_owned);
    let is_second = |line: &str| item_number(line.trim()).and_then(last_part).as_deref() == Some("2");
    let near = &rest[..rest.floor_char_boundary(LONGEST_BYTES)];
    last_part(number).as_deref() == Some("1") && near.lines().skip(1).any(is_second)
}

/// The number that a line begins with as an item of a list or a clause of a contract does: "2.", "2)", "(2)", "3.1", "3.1.".
fn item_number(line: &str) -> Option<&str> {
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let number = &line[..end];
    let digits = number.trim_start_matches('(').trim_end_matches(['.', ')']);
    let is_part = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits.split('.').all(is_part) {
        return None;
    }
    // "3.1 per cent" is no clause.
    let is_titled = || line[end..].trim_start().starts_with(|c: char| c.is_uppercase() || "\"“„«¿¡".contains(c));
    let is_number = match number.len() - digits.len() {
        0 => digits.contains('.') && is_titled(),
        1 => number.ends_with(['.', ')']),
        _ => number == format!("({digits})"),
    };
    is_number.then_some(number)
}

/// A sentence behind the number of an item that it begins with; the sentence itself if there is no number, or nothing or a month
/// behind it.
pub(crate) fn without_number(sentence: &str) -> &str {
    let rest = item_number(sentence).map(|number| sentence[number.len()..].trim_start());
    let is_date = |rest: &str| GERMAN_MONTHS.iter().any(|month| rest.starts_with(month));
    rest.filter(|rest| !rest.is_empty() && !is_date(rest)).unwrap_or(sentence)
}

/// Whether a sentence is the number of an item and no more: Unicode's rules end one behind "3." before a capital.
fn is_number_alone(sentence: &str) -> bool {
    let number = sentence.trim_matches(['*', '_']);
    !number.contains(char::is_whitespace) && item_number(number).is_some()
}

/// Whether a line begins with the name of a field: "Paid by: Ann".
fn has_label(line: &str) -> bool {
    let label = line.find(": ").map(|end| &line[..end]);
    label.is_some_and(|label| {
        label.starts_with(char::is_uppercase)
            && label.len() <= LABEL_BYTES
            && label.chars().all(|c| c.is_alphanumeric() || c == ' ' || c == '-')
    })
}

/// The length of the name of a field.
const LABEL_BYTES: usize = 24;

/// Whether the dot at the end of a text only ends an abbreviation, by the text behind it.
fn is_abbreviated(before: &str, after: &str) -> bool {
    let Some(before) = before.trim_end_matches(['*', '_']).strip_suffix('.') else { return false };
    let word = before.rsplit(|c: char| c.is_whitespace() || "(\"“'‘*_".contains(c)).next().unwrap_or(before);
    let is_initial = |part: &str| part.chars().count() == 1 && part.chars().all(char::is_uppercase);
    let begins_sentence = || {
        let first = after.unicode_words().next().unwrap_or_default().to_lowercase();
        is_function(&first)
    };
    let is_day = (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    TITLES.contains(&word)
        || is_day && GERMAN_MONTHS.iter().any(|month| after.starts_with(month))
        || word == "St" && !begins_sentence()
        || NUMBERED.contains(&word) && after.starts_with(|c: char| c.is_ascii_digit())
        || word != "I" && word.split('.').all(is_initial) && !begins_sentence()
}

/// Abbreviations that a name or another word follows.
const TITLES: [&str; 22] = [
    "Mr", "Mrs", "Ms", "Mx", "Dr", "Prof", "Gen", "Capt", "Rev", "Lt", "Col", "Sgt", "Sen", "Rep", "Gov", "Hon",
    "Messrs", "Mme", "Mlle", "e.g", "i.e", "vs",
];

/// German months, behind the number of a day: "am 1. April".
const GERMAN_MONTHS: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// Abbreviations before a number.
const NUMBERED: [&str; 22] = [
    "No", "Nos", "no", "Fig", "Figs", "Vol", "Ch", "Sec", "p", "pp", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug",
    "Sep", "Sept", "Oct", "Nov", "Dec",
];

/// A quote without the Markdown mark of a heading, an item or a quotation before its first word.
pub(crate) fn without_mark(quote: &str) -> &str {
    let rest = quote.trim_start_matches(['#', '-', '*', '>']);
    // "-5" and "*this*" have no mark.
    let is_mark = rest.len() < quote.len() && rest.starts_with(char::is_whitespace) && !rest.trim().is_empty();
    if is_mark { rest.trim_start() } else { quote }
}

/// Starts of lines that do not continue the line before.
const MARKS: [&str; 5] = ["#", "- ", "* ", "> ", "| "];

/// Closing signs after the end of a sentence.
const CLOSERS: [char; 14] = ['"', '\'', '”', '’', ')', ']', '»', '_', '*', '~', '`', '」', '』', '）'];

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
    use super::{LONGEST_BYTES, sentences, without_mark};

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
    fn numbered_items_and_clauses_begin_sentences_and_keep_their_numbers() {
        check(
            "3. Rent and deposit\n3.1 The rent is £900 per month.\n3.2 A late payment costs £25.",
            &["3. Rent and deposit", "3.1 The rent is £900 per month.", "3.2 A late payment costs £25."],
        );
        check(
            "Shopping\n1. Buy eggs\n2. Buy milk\n   and tea",
            &["Shopping", "1. Buy eggs", "2. Buy milk\n   and tea"],
        );
        check("(1) Fill it\n(2) Boil it", &["(1) Fill it", "(2) Boil it"]);
        check("1) fill it\n2) boil it. Wait.", &["1) fill it", "2) boil it.", "Wait."]);
        // Numbers where lines of prose begin.
        check("The score was\n12. Then it rained.", &["The score was\n12.", "Then it rained."]);
        check("It grew by\n3.1 per cent in\n1950. He left.", &["It grew by\n3.1 per cent in\n1950.", "He left."]);
        check(
            "Der Vertrag beginnt am\n1. April 2024. Er endet am 31. März 2026. Er gilt.",
            &["Der Vertrag beginnt am\n1. April 2024.", "Er endet am 31. März 2026.", "Er gilt."],
        );
        check("He was 5. She was 6.", &["He was 5.", "She was 6."]);
    }

    #[test]
    fn fields_of_a_form_begin_sentences() {
        check(
            "Present: Ann Lee, Bo Ek\nAbsent: Kim Park (ill)\nat the beginning",
            &["Present: Ann Lee, Bo Ek", "Absent: Kim Park (ill)\nat the beginning"],
        );
        check("He told them about\nPlan B: they would leave.", &["He told them about\nPlan B: they would leave."]);
    }

    #[test]
    fn rows_of_a_table_are_sentences() {
        check("Part | Value\nPower | 40 W\nMade by | Dr. Lee", &["Part | Value", "Power | 40 W", "Made by | Dr. Lee"]);
        let row = |shop: &str| format!("Date: 2025-01-03 | Shop: {shop} | Paid by: Ann");
        let (first, second) = (row("Rex"), row("Dr. Lee"));
        check(&format!("{first}\n{second}"), &[&first[..], &second[..]]);
        let noted = ["Note: It rained. | Paid by: Bo", "Note: It snowed. | Paid by: Ann"];
        check(&noted.join("\n"), &noted);
        check("It is either red\nor blue | green.", &["It is either red\nor blue | green."]);
    }

    #[test]
    fn marks_of_markdown_are_no_part_of_a_statement() {
        for (quote, want) in [
            ("- milk", "milk"),
            ("## Shopping", "Shopping"),
            ("-5 degrees", "-5 degrees"),
            ("*this* one", "*this* one"),
            ("3.1 The rent", "3.1 The rent"),
            ("- ", "- "),
            ("__init__ is a method", "__init__ is a method"),
            ("____ euros", "____ euros"),
        ] {
            assert_eq!(without_mark(quote), want);
        }
    }

    #[test]
    fn closing_signs_belong_to_the_sentence_that_they_close() {
        for mark in ["**", "__", "*", "_", "***", "~~", "`", "\"", "**)", "_”"] {
            for gap in [" ", "\n", "\r\n", "\n\n"] {
                let [first, second] = ["It is done.", "Is it done?"].map(|sentence| format!("{mark}{sentence}{mark}"));
                check(&format!("{first}{gap}{second}{gap}Next."), &[&first, &second, "Next."]);
            }
        }
        check("It is done. **Next.** *And*", &["It is done.", "**Next.**", "*And*"]);
        check("One.\n* two\n* three", &["One.", "* two", "* three"]);
        check("(It is done.) [Next.]", &["(It is done.)", "[Next.]"]);
        check("It is done.[1][2] Next.[^3]\nLast.[4]", &["It is done.[1][2]", "Next.[^3]", "Last.[4]"]);
        check("**It is done.**[1] Next.", &["**It is done.**[1]", "Next."]);
        check("**Dr.** Ann read *e.g.* Homer. Next.", &["**Dr.** Ann read *e.g.* Homer.", "Next."]);
        check("**1.** It is done.\n**2.** Next.", &["**1.** It is done.", "**2.** Next."]);
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
