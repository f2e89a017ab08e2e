//! Words of an English text with their places, and the classes of words that tell what a pronoun refers to.

use std::ops::Range;

use crate::grounding::is_function;

/// A word of a text.
struct Word {
    /// Bytes in the text.
    range: Range<usize>,
    lower: String,
    is_capital: bool,
}

/// The words of a text. Places that it does not have are empty words.
pub(super) struct Words<'a> {
    pub text: &'a str,
    words: Vec<Word>,
}

/// What joins two letters in one word: "Reed's", "V&A", "U.S".
const JOINING: [char; 5] = ['\'', '\u{2019}', '-', '&', '.'];

impl<'a> Words<'a> {
    pub fn of(text: &'a str) -> Words<'a> {
        let chars: Vec<(usize, char)> = text.char_indices().collect();
        let is_letter = |at: usize| chars.get(at).is_some_and(|(_, c)| c.is_alphanumeric());
        let is_joining = |at: usize| at > 0 && is_letter(at - 1) && is_letter(at + 1) && JOINING.contains(&chars[at].1);
        let byte = |at: usize| chars.get(at).map_or(text.len(), |(byte, _)| *byte);
        let (mut words, mut at) = (Vec::new(), 0);
        while at < chars.len() {
            let end = (at..chars.len()).find(|at| !is_letter(*at) && !is_joining(*at)).unwrap_or(chars.len());
            if end > at {
                let range = byte(at)..byte(end);
                let lower = text[range.clone()].to_lowercase().replace('\u{2019}', "'");
                words.push(Word { range, lower, is_capital: chars[at].1.is_uppercase() });
            }
            at = end + 1;
        }
        Words { text, words }
    }

    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// A word in lower case.
    pub fn lower(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.lower.as_str())
    }

    /// The same without the ending of the possessive.
    pub fn bare(&self, at: usize) -> &str {
        self.lower(at).strip_suffix("'s").unwrap_or(self.lower(at))
    }

    /// The lower-case word before a place; empty at the beginning.
    pub fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.lower(before))
    }

    pub fn is_capital(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.is_capital)
    }

    /// What is between a word and the one before it, at most the beginning or the end of the text.
    pub fn gap(&self, at: usize) -> &'a str {
        let start = at.checked_sub(1).and_then(|before| self.words.get(before)).map_or(0, |word| word.range.end);
        let end = self.words.get(at).map_or(self.text.len(), |word| word.range.start);
        &self.text[start..end]
    }

    /// Whether only a space is between a word and the one before it.
    pub fn is_next(&self, at: usize) -> bool {
        at > 0 && at < self.count() && self.gap(at).chars().all(char::is_whitespace)
    }

    /// Whether a word is no function word.
    pub fn is_content(&self, at: usize) -> bool {
        let bare = self.bare(at);
        !bare.is_empty() && !is_function(bare) && !is_preposition(bare) && !is_among(bare, MORE_FUNCTION_WORDS)
    }

    /// Whether a word can be a noun behind the word before it: it is a content word in lower case.
    pub fn is_noun(&self, at: usize) -> bool {
        let is_adverb = self.lower(at).ends_with("ly") && self.lower(at) != "family";
        self.is_next(at) && self.is_content(at) && !self.is_capital(at) && !is_adverb
    }

    pub fn is_number(&self, at: usize) -> bool {
        self.lower(at).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether a word is an owner: "Reed's", "the Panthers'".
    pub fn is_possessive(&self, at: usize) -> bool {
        let lower = self.lower(at);
        lower.ends_with("'s") || lower.ends_with('s') && self.gap(at + 1).starts_with(['\'', '\u{2019}'])
    }

    pub fn is_auxiliary(&self, at: usize) -> bool {
        let is_contracted = self.lower(at).ends_with("'s") && is_among(self.bare(at), ASKING);
        is_contracted || is_among(self.lower(at), AUXILIARIES)
    }

    /// Whether a word is a form of "be", also in "what's".
    pub fn is_be(&self, at: usize) -> bool {
        self.is_auxiliary(at) && (self.lower(at).ends_with("'s") || is_among(self.lower(at), BE))
    }

    /// Whether a clause begins with a word.
    pub fn is_boundary(&self, at: usize) -> bool {
        self.gap(at).contains([',', ';', ':']) || is_among(self.lower(at), BEGINNING_CLAUSES)
    }

    /// The place of the question word.
    pub fn asking(&self) -> Option<usize> {
        (0..self.count()).find(|at| is_among(self.bare(*at), ASKING))
    }

    /// Whether the question asks what or who something is: "Who was the founder of Acme?".
    pub fn is_copular(&self) -> bool {
        let Some(asked) = self.asking().filter(|at| matches!(self.bare(*at), "who" | "what")) else { return false };
        let be = if self.is_be(asked) { asked } else { asked + 1 };
        let is_noun_phrase =
            |at: usize| self.is_capital(at) || self.is_possessive(at) || is_among(self.lower(at), DETERMINERS);
        self.is_be(be) && is_noun_phrase(be + 1)
    }

    /// The bytes of some words, without the possessive ending of the last one.
    pub fn bytes(&self, at: Range<usize>) -> Range<usize> {
        let (Some(first), Some(last)) = (self.words.get(at.start), self.words[..at.end].last()) else { return 0..0 };
        let ending = match last.lower.ends_with("'s") {
            true => self.text[last.range.clone()].chars().rev().take(2).map(char::len_utf8).sum::<usize>(),
            false => 0,
        };
        first.range.start..last.range.end - ending
    }

    /// The same as text.
    pub fn span(&self, at: Range<usize>) -> &'a str {
        &self.text[self.bytes(at)]
    }
}

/// Whether a list that is separated by spaces has a word.
pub(super) fn is_among(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

pub(super) fn is_preposition(lower: &str) -> bool {
    is_among(lower, PREPOSITIONS)
}

const ASKING: &str = "who whom whose what which when where why how";

pub(super) const DETERMINERS: &str =
    "the a an this that these those his her its their my your our every each any some no another";

const AUXILIARIES: &str =
    "is are was were do does did has have had can could will would should must may might didn't wasn't isn't weren't";

const BE: &str = "is are was were isn't wasn't weren't";

const PREPOSITIONS: &str =
    "of in on at by from to for with about near into through around inside outside within against under over across";

/// Function words beside those of [`is_function`].
const MORE_FUNCTION_WORDS: &str = "many every several ago away again still even not";

const BEGINNING_CLAUSES: &str =
    "that when if because while after before who which as since until whether where although though and but or";
