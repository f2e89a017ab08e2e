//! Whether two texts give the same names the same roles.

use super::values::Values;
use super::words::{Word, bare, is_past};

/// A text as words with the names in it.
pub(super) struct Named<'a> {
    pub words: &'a [Word],
    pub values: &'a Values,
}

/// Two names in one order in the claim and only in the other in the span, both in the active or both in the passive voice,
/// with a word between them in both: "A beat B" does not support "B beat A", but "The capital of B is A" supports "A is the
/// capital of B". Where both texts say what something of one of the names is, the owners are compared instead of the order.
pub(super) fn turned(claim: &Named<'_>, shown: &Named<'_>) -> bool {
    let passive = |words: &[Word]| words.iter().any(|word| word.lower == "by");
    let heads: Vec<&str> = claim.values.names.iter().filter_map(|name| name.last()).map(String::as_str).collect();
    let both_equate = equates(claim.words) && equates(shown.words);
    passive(claim.words) == passive(shown.words)
        && heads.windows(2).filter(|pair| pair[0] != pair[1]).any(|pair| {
            let owners = [claim, shown].map(|text| [pair[0], pair[1]].map(|name| owns(text.words, name)));
            match owners {
                [said, given] if both_equate && said.contains(&true) && given.contains(&true) => said != given,
                _ => is_other_way(claim.words, shown.words, pair[0], pair[1]),
            }
        })
}

/// Whether a form of "be" is the only verb.
fn equates(words: &[Word]) -> bool {
    let is = |word: &Word| matches!(word.lower.as_str(), "is" | "are" | "was" | "were");
    words.iter().any(is) && !words.iter().any(|word| !is(word) && is_past(&word.lower))
}

/// Whether a name has a possessive ending or follows "of".
fn owns(words: &[Word], name: &str) -> bool {
    let before = |at: usize, back: usize| at.checked_sub(back).map_or("", |at| words[at].lower.as_str());
    let is_owner = |at: usize| {
        words[at].lower.ends_with("'s") || before(at, 1) == "of" || before(at, 1) == "the" && before(at, 2) == "of"
    };
    (0..words.len()).any(|at| bare(&words[at].lower) == name && is_owner(at))
}

/// Whether a name is before another in the claim and only behind it in the span, and the same content word is between them in
/// both.
fn is_other_way(said: &[Word], given: &[Word], first: &str, second: &str) -> bool {
    let find = |words: &[Word], name: &str| words.iter().position(|word| bare(&word.lower) == name);
    let rfind = |words: &[Word], name: &str| words.iter().rposition(|word| bare(&word.lower) == name);
    let (Some(from), Some(to)) = (find(said, first), rfind(said, second)) else { return false };
    let (Some(before), Some(after)) = (find(given, first), rfind(given, second)) else { return false };
    let between = |words: &[Word], from: usize, to: usize| -> Vec<String> {
        words.get(from + 1..to).unwrap_or_default().iter().filter_map(|word| word.stem.clone()).collect()
    };
    let (said, given) = (between(said, from, to), between(given, after, before));
    before > after && said.iter().any(|stem| given.contains(stem))
}

/// Whether the span has a name that the claim does not have, between the same two words between which the claim has this one:
/// "a French party left" does not support "a British party left", even if the sentence before speaks of the British.
pub(super) fn is_replaced(name: &[String], claim: &[Word], words: &[Word]) -> bool {
    let is_here = |run: &[Word]| name.iter().zip(run).all(|(part, word)| part == bare(&word.lower));
    let Some(at) = claim.windows(name.len().max(1)).position(is_here) else { return false };
    let before = at.checked_sub(1).map(|at| &claim[at].lower);
    let after = claim.get(at + name.len()).map(|word| &word.lower);
    let is_other =
        |word: &Word| word.capital && !word.is_function() && !claim.iter().any(|known| known.lower == word.lower);
    // The other name begins at `from`, behind the same word or with the sentence.
    let begins = |from: &usize| match before {
        Some(before) => *from > 0 && words[*from - 1].lower == *before,
        None => *from == 0,
    };
    (0..words.len()).filter(begins).any(|from| {
        let length = words[from..].iter().take_while(|word| is_other(word)).count();
        length > 0 && after.is_none_or(|after| words.get(from + length).is_some_and(|word| word.lower == *after))
    })
}
