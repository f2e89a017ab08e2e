//! The words of a PDF as they are written, not as they are set: ligatures as letters, and words that a hyphen divides at the
//! end of a line in one piece.
//!
//! Whether such a hyphen belongs to its word, as in `long-term`, is not in the file. It is kept if the document has the word
//! with it elsewhere, or both parts as words of their own and not the whole; and unless the document has the whole, after a
//! single letter, after parts such as `well-`, and in words of more than one hyphen and in addresses, which are divided at
//! their own. A soft hyphen is never kept.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

/// The most different words that are remembered; further ones count as words that the document does not have.
const MAX_WORDS: usize = 1_000_000;
/// A longer part of a word before a hyphen is not joined.
const MAX_PART_CHARS: usize = 64;
const SOFT_HYPHEN: char = '\u{ad}';
/// Parts that are words with a hyphen behind them, but before an ending: `self-employed`, `selfish`.
const BEFORE_HYPHENS: [&str; 2] = ["self", "well"];
const ENDINGS: [&str; 3] = ["ish", "less", "ness"];
/// The longest word with hyphens that is looked at.
const MAX_WORD_CHARS: usize = 256;
/// Words between the parts of one with several hyphens: `state-of-the-art`.
const INNER_WORDS: [&str; 10] = ["a", "and", "at", "by", "in", "of", "on", "the", "to", "up"];
/// What follows the first of two parts that share their end: `pre- and postwar`.
const BETWEEN_PARTS: [&str; 9] = ["and", "or", "to", "und", "oder", "bzw", "bis", "et", "ou"];

/// Mends the words of all pages. The text does not become longer.
pub(crate) fn mend(pages: &mut [String]) {
    for page in pages.iter_mut().filter(|page| page.contains(|c: char| ligature(c).is_some())) {
        *page = letters(page);
    }
    let words = Words::of(pages);
    for page in pages.iter_mut() {
        *page = joined(page, &words);
    }
}

/// The letters of a ligature.
fn ligature(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

fn letters(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for c in page.chars() {
        match ligature(c) {
            Some(letters) => text.push_str(letters),
            None => text.push(c),
        }
    }
    text
}

fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '\u{2010}' | SOFT_HYPHEN)
}

/// The page with the words that are divided at the ends of its lines in one piece, each at the end of its line, and without
/// soft hyphens.
fn joined(page: &str, words: &Words) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(end) = rest.find('\n') {
        text.push_str(&rest[..end]);
        let after = rest[end..].trim_start();
        let gap = &rest[end..rest.len() - after.len()];
        let next = &after[..after.find(char::is_whitespace).unwrap_or(after.len())];
        // More than a blank line is no gap within a word.
        let kept = if gap.matches('\n').count() > 2 { None } else { kept_bytes(&text, next, words) };
        if let Some(kept) = kept {
            text.truncate(kept);
            text.push_str(next);
            rest = after[next.len()..].trim_start_matches(' ');
            if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
                text.push('\n');
            }
        } else {
            text.push_str(gap);
            rest = after;
        }
    }
    text.push_str(rest);
    text.retain(|c| c != SOFT_HYPHEN);
    text
}

/// The length of a text to which the word `next` is joined, with its last hyphen or without it; `None` if it does not end in
/// the first part of that word.
fn kept_bytes(text: &str, next: &str, words: &Words) -> Option<usize> {
    let text = text.trim_end();
    let hyphen = text.chars().next_back().filter(|c| is_hyphen(*c))?;
    let before = &text[..text.len() - hyphen.len_utf8()];
    let part = before.chars().rev().take_while(|c| c.is_alphabetic()).take(MAX_PART_CHARS);
    let first = &before[before.len() - part.map(char::len_utf8).sum::<usize>()..];
    let earlier = &before[..before.len() - first.len()];
    // In a name such as `H2O-based` the letters are no part of a word.
    if first.is_empty()
        || first.chars().count() == MAX_PART_CHARS
        || earlier.ends_with(|c: char| c.is_numeric() || c == '_')
    {
        return None;
    }
    if hyphen == SOFT_HYPHEN && next.starts_with(char::is_alphabetic) {
        return Some(before.len());
    }
    let second = &next[..next.find(|c: char| !c.is_alphabetic()).unwrap_or(next.len())];
    let goes_on =
        next[second.len()..].strip_prefix(is_hyphen).is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let is_inner = goes_on && INNER_WORDS.contains(&second);
    if !second.starts_with(char::is_lowercase) || !is_inner && BETWEEN_PARTS.contains(&second) {
        return None;
    }
    let is_of_several = is_inner || first.starts_with(char::is_lowercase) && earlier.ends_with(['-', '\u{2010}']);
    let has_hyphen = words.have_hyphen(first, second, is_of_several || is_address(earlier, next));
    Some(if has_hyphen { text.len() } else { before.len() })
}

/// Whether a word is an address: `https://example.org/long-name`, `ann@long-name.org`.
fn is_address(earlier: &str, next: &str) -> bool {
    let start = earlier.chars().rev().take(MAX_WORD_CHARS).take_while(|c| !c.is_whitespace());
    let start = &earlier[earlier.len() - start.map(char::len_utf8).sum::<usize>()..];
    start.contains("://") || start.starts_with("www.") || start.contains('@') || next.contains('@')
}

/// The words of a document that no line divides, by their digests in small letters.
struct Words(HashSet<u64>);

impl Words {
    fn of(pages: &[String]) -> Self {
        let mut words = Words(HashSet::new());
        for page in pages {
            let mut is_continued = false;
            for line in page.lines() {
                let is_divided = line.trim_end().ends_with(is_hyphen);
                let parts = line.split(|c: char| !c.is_alphabetic() && !is_hyphen(c)).filter(|word| !word.is_empty());
                let mut parts = parts.skip(usize::from(is_continued)).peekable();
                while let Some(word) = parts.next() {
                    if parts.peek().is_some() || !is_divided {
                        words.add(word);
                    }
                }
                is_continued = is_divided;
            }
        }
        words
    }

    /// Adds a word, and the parts of one with hyphens.
    fn add(&mut self, word: &str) {
        let word = word.to_lowercase().replace(SOFT_HYPHEN, "").replace('\u{2010}', "-");
        let word = word.trim_matches('-');
        let parts = word.split('-').filter(|part| word.len() > part.len());
        for word in parts.chain([word]) {
            if self.0.len() < MAX_WORDS {
                self.0.insert(digest(word));
            }
        }
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&digest(word))
    }

    /// Whether a word of two parts has a hyphen between them; `is_likely`: unless the document has the word without one.
    fn have_hyphen(&self, first: &str, second: &str, is_likely: bool) -> bool {
        // A single letter and an abbreviation are no parts of another word: `e-mail`, `EU-wide`.
        let is_abbreviation = first.chars().nth(1).is_none() || first.chars().all(char::is_uppercase);
        let (first, second) = (first.to_lowercase(), second.to_lowercase());
        if self.has(&format!("{first}{second}")) {
            return false;
        }
        let is_compound = BEFORE_HYPHENS.contains(&&*first) && !ENDINGS.iter().any(|end| second.starts_with(end));
        is_likely
            || is_abbreviation
            || is_compound
            || self.has(&format!("{first}-{second}"))
            || self.has(&first) && self.has(&second)
    }
}

fn digest(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(word.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expect: &str) {
        let mut pages = [page.to_owned()];
        mend(&mut pages);
        assert_eq!(pages[0], expect, "{page}");
    }

    #[test]
    fn words_divided_at_line_ends_are_joined_and_lines_stay() {
        check("The exam-\nple, of a\nlamp", "The example,\nof a\nlamp");
        check("The exam- \n\n  ple\nof", "The example\nof");
        check("an inter-\nna-\ntional day", "an international\nday");
        check("the exam\u{2010}\nple", "the example");
        check("the Exam\u{ad}\nPle so\u{ad}ft\u{ad}", "the ExamPle\nsoft");
        check("Häu-\nser", "Häuser");
    }

    #[test]
    fn hyphens_of_words_are_kept() {
        check("A long-\nterm plan: the long-term one.", "A long-term\nplan: the long-term one.");
        check("A long-\nterm plan, long for its term.", "A long-term\nplan, long for its term.");
        check("EU-\nwide rules", "EU-wide\nrules");
        check("a well-\nknown self-\nemployed man", "a well-known\nself-employed\nman");
        check("self-\nish well-\nness", "selfish\nwellness");
        check("an e-\nmail, an x-\nray", "an e-mail,\nan x-ray");
        check("an e-\nmail, no email", "an email,\nno email");
        check(
            "a 20-year-\nold, a state-\nof-the-\nart mother-in-\nlaw",
            "a 20-year-old,\na state-of-the-art\nmother-in-law",
        );
        check(
            "https://example.org/a-long-\nname or www.sam-\nple.org",
            "https://example.org/a-long-name\nor www.sam-ple.org",
        );
        check("ann@north-\npier.org, bo-\nat@pier.org", "ann@north-pier.org,\nbo-at@pier.org");
        check("E-Mail-Adres-\nse", "E-Mail-Adresse");
        check("an in\u{ad}ter-\nnational day", "an international\nday");
        // The whole word counts more than its parts.
        check("A note-\nbook; no notebook, note or book.", "A notebook;\nno notebook, note or book.");
    }

    #[test]
    fn other_hyphens_at_line_ends_stay() {
        for page in [
            "from 1990-\n1995",
            "from 1990-\nto 1995",
            "an H2O-\nbased max_a-\nb",
            "a-\n- b\n",
            "pre-\nand postwar",
            "Jean-\nPaul",
            "a list:\n-\nitem",
            "end -\nof it",
            "exam-\n\n\nple",
            "日本-\n語",
            "exam-",
            "exam-\n",
            "\n\nwords  \n",
        ] {
            check(page, page);
        }
        let long = format!("{}-\nple", "x".repeat(MAX_PART_CHARS));
        check(&long, &long);
    }

    #[test]
    fn ligatures_are_letters() {
        check("o\u{fb03}ce \u{fb01}re \u{fb02}oor o\u{fb00} ba\u{fb04}e \u{fb06}", "office fire floor off baffle st");
        check("the \u{fb01}re-\nman", "the fireman");
    }

    #[test]
    fn other_pages_tell_which_hyphens_are_kept() {
        let mut pages = ["A long-\nterm plan".to_owned(), "is a long-term one".to_owned()];
        mend(&mut pages);
        assert_eq!(pages[0], "A long-term\nplan");
    }
}
