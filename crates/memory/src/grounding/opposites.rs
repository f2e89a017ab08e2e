//! Words that exclude one another, and words that take back the word behind them.

use std::collections::HashSet;

use super::negation::Clauses;
use super::numbers::is_rank;
use super::words::Word;

/// The pairs of opposites that a word is of, and which side it is.
pub(super) fn comparisons(lower: &str) -> Vec<(usize, bool)> {
    let side = |list: &str| list.split(' ').any(|word| word == lower);
    let pairs = OPPOSITES.iter().enumerate();
    pairs.flat_map(|(at, (a, b))| [side(a).then_some((at, true)), side(b).then_some((at, false))]).flatten().collect()
}

/// Whether a pair is that of a rise and a fall.
pub(super) fn is_change(pair: usize) -> bool {
    comparisons("rise").contains(&(pair, true))
}

/// The rises and falls that a text states with "up" or "down" behind a form of "go": "went up by 12 percent".
pub(super) fn goings(words: &[Word]) -> Vec<(usize, bool)> {
    let is_going = |word: &Word| matches!(word.lower.as_str(), "go" | "goes" | "going" | "gone" | "went");
    let change = |pair: &[Word]| match pair[1].lower.as_str() {
        "up" if is_going(&pair[0]) => comparisons("rise"),
        "down" if is_going(&pair[0]) => comparisons("fall"),
        _ => Vec::new(),
    };
    words.windows(2).flat_map(change).collect()
}

/// Whether a word of a claim is in a sentence only behind one that takes it back: "the former mayor" does not support "the
/// mayor", nor "the second largest city" "the largest city". Of several places those in the clause with most of the claim's words count.
pub(super) fn is_taken_back(claim: &[Word], shown: &[Word], clauses: &Clauses) -> bool {
    let stems: HashSet<&String> = claim.iter().filter_map(|word| word.stem.as_ref()).collect();
    let shared = |place: usize| clauses.stems_of(clauses.clause(place), shown).intersection(&stems).count();
    let is_same = |a: &Word, b: &Word| a.stem == b.stem && (a.stem.is_some() || a.lower == "most" && b.lower == "most");
    claim.iter().filter(|word| !word.number).any(|word| {
        let places: Vec<usize> = (0..shown.len()).filter(|place| is_same(word, &shown[*place])).collect();
        let most = places.iter().map(|place| shared(*place)).max();
        let best = places.into_iter().filter(|place| Some(shared(*place)) == most);
        let mut modifiers = best.map(|place| modifier(shown, place)).peekable();
        let own = |modifier: Option<&str>| {
            (0..claim.len()).any(|at| is_same(word, &claim[at]) && self::modifier(claim, at) == modifier)
        };
        modifiers.peek().is_some() && modifiers.all(|modifier| modifier.is_some() && !own(modifier))
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

/// Whether a word of a claim behind "from" is in a sentence behind "to" only, or the other way: "moved from 10:00 to 14:30" does not
/// support "moved to 10:00".
pub(super) fn is_in_other_direction(claim: &[Word], shown: &[Word]) -> bool {
    let behind = |words: &[Word], at: usize| {
        let before = at.checked_sub(1).map_or("", |at| words[at].lower.as_str());
        DIRECTIONS.iter().find(|(word, _)| *word == before).map(|(_, is_end)| *is_end)
    };
    (0..claim.len()).any(|at| {
        let Some(is_end) = behind(claim, at) else { return false };
        let mut places = (0..shown.len()).filter(|place| shown[*place].lower == claim[at].lower).peekable();
        !claim[at].is_function() && places.peek().is_some() && places.all(|place| behind(shown, place) == Some(!is_end))
    })
}

/// Whether a number of a claim is only what something changes from in a sentence: "rose from 400 to 450" does not say that it is 400.
/// Years are no such numbers.
pub(super) fn is_before_change(claim: &[Word], shown: &[Word]) -> bool {
    let is_behind_from = |words: &[Word], at: usize| at > 0 && words[at - 1].lower == "from";
    let is_begin = |at: usize| {
        let mut behind = shown[at + 1..].iter().take(3).skip_while(|word| word.lower != "to");
        is_behind_from(shown, at) && behind.next().is_some() && behind.next().is_some_and(|next| next.number)
    };
    let is_year = |word: &Word| word.lower.len() == 4 && word.lower.chars().all(|c| c.is_ascii_digit());
    (0..claim.len()).filter(|at| claim[*at].number && !is_year(&claim[*at]) && !is_behind_from(claim, *at)).any(|at| {
        let mut places = (0..shown.len()).filter(|place| shown[*place].lower == claim[at].lower).peekable();
        places.peek().is_some() && places.all(is_begin)
    })
}

/// Words before a beginning or an end.
const DIRECTIONS: [(&str, bool); 4] = [("from", false), ("to", true), ("until", true), ("till", true)];

/// Whether a claim compares with something that the sentence has, but compares with something else: "the soup more than the
/// salad" does not support "the salad more than the soup".
pub(super) fn is_compared_with_another(claim: &[Word], shown: &[Word]) -> bool {
    let thans = |words: &[Word]| (1..words.len()).filter(|at| words[*at].lower == "than").collect::<Vec<usize>>();
    let given = thans(shown);
    let is_behind = |at: &usize, stem: &String| shown[at + 1..].iter().any(|word| word.stem.as_ref() == Some(stem));
    thans(claim).into_iter().any(|at| {
        let Some(head) = claim[at + 1..].iter().find_map(|word| word.stem.as_ref()) else { return false };
        let is_known = shown.iter().any(|word| word.stem.as_ref() == Some(head));
        let of_measure: Vec<&usize> =
            given.iter().filter(|other| shown[**other - 1].lower == claim[at - 1].lower).collect();
        let compared = if of_measure.is_empty() { given.iter().collect() } else { of_measure };
        is_known && !compared.is_empty() && !compared.into_iter().any(|other| is_behind(other, head))
    })
}

const MODIFIERS: [&str; 15] = [
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
    "other",
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
    (
        "increase increased increases increasing raise raised raises raising rise risen rises rising rose grow grew \
        growing grown grows growth climb climbed climbing climbs soar soared soaring soars surge surged surges \
        surging",
        "decrease decreased decreases decreasing reduce reduced reduces reducing reduction lowered lowering lowers \
        fall fallen falling falls fell shrank shrink shrinking shrinks shrunk decline declined declines declining \
        drop dropped dropping drops dipped dips plunge plunged plunges plunging plummet plummeted plummets \
        slumped slumps",
    ),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
    ("best better", "worst worse"),
    ("all always every", "some sometimes"),
    ("won win wins", "lost lose loses"),
    ("bought buy buys purchase purchased purchases", "sold sell sells"),
    ("male men man", "female women woman"),
    ("success successful", "failure unsuccessful"),
    ("accepted allowed permitted", "rejected forbidden banned prohibited refused"),
];

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn a_word_behind_a_modifier_is_not_what_the_word_says() {
        let is_taken_back = |claim: &str, shown: &str| {
            let given = words(shown);
            is_taken_back(&words(claim), &given, &Clauses::read(&given, shown))
        };
        for (claim, shown) in [
            ("Ann is the mayor.", "Ann is the former mayor."),
            ("Lisbon is the largest city.", "Lisbon is the second largest city."),
            ("Lisbon is the largest city.", "Lisbon is one of the largest cities."),
            ("Lisbon is the most populous city.", "Lisbon is the 2nd most populous city."),
            ("Jim sold his watch.", "Jim almost sold his watch."),
            ("Holm paid for all servers.", "Fir was paid for by Holm, all other servers by Sato."),
            ("Ann is the head of the school.", "Ann is the deputy head of the school; its head is Tom."),
        ] {
            assert!(is_taken_back(claim, shown), "{claim} {shown}");
            assert!(!is_taken_back(shown, shown) && !is_taken_back(claim, claim), "{claim} {shown}");
        }
        assert!(!is_taken_back("The mayor left.", "The former mayor met the mayor."));
        assert!(!is_taken_back("500 men came.", "Almost 500 men came."));
    }

    #[test]
    fn beginnings_and_ends_are_not_exchanged() {
        let is_other = |claim: &str, shown: &str| is_in_other_direction(&words(claim), &words(shown));
        let moved = "The meeting was moved from Friday to Monday.";
        assert!(is_other("The meeting was moved to Friday.", moved) && is_other("It was moved from Monday.", moved));
        assert!(!is_other("The meeting was moved to Monday.", moved) && !is_other("It was on Friday.", moved));
    }

    #[test]
    fn what_is_compared_with_is_not_exchanged() {
        let is_other = |claim: &str, shown: &str| is_compared_with_another(&words(claim), &words(shown));
        let soup = "Sam liked the soup more than the salad.";
        assert!(is_other("Sam liked the salad more than the soup.", soup) && !is_other(soup, soup));
        let porto = "Porto is smaller than Lisbon but larger than Braga.";
        assert!(is_other("Porto is larger than Lisbon.", porto) && !is_other("Porto is larger than Braga.", porto));
    }
}
