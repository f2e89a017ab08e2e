//! Whether words name the same person, place or thing as another name: initials, acronyms, parts.

use super::words::{Word, bare, is_function};

/// The words of a name one after the other, or initials in place of some of them.
pub(super) fn has_name(name: &[String], words: &[Word]) -> bool {
    (0..words.len()).any(|at| begins_with(name, &words[at..]))
}

/// "US" and "United States" are the same: an acronym and the capitalised words that it is of.
fn begins_with(name: &[String], words: &[Word]) -> bool {
    let Some(part) = name.first() else { return true };
    let Some(word) = words.first() else { return false };
    let lower = bare(&word.lower);
    // The article "a" is no initial of "Anna".
    let is_initial = word.capital || lower.chars().nth(1).is_some() || part == lower;
    // The pronouns "us" and "I" are not the US and Ida: "I" and "A" are initials only with a dot before another part of a name.
    let has_dot = || words.get(1).is_some_and(|next| next.capital && next.range.start > word.range.end + 1);
    let is_pronoun = is_function(lower) && !(word.capital && (lower.len() > 1 || has_dot()));
    if is_initial && !is_pronoun && same_name(part, lower) && begins_with(&name[1..], &words[1..]) {
        return true;
    }
    let spelled_out = |initials: &[char]| {
        let words = words.get(..initials.len()).filter(|words| words.iter().all(|word| word.capital));
        words.is_some_and(|words| words.iter().zip(initials).all(|(word, initial)| word.lower.starts_with(*initial)))
    };
    let shortened = |initials: &[char]| {
        let parts = name.get(..initials.len()).filter(|_| word.acronym);
        parts.is_some_and(|parts| parts.iter().zip(initials).all(|(part, initial)| part.starts_with(*initial)))
    };
    let (of_part, of_word) = (initials(part), initials(lower));
    (INITIALS.contains(&of_part.len()) && spelled_out(&of_part) && begins_with(&name[1..], &words[of_part.len()..]))
        || (INITIALS.contains(&of_word.len())
            && shortened(&of_word)
            && begins_with(&name[of_word.len()..], &words[1..]))
}

/// Letters of an acronym.
const INITIALS: std::ops::RangeInclusive<usize> = 2..=5;

/// The letters of a possible acronym, without dots.
fn initials(lower: &str) -> Vec<char> {
    lower.chars().filter(|c| *c != '.').collect()
}

/// The same word, or one is the initial of the other.
fn same_name(a: &str, b: &str) -> bool {
    let initial = |short: &str, long: &str| short.chars().count() == 1 && long.starts_with(short);
    let dotted = || (a.contains('.') || b.contains('.')) && initials(a) == initials(b);
    a == b || initial(a, b) || initial(b, a) || dotted()
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn a_pronoun_and_an_article_are_no_initials() {
        let has = |name: &[&str], text: &str| {
            let name: Vec<String> = name.iter().map(|part| (*part).to_owned()).collect();
            has_name(&name, &words(text))
        };
        assert!(!has(&["ida"], "I prefer the rolls.") && !has(&["ida"], "I, too, prefer the rolls."));
        assert!(!has(&["aron"], "A man sold me a lamp.") && !has(&["us"], "They told us."));
        assert!(has(&["ida", "lund"], "The cook I. Lund left.") && has(&["aron", "lund"], "A. Lund left."));
        assert!(has(&["john", "lund"], "J Lund left."));
    }
}
