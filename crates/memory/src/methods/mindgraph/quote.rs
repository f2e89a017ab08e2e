//! Finds a quote in a text: exactly, after normalisation, or approximately (section 3.2: provenance is
//! "derived by locating an LLM-supplied verbatim quote in the source").

use std::cell::OnceCell;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// How a quote was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Match {
    /// It occurs byte for byte.
    Exact,
    /// It occurs up to case, white space, the shapes of quotation marks and dashes, and Unicode's NFKC.
    Normalised,
    /// A normalised span differs from it in at most a tenth of its characters, or is the longest part of it between
    /// ellipses.
    Fuzzy,
}

/// A text to search for quotes.
pub struct Quotable<'a> {
    text: &'a str,
    even: OnceCell<Even>,
}

/// A normalised text.
#[derive(Debug, Default)]
struct Even {
    chars: Vec<char>,
    /// The bytes of the text from which each character comes.
    from: Vec<Range<usize>>,
}

/// Longer quotes are not aligned, since the cost of alignment grows with their length.
const LONGEST_ALIGNED_CHARS: usize = 2000;

/// Shorter parts of a quote with an ellipsis are in too many places.
const SHORTEST_PART_CHARS: usize = 8;

impl<'a> Quotable<'a> {
    /// Prepares nothing yet: most quotes are found exactly.
    pub fn new(text: &'a str) -> Self {
        Quotable { text, even: OnceCell::new() }
    }

    /// The first span of `quote`, without white space around it, and the kind of match; none if it is blank or
    /// not found. Of a quote with an ellipsis that is not found as it is, the longest part is looked for.
    pub fn find(&self, quote: &str) -> Option<(Range<usize>, Match)> {
        let quote = quote.trim();
        self.find_whole(quote).or_else(|| {
            let chars = |part: &&str| part.chars().count();
            let parts = quote.split("...").flat_map(|part| part.split('…'));
            let parts = parts.map(|part| part.trim_matches(|c: char| c.is_whitespace() || "[]().".contains(c)));
            let is_long = |part: &&str| part.len() < quote.len() && chars(part) >= SHORTEST_PART_CHARS;
            let (bytes, _) = self.find_whole(parts.max_by_key(chars).filter(is_long)?)?;
            Some((bytes, Match::Fuzzy))
        })
    }

    fn find_whole(&self, quote: &str) -> Option<(Range<usize>, Match)> {
        if quote.is_empty() {
            return None;
        }
        if let Some(start) = self.text.find(quote) {
            return Some((start..start + quote.len(), Match::Exact));
        }
        let quote = Even::of(quote).chars;
        let text = self.even.get_or_init(|| Even::of(self.text));
        if quote.is_empty() {
            return None;
        }
        let same = text.chars.windows(quote.len()).position(|window| window == quote);
        if let Some(start) = same {
            return Some((text.bytes(start..start + quote.len())?, Match::Normalised));
        }
        Some((text.bytes(align(&quote, &text.chars)?)?, Match::Fuzzy))
    }
}

impl Even {
    fn of(text: &str) -> Even {
        let mut even = Even::default();
        for (start, cluster) in text.grapheme_indices(true) {
            // Each cluster is normalised alone, so that the bytes of every character are known.
            let from = start..start + cluster.len();
            for c in cluster.nfkc().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase) {
                even.push(plain(c), from.clone());
            }
        }
        if even.chars.last() == Some(&' ') {
            even.chars.pop();
            even.from.pop();
        }
        even
    }

    /// Adds a character; a run of white space is one blank, and none at the beginning.
    fn push(&mut self, c: char, from: Range<usize>) {
        if c.is_whitespace() {
            match (self.chars.last(), self.from.last_mut()) {
                (Some(' '), Some(run)) => run.end = from.end,
                (Some(_), _) => {
                    self.chars.push(' ');
                    self.from.push(from);
                }
                (None, _) => {}
            }
            return;
        }
        self.chars.push(c);
        self.from.push(from);
    }

    /// The bytes of the text that some characters come from.
    fn bytes(&self, chars: Range<usize>) -> Option<Range<usize>> {
        let (first, last) = (self.from.get(chars.start)?, self.from.get(chars.end.checked_sub(1)?)?);
        Some(first.start..last.end)
    }
}

/// Soft hyphens, zero-width spaces and byte order marks are invisible to readers.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}')
}

/// One shape for all quotation marks of a kind, and for all dashes.
fn plain(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' | '`' | '´' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        other => other,
    }
}

/// The span of `text` with the fewest edits to `quote` (Sellers' algorithm), if at most a tenth of
/// the quote's characters are edited; the first of equals.
fn align(quote: &[char], text: &[char]) -> Option<Range<usize>> {
    let allowed = quote.len() / 10;
    if allowed == 0 || quote.len() > LONGEST_ALIGNED_CHARS {
        return None;
    }
    // For each prefix of the quote: the fewest edits of a match that ends here, and the start of that match.
    let mut column: Vec<(usize, usize)> = (0..=quote.len()).map(|changes| (changes, 0)).collect();
    let mut best = (allowed + 1, 0..0);
    for (at, c) in text.iter().enumerate() {
        let mut before = std::mem::replace(&mut column[0], (0, at + 1));
        for (row, wanted) in (1..).zip(quote) {
            let kept = (before.0 + usize::from(wanted != c), before.1);
            let added = (column[row].0 + 1, column[row].1);
            let left_out = (column[row - 1].0 + 1, column[row - 1].1);
            before = column[row];
            column[row] = [kept, added, left_out].into_iter().min_by_key(|(changes, _)| *changes)?;
        }
        let (changes, start) = column[quote.len()];
        if changes < best.0 {
            best = (changes, start..at + 1);
        }
    }
    (best.0 <= allowed).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAMP: &str =
        "Ada Brook — “the keeper” — lit the lamp\n  of the lighthouse every evening at six o’clock sharp.";

    /// `want` is the span found, and the kind of match.
    fn check(text: &str, quote: &str, want: Option<(&str, Match)>) {
        let found = Quotable::new(text).find(quote);
        assert_eq!(found.map(|(bytes, how)| (&text[bytes], how)), want, "{quote:?} in {text:?}");
    }

    #[test]
    fn quotes_are_found_exactly() {
        check(LAMP, "lit the lamp", Some(("lit the lamp", Match::Exact)));
        check(LAMP, "  lit the lamp\n", Some(("lit the lamp", Match::Exact)));
        check("one two one", "one", Some(("one", Match::Exact)));
        check("灯台守のアダは毎晩ランプに火をともした。", "アダは毎晩", Some(("アダは毎晩", Match::Exact)));
        check("a 👩‍🚒 came", "👩‍🚒 came", Some(("👩‍🚒 came", Match::Exact)));
    }

    #[test]
    fn quotes_are_found_in_another_spelling() {
        let check = |text: &str, quote: &str, want: &str| check(text, quote, Some((want, Match::Normalised)));
        check(LAMP, "\"the keeper\" - lit", "“the keeper” — lit");
        check(LAMP, "the lamp of the lighthouse", "the lamp\n  of the lighthouse");
        check(LAMP, "SIX O'CLOCK", "six o’clock");
        check("the caf\u{65}\u{301} there", "the café", "the caf\u{65}\u{301}");
        check("the café there", "cafe\u{301} there", "café there");
        check("an ofﬁce here", "office", "ofﬁce");
        check("ｶﾞラス and 한국", "ガラス", "ｶﾞラス");
        check("\u{1112}\u{1161}\u{11ab}국어", "한국어", "\u{1112}\u{1161}\u{11ab}국어");
        check("the light\u{ad}house", "lighthouse", "light\u{ad}house");
        check("１９１１年に", "1911年", "１９１１年");
        check("so 🎉\u{a0}\u{a0}party", "🎉 Party", "🎉\u{a0}\u{a0}party");
        check("x…", "x...", "x…");
    }

    #[test]
    fn quotes_are_found_with_few_errors() {
        check(LAMP, "lit the lanp of the lighthouse", Some(("lit the lamp\n  of the lighthouse", Match::Fuzzy)));
        check(LAMP, "every single evening at six o'clock", None);
        check(LAMP, "every evenin at six oclock", Some(("every evening at six o’clock", Match::Fuzzy)));
        check(LAMP, "lit the lump", Some(("lit the lamp", Match::Fuzzy)));
        check(LAMP, "the lump", None);
        check(LAMP, "the harbour wall at Pell", None);
        check(LAMP, " \n", None);
        check(LAMP, "\u{200b}", None);
        check("", "lamp", None);
    }

    #[test]
    fn a_quote_with_an_ellipsis_is_found_by_its_longest_part() {
        check(LAMP, "lit the lamp...", Some(("lit the lamp", Match::Fuzzy)));
        check(LAMP, "… lit the lamp …", Some(("lit the lamp", Match::Fuzzy)));
        check(LAMP, "Ada Brook [...] lit the lamp", Some(("lit the lamp", Match::Fuzzy)));
        check(LAMP, "the lamp... at six o'clock sharp", Some(("at six o’clock sharp", Match::Fuzzy)));
        check(LAMP, "lit ... lamp", None);
        check(LAMP, "...", None);
        check("Ada ... lit the lamp.", "Ada ... lit", Some(("Ada ... lit", Match::Exact)));
    }

    #[test]
    fn a_quote_of_everything_is_everything() {
        check(LAMP, LAMP, Some((LAMP, Match::Exact)));
        check("  two  ", "two", Some(("two", Match::Exact)));
    }

    /// The textbook edit distance, to check the alignment.
    fn distance(a: &[char], b: &[char]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut before = std::mem::replace(&mut row[0], i + 1);
            for j in 1..=b.len() {
                let changed = [before + usize::from(*x != b[j - 1]), row[j] + 1, row[j - 1] + 1];
                before = row[j];
                row[j] = changed.into_iter().min().unwrap_or_default();
            }
        }
        row[b.len()]
    }

    /// The ends of a span may differ by this many characters beyond the edits: spans are whole clusters, and a blank at
    /// an end is not compared.
    fn at_the_ends(there: &str) -> usize {
        let ends = [there.graphemes(true).next(), there.graphemes(true).next_back()];
        let beyond = |cluster: &str| match Even::of(cluster).chars.len() {
            0 => 1,
            chars => chars - 1,
        };
        ends.into_iter().flatten().map(beyond).sum()
    }

    proptest! {
        #[test]
        fn an_edited_slice_is_found_near_where_it_was(
            text in "[a-zé灯👩 \u{301}’\n]{40,160}",
            cut in (0usize..100, 20usize..60),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, "[a-z灯]"), 0..3),
        ) {
            let chars: Vec<char> = text.chars().collect();
            let start = cut.0 % (chars.len() - 20);
            let slice: Vec<char> = chars[start..(start + cut.1).min(chars.len())].to_vec();
            let mut edited = slice.clone();
            for (at, what, new) in &edits {
                let at = at.index(edited.len());
                let new = new.chars().next().unwrap_or('x');
                match what {
                    0 => edited[at] = new,
                    1 => edited.insert(at, new),
                    _ => { edited.remove(at); }
                }
            }
            let quote: String = edited.iter().collect();
            let found = Quotable::new(&text).find(&quote);
            if let Some((bytes, how)) = found {
                let there = text.get(bytes);
                prop_assert!(there.is_some(), "a place is whole characters");
                let ends = at_the_ends(there.unwrap_or_default());
                let (there, quote) = (Even::of(there.unwrap_or_default()).chars, Even::of(quote.trim()).chars);
                let changes = distance(&there, &quote);
                let allowed = if how == Match::Fuzzy { quote.len() / 10 + ends } else { ends };
                prop_assert!(changes <= allowed, "{changes}, {ends} at the ends: {there:?} {quote:?}");
            } else {
                let slice: String = slice.iter().collect();
                let (slice, quote) = (Even::of(&slice).chars, Even::of(quote.trim()).chars);
                prop_assert!(quote.is_empty() || distance(&slice, &quote) > (quote.len() / 10).saturating_sub(2), "lost");
            }
            if edits.is_empty() && !quote.trim().is_empty() {
                prop_assert_eq!(Quotable::new(&text).find(&quote).map(|(_, how)| how), Some(Match::Exact));
            }
        }
    }
}
