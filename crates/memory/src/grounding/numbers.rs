//! Numbers with units that a text states.

use std::ops::Range;

use calls::number_words;

use super::dimension::names_dimension;
use super::words::{CURRENCIES, Word, is_function, is_past, stem};

/// A number, normalised: "1,200", "1.2 thousand" and "twelve hundred" are the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub value: f64,
    /// The stem of what is counted or measured, `%` or a currency sign.
    pub unit: Option<String>,
    /// Places of its words, and of the words of its unit.
    pub at: Range<usize>,
    pub unit_at: Range<usize>,
    /// A rank: "3rd", "third".
    pub ordinal: bool,
    pub bound: Option<Bound>,
}

/// What the words before a number make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// The number is not reached, or only the end of a range: "fewer than 500", "between 300 and 500".
    Below,
    /// It is not exact: "about 500", "over 500".
    Loose,
}

impl Number {
    /// The unit as a term of a text. "Pound" is a weight and a currency.
    pub fn unit_term(&self) -> Option<&str> {
        self.unit.as_deref().map(|unit| if unit == "£" { "pound" } else { unit })
    }

    /// Whether it is a share or a sum of money.
    pub fn is_of_sign(&self) -> bool {
        self.unit.as_deref().is_some_and(|unit| unit == "%" || unit.starts_with(CURRENCIES))
    }
}

/// Whether a lower-case word is a number, with or without a suffix or unit, or a decade.
pub(super) fn is_value(lower: &str) -> bool {
    let has_unit = || suffixed(lower).is_some_and(|(_, letters)| UNITS.iter().any(|(short, _)| *short == letters));
    plain(lower).is_some() || plain(lower.trim_end_matches('s')).is_some() || has_unit()
}

/// Equal up to the precision of a product of decimals.
pub(super) fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(1.0)
}

/// Whether a lower-case word is an ordinal: "second", "3rd".
pub(super) fn is_rank(lower: &str) -> bool {
    RANKS.contains(&lower) || whole(lower).is_some() && lower.parse::<u32>().is_err()
}

/// A whole number, without the suffix of an ordinal.
pub(super) fn whole(text: &str) -> Option<u32> {
    let bare = ORDINALS.iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    bare.parse().ok()
}

/// The suffixes of ordinals in digits.
const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

/// Digits with separators, without signs and suffixes.
fn plain(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(CURRENCIES).trim_end_matches('%');
    let bare = ORDINALS.iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    bare.starts_with(|c: char| c.is_ascii_digit()).then(|| bare.replace(',', "").parse().ok()).flatten()
}

/// Digits and the letters behind them: "42km", "16GB", "£5m".
fn suffixed(text: &str) -> Option<(f64, String)> {
    let bare = text.trim_start_matches(CURRENCIES);
    let (digits, letters) = bare.split_at(bare.find(char::is_alphabetic)?);
    letters.chars().all(char::is_alphabetic).then_some((plain(digits)?, letters.to_lowercase()))
}

/// What such letters multiply by. "m" without a currency is "million" as often as "metre".
fn suffix_scale(text: &str, letters: &str) -> Option<f64> {
    match letters {
        "k" => Some(1e3),
        "m" if text.starts_with(CURRENCIES) => Some(1e6),
        "bn" => Some(1e9),
        _ => None,
    }
}

/// The numbers of a text that are of no date.
pub(super) fn numbers(words: &[Word], text: &str, dated: &[bool]) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some((value, end, ordinal)) = Some(at).filter(|at| !dated[*at]).and_then(|at| number_at(words, text, at))
        else {
            at += 1;
            continue;
        };
        let slice = &text[words[at].range.clone()];
        let value = if is_negative(text, words[at].range.start) { -value } else { value };
        let next = words.get(end).filter(|next| text[words[end - 1].range.end..next.range.start].trim().len() <= 1);
        let next_is = |lower: &str| next.is_some_and(|next| next.lower == lower);
        let is_per_cent = next_is("per") && words.get(end + 1).is_some_and(|word| word.lower == "cent");
        let behind = suffixed(slice).filter(|(_, letters)| end - at == 1 && suffix_scale(slice, letters).is_none());
        // "Of 40 students 31 passed the exam", but "31 used cars".
        let is_verb = |next: &Word| {
            is_past(&next.lower) && words.get(end + 1).is_none_or(|word| is_function(&word.lower) || word.capital)
        };
        let plain = next.filter(|next| !is_function(&next.lower) && !next.capital && !is_verb(next));
        let spelled = next.and_then(|next| currency(&next.lower));
        let (unit, unit_words) = match behind {
            _ if slice.ends_with('%') => (Some("%".to_owned()), 0),
            _ if next_is("percent") || next_is("percentage") => (Some("%".to_owned()), 1),
            _ if is_per_cent => (Some("%".to_owned()), 2),
            _ if slice.starts_with(CURRENCIES) => (slice.chars().next().map(String::from), 0),
            Some((_, letters)) if !ordinal => (unit(&letters), 0),
            _ if spelled.is_some() => (spelled.map(str::to_owned), 1),
            _ => (plain.and_then(|next| unit(&next.lower)), usize::from(plain.is_some())),
        };
        let unit_at = end..end + unit_words;
        numbers.push(Number { value, unit, at: at..end, unit_at, ordinal, bound: bound(words, at) });
        at = end;
    }
    numbers
}

/// Whether a minus sign is before the number that begins at a byte.
fn is_negative(text: &str, start: usize) -> bool {
    let Some(before) = text[..start].strip_suffix(['-', '\u{2212}']) else { return false };
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(')
}

/// What the words before the number at a place make of it.
fn bound(words: &[Word], at: usize) -> Option<Bound> {
    if is_end_of_range(words, at) {
        return Some(Bound::Below);
    }
    let article = at.checked_sub(1).is_some_and(|before| words[before].lower == "a");
    let at = at - usize::from(article);
    let [first, second, third] =
        [3, 2, 1].map(|back| at.checked_sub(back).map_or("", |before| words[before].lower.as_str()));
    match (second, third) {
        ("less" | "fewer", "than") if matches!(first, "no" | "not") => Some(Bound::Loose),
        ("less" | "fewer", "than") | ("up", "to") | ("at", "most") | (_, "under" | "below") => Some(Bound::Below),
        ("more", "than") | ("at", "least") => Some(Bound::Loose),
        (_, word) => LOOSE.contains(&word).then_some(Bound::Loose),
    }
}

/// Whether the number at a place is one of two in "between 300 and 500".
fn is_end_of_range(words: &[Word], at: usize) -> bool {
    let is = |at: usize, lower: &str| words.get(at).is_some_and(|word| word.lower == lower);
    let is_number = |at: usize| words.get(at).is_some_and(|word| word.number);
    let Some(before) = at.checked_sub(1) else { return false };
    is(before, "between") && (at + 1..at + BETWEEN).any(|and| is(and, "and") && is_number(and + 1))
        || is(before, "and")
            && (at.saturating_sub(BETWEEN)..before).any(|between| is(between, "between") && is_number(between + 1))
}

/// The most words from one end of a range to the word before or behind the other.
const BETWEEN: usize = 4;

/// Words before a number that is not exact.
const LOOSE: [&str; 9] = ["about", "above", "almost", "approximately", "around", "nearly", "over", "roughly", "some"];

/// The sign of a currency that is written as a word. "Pound" is a weight too.
fn currency(lower: &str) -> Option<&'static str> {
    match lower {
        "dollars" | "dollar" | "usd" => Some("$"),
        "euros" | "euro" | "eur" => Some("€"),
        "yen" => Some("¥"),
        "rupees" | "rupee" => Some("₹"),
        "gbp" => Some("£"),
        _ => None,
    }
}

/// The stem of a unit, abbreviations spelled out.
fn unit(lower: &str) -> Option<String> {
    let bare = lower.replace('.', "");
    let long = UNITS.iter().find(|(short, _)| *short == bare).map_or(bare.as_str(), |(_, long)| *long);
    stem(long)
}

/// The number that begins at a word, the place after it, and whether it is an ordinal.
fn number_at(words: &[Word], text: &str, at: usize) -> Option<(f64, usize, bool)> {
    let lower = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let spelled = |at: usize| number_words::value(lower(at)).map(f64::from);
    let scale = |at: usize| {
        SCALES.iter().find(|(names, _)| names.split(' ').any(|name| name == lower(at))).map(|(_, value)| *value)
    };
    let ordinal =
        |at: usize| (1_u32..).zip(RANKS).find(|(_, name)| *name == lower(at)).map(|(rank, _)| f64::from(rank));
    let slice = &text[words[at].range.clone()];
    let with_suffix = || suffixed(slice).map(|(value, letters)| value * suffix_scale(slice, &letters).unwrap_or(1.0));
    let digits = plain(slice).or_else(with_suffix);
    let [before, second_before] = [1, 2].map(|back| at.checked_sub(back).map_or("", lower));
    let mut end = at + 1;
    let mut value = match (digits, spelled(at)) {
        (Some(value), _) => value,
        // "One" alone is a pronoun more often than a number.
        (None, Some(value)) if lower(at) != "one" || scale(at + 1).is_some() => value,
        // "a hundred", "half a million", but not "several hundred".
        (None, None) if scale(at).is_some() && lower(at).len() > 2 && !VAGUE.contains(&before) => {
            end = at;
            if (second_before, before) == ("half", "a") { 0.5 } else { 1.0 }
        }
        // "Second" behind a number is a unit of time.
        (None, None) if lower(at) != "second" || !at.checked_sub(1).is_some_and(|before| words[before].number) => {
            return ordinal(at).map(|rank| (rank, at + 1, true));
        }
        _ => return None,
    };
    let mut is_ordinal = digits.is_some() && ORDINALS.iter().any(|end| slice.ends_with(end));
    if digits.is_none() && (20.0..100.0).contains(&value) {
        let rank = ordinal(end).filter(|rank| *rank < 10.0);
        if let Some(ones) = spelled(end).filter(|ones| *ones < 10.0).or(rank) {
            value += ones;
            end += 1;
            is_ordinal = rank.is_some();
        }
    }
    // "12 000"
    while digits.is_some() && is_group(words, text, at, end) {
        value = value * 1000.0 + f64::from(whole(&text[words[end].range.clone()]).unwrap_or(0));
        end += 1;
    }
    // "£30 m" and "30 m people" are millions, "30 m", "30 m wide" and "30 m above" a length.
    let is_length = |at: usize| {
        let is_relation = |lower: &str| matches!(lower, "above" | "below");
        let is_counted =
            |next: &Word| next.stem.is_some() && !names_dimension(&next.lower) && !is_relation(&next.lower);
        lower(at) == "m" && !slice.starts_with(CURRENCIES) && !words.get(at + 1).is_some_and(is_counted)
    };
    while let Some(by) = scale(end).filter(|_| !is_length(end)) {
        value *= by;
        end += 1;
        // "two hundred and five"
        let and = usize::from(lower(end) == "and");
        if let Some(more) = spelled(end + and).filter(|more| digits.is_none() && *more < by) {
            value += more;
            end += and + 1;
        }
    }
    Some((value, end, is_ordinal))
}

/// Whether three digits behind a space continue the number of one to three digits that begins at `at`.
fn is_group(words: &[Word], text: &str, at: usize, end: usize) -> bool {
    let Some(next) = words.get(end) else { return false };
    let digits = |word: &Word| text[word.range.clone()].chars().filter(char::is_ascii_digit).count();
    let is_bare = |word: &Word| text[word.range.clone()].chars().all(|c| c.is_ascii_digit() || CURRENCIES.contains(&c));
    let gap = &text[words[end - 1].range.end..next.range.start];
    matches!(gap, " " | "\u{a0}" | "\u{202f}" | "\u{2009}")
        && (1..=3).contains(&digits(&words[at]))
        && is_bare(&words[at])
        && next.range.len() == 3
        && digits(next) == 3
}

/// Words before "hundred" that make it no number.
const VAGUE: [&str; 3] = ["few", "many", "several"];

/// Ordinals from the first on.
const RANKS: [&str; 20] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
];

const SCALES: [(&str, f64); 5] =
    [("dozen", 12.0), ("hundred", 100.0), ("thousand", 1e3), ("million m", 1e6), ("billion bn", 1e9)];

/// Whether a stem is that of a unit of measurement, and not of what is counted.
pub(super) fn is_measure(found: &str) -> bool {
    MEASURES.split(' ').any(|word| stem(word).is_some_and(|stem| stem == found))
}

/// Whether a stem is that of a unit of time.
pub(super) fn is_duration(found: &str) -> bool {
    DURATIONS.split(' ').any(|word| stem(word).is_some_and(|stem| stem == found))
}

/// How often something is done, by a count and the stem of a unit of time, with the places of the words. "Once a year" is "every
/// year".
pub(super) fn rates(words: &[Word]) -> Vec<([&str; 2], Range<usize>)> {
    let lower = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let is_number = |at: usize| words.get(at).is_some_and(|word| word.number);
    let rate = |at: usize| {
        let (count, unit) = match (lower(at), lower(at + 1)) {
            ("once", "a" | "an" | "per") => ("", at + 2),
            ("twice", "a" | "an" | "per") => ("twice", at + 2),
            ("every", count) if is_number(at + 1) => (count, at + 2),
            ("every" | "each", _) => ("", at + 1),
            _ => return None,
        };
        let stem = words.get(unit)?.stem.as_deref().filter(|stem| is_duration(stem))?;
        Some(([count, stem], at..unit + 1))
    };
    (0..words.len()).filter_map(rate).collect()
}

const DURATIONS: &str = "second minute hour day night week month season year decade century";

const MEASURES: &str = "kilometre metre centimetre millimetre mile foot yard inch kilogram gram pound ounce ton tonne litre \
gallon acre hectare second minute hour day week month year century degree percent dollar euro pound";

const UNITS: [(&str, &str); 15] = [
    ("m", "metre"),
    ("km", "kilometre"),
    ("kilometers", "kilometre"),
    ("kilometer", "kilometre"),
    ("kg", "kilogram"),
    ("cm", "centimetre"),
    ("mm", "millimetre"),
    ("lb", "pound"),
    ("lbs", "pound"),
    ("mi", "mile"),
    ("ft", "foot"),
    ("feet", "foot"),
    ("meters", "metre"),
    ("meter", "metre"),
    ("min", "minute"),
];

#[cfg(test)]
mod tests {
    use super::super::values::Values;
    use super::*;

    fn read(text: &str) -> Values {
        Values::read(text, &|_| true)
    }

    #[test]
    fn numbers_are_read_in_digits_and_words() {
        let value = |text: &str| read(text).numbers.first().map(|number| number.value);
        for same in ["1,200 men", "1.2 thousand men", "twelve hundred men"] {
            assert!((value(same).unwrap() - 1200.0).abs() < 1e-9, "{same}");
        }
        assert_eq!(value("two hundred and five pages"), Some(205.0));
        assert_eq!(value("twenty-one guns"), Some(21.0));
        assert_eq!(value("No one came."), None);
        assert_eq!(read("It cost $5 million.").numbers[0].unit.as_deref(), Some("$"));
        assert_eq!(read("It is 5 km away.").numbers[0].unit, read("It is 5 kilometers away.").numbers[0].unit);
        assert_ne!(read("308 points").numbers[0].unit, read("308 yards").numbers[0].unit);
        let units = |text: &str| read(text).numbers.into_iter().map(|number| number.unit).collect::<Vec<_>>();
        assert_eq!(units("It cost 5 euros."), units("It cost €5."));
        assert_eq!((value("It is -5 degrees"), value("It is \u{2212}5 degrees")), (Some(-5.0), Some(-5.0)));
        assert_eq!((value("pages 3-5"), read("pages 3-5").numbers[1].value), (Some(3.0), 5.0));
        assert_eq!(
            (value("12 000 men"), value("12\u{a0}000 men"), value("12 0000 men")),
            (Some(12e3), Some(12e3), Some(12.0))
        );
        assert_eq!((value("42km of road"), units("42km of road")), (Some(42.0), units("42 km of road")));
    }

    #[test]
    fn letters_behind_digits_are_a_unit_or_a_scale() {
        let first = |text: &str| read(text).numbers.into_iter().next().map(|number| (number.value, number.unit));
        assert_eq!(first("16GB of memory"), Some((16.0, Some("gb".to_owned()))));
        assert_eq!(first("He paid £5m."), Some((5e6, Some("£".to_owned()))));
        assert_eq!(first("at 5pm").map(|(_, unit)| unit), first("at 5 p.m. sharp").map(|(_, unit)| unit));
        assert_eq!(read("version 1.2.3 of B52").codes, ["1.2.3", "b52"]);
        assert!(read("3-5 of 12 on 3 May 2012, 7th of 16GB, 42km").codes.is_empty());
    }

    #[test]
    fn a_word_for_a_scale_and_an_ordinal_are_numbers() {
        let value = |text: &str| read(text).numbers.first().map(|number| (number.value, number.ordinal));
        assert_eq!(value("a hundred men"), Some((100.0, false)));
        assert_eq!((value("half a million men"), value("several hundred men")), (Some((5e5, false)), None));
        assert_eq!((value("the third man"), value("the 3rd man")), (Some((3.0, true)), Some((3.0, true))));
        assert_eq!(value("the twenty-first century"), Some((21.0, true)));
        assert_eq!((value("30 m people"), value("30 m above the sea")), (Some((3e7, false)), Some((30.0, false))));
        assert_eq!(read("31 minutes and 1 second").numbers.len(), 2);
        assert_eq!(read("12 per cent").numbers[0].unit, read("12%").numbers[0].unit);
    }

    #[test]
    fn words_before_a_number_make_it_a_bound() {
        let bound = |text: &str| read(text).numbers[0].bound;
        for below in ["fewer than 500 men", "up to 500 men", "under $5", "at most 3", "between 5 and 9 men"] {
            assert_eq!(bound(below), Some(Bound::Below), "{below}");
        }
        for loose in ["about 500 men", "over a hundred men", "no fewer than 500 men", "more than 5"] {
            assert_eq!(bound(loose), Some(Bound::Loose), "{loose}");
        }
        assert_eq!((bound("the 500 men"), bound("5 men")), (None, None));
    }
}
