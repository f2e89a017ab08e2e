//! Words that exclude one another, and words that take back the word behind them.

use super::numbers::is_rank;
use super::words::Word;

/// The pairs of opposites that a word is of, and which side it is.
pub(super) fn comparisons(lower: &str) -> Vec<(usize, bool)> {
    let side = |list: &str| list.split(' ').any(|word| word == lower);
    let pairs = OPPOSITES.iter().enumerate();
    pairs.flat_map(|(at, (a, b))| [side(a).then_some((at, true)), side(b).then_some((at, false))]).flatten().collect()
}

/// Whether a word of a claim is in a sentence only behind one that takes it back: "the former mayor" does not support "the
/// mayor", nor "the second largest city" "the largest city".
pub(super) fn is_taken_back(claim: &[Word], shown: &[Word]) -> bool {
    let is_same = |a: &Word, b: &Word| a.stem == b.stem && (a.stem.is_some() || a.lower == "most" && b.lower == "most");
    claim.iter().enumerate().filter(|(_, word)| !word.number).any(|(at, word)| {
        let places = shown.iter().enumerate().filter(|(_, other)| is_same(word, other));
        let mut modifiers = places.map(|(place, _)| modifier(shown, place)).peekable();
        let own = modifier(claim, at);
        modifiers.peek().is_some() && modifiers.all(|modifier| modifier.is_some() && modifier != own)
    })
}

/// The word that takes back the word at a place.
fn modifier(words: &[Word], at: usize) -> Option<&str> {
    let before = |back: usize| at.checked_sub(back).map_or("", |before| words[before].lower.as_str());
    let lower = words[at].lower.as_str();
    let is_superlative = lower.ends_with("est") || matches!(lower, "most" | "worst");
    let takes_back = MODIFIERS.contains(&before(1)) || is_superlative && before(1) != "first" && is_rank(before(1));
    match (before(3), before(2), before(1)) {
        _ if takes_back => Some(before(1)),
        (one @ "one", "of", "the") if is_superlative => Some(one),
        _ => None,
    }
}

const MODIFIERS: [&str; 14] = [
    "acting",
    "aspiring",
    "alleged",
    "almost",
    "assistant",
    "deputy",
    "ex",
    "fake",
    "former",
    "future",
    "half",
    "nearly",
    "supposed",
    "vice",
];

const OPPOSITES: [(&str, &str); 20] = [
    ("more greater", "less fewer"),
    ("many", "few"),
    ("often usually frequently", "rarely seldom"),
    ("most", "least fewest"),
    ("before prior earlier", "after later following"),
    ("older oldest elder", "younger youngest"),
    ("larger bigger largest biggest", "smaller smallest"),
    ("higher highest above", "lower lowest below"),
    ("longer longest", "shorter shortest"),
    ("first", "last"),
    ("increase increased increases rose grew", "decrease decreased decreases fell shrank"),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
    ("best better", "worst worse"),
    ("all always every", "some sometimes"),
    ("won win wins", "lost lose loses"),
    ("bought buy buys", "sold sell sells"),
    ("male men man", "female women woman"),
    ("success successful", "failure unsuccessful"),
    ("accepted allowed", "rejected forbidden banned refused"),
];

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn a_word_behind_a_modifier_is_not_what_the_word_says() {
        let is_taken_back = |claim: &str, shown: &str| is_taken_back(&words(claim), &words(shown));
        for (claim, shown) in [
            ("Ann is the mayor.", "Ann is the former mayor."),
            ("Lisbon is the largest city.", "Lisbon is the second largest city."),
            ("Lisbon is the largest city.", "Lisbon is one of the largest cities."),
            ("Lisbon is the most populous city.", "Lisbon is the 2nd most populous city."),
            ("Jim sold his watch.", "Jim almost sold his watch."),
        ] {
            assert!(is_taken_back(claim, shown), "{claim} {shown}");
            assert!(!is_taken_back(shown, shown) && !is_taken_back(claim, claim), "{claim} {shown}");
        }
        assert!(!is_taken_back("The mayor left.", "The former mayor met the mayor."));
        assert!(!is_taken_back("500 men came.", "Almost 500 men came."));
    }
}
