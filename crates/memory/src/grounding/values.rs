//! Values that a statement commits itself to: numbers with units, dates, names.

use std::ops::Range;

use super::features::MONTHS;
use super::words::{CURRENCIES, Word, bare, is_function, stem, words};

/// A number, normalised: "1,200", "1.2 thousand" and "twelve hundred" are the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    pub value: f64,
    /// The stem of what is counted or measured, `%` or a currency sign.
    pub unit: Option<String>,
    /// Places of its words.
    pub at: Range<usize>,
}

/// A date; parts that are not given are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Date {
    pub year: Option<u32>,
    pub month: Option<u32>,
    pub day: Option<u32>,
    /// The year is the first of a decade, and all of it is meant.
    pub decade: bool,
}

/// All values of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub numbers: Vec<Number>,
    pub dates: Vec<Date>,
    /// Whether each word of the text is of a date.
    pub dated: Vec<bool>,
    /// Lower-case names of days of the week.
    pub weekdays: Vec<String>,
    /// Lower-case words of each capitalised run.
    pub names: Vec<Vec<String>>,
}

impl Values {
    /// Reads the values of a sentence. `is_name` tells whether a lower-case word that begins the text is a name.
    pub fn read(text: &str, is_name: &dyn Fn(&str) -> bool) -> Values {
        let words = words(text);
        let (dates, dated) = dates(&words, text);
        let weekdays = words.iter().filter_map(|word| weekday(&word.lower));
        let weekdays = weekdays.map(str::to_owned).collect();
        let (numbers, names) = (numbers(&words, text, &dated), names(&words, text, is_name));
        Values { numbers, dates, dated, weekdays, names }
    }
}

/// The dates that a text states.
pub(super) fn dates_of(text: &str) -> Vec<Date> {
    dates(&words(text), text).0
}

/// The value of a text that states a number of nothing, or of years of age, and no more: "22", "twenty-two years old".
pub(super) fn only_number(text: &str) -> Option<f64> {
    let words = words(text);
    let (_, dated) = dates(&words, text);
    let [number] = &numbers(&words, text, &dated)[..] else { return None };
    let rest = words.iter().enumerate().filter(|(at, _)| !number.at.contains(at));
    let is_age = |lower: &str| matches!(lower, "year" | "years" | "old" | "of" | "age");
    let is_plain = !text.contains(CURRENCIES) && !text.contains('%');
    (is_plain && rest.into_iter().all(|(_, word)| is_age(&word.lower))).then_some(number.value)
}

/// Whether a lower-case word is a number, with or without a suffix or unit, or a decade.
pub(super) fn is_value(lower: &str) -> bool {
    plain(lower).is_some() || plain(lower.trim_end_matches('s')).is_some()
}

/// Equal up to the precision of a product of decimals.
pub(super) fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(1.0)
}

impl Date {
    fn of(year: Option<u32>, month: u32, day: Option<u32>) -> Date {
        Date { year, month: Some(month), day, decade: false }
    }

    /// True if a source with the values `self` supports a statement with the values `said`: it has all of them.
    pub fn bears_out(&self, said: &Date) -> bool {
        let part = |said: Option<u32>, given: Option<u32>| said.is_none() || said == given;
        let year =
            if said.decade { self.decade() == said.decade() } else { !self.decade && part(said.year, self.year) };
        (said.year.is_none() || year) && part(said.month, self.month) && part(said.day, self.day)
    }

    /// True if both cannot be the same date: a part that both have differs.
    pub fn conflicts(&self, other: &Date) -> bool {
        let part = |a: Option<u32>, b: Option<u32>| a.is_some() && b.is_some() && a != b;
        let is_decade = self.decade || other.decade;
        let year = if is_decade { part(self.decade(), other.decade()) } else { part(self.year, other.year) };
        year || part(self.month, other.month) || part(self.day, other.day)
    }

    fn decade(&self) -> Option<u32> {
        self.year.map(|year| year / 10)
    }
}

/// Dates, and which words they are made of.
fn dates(words: &[Word], text: &str) -> (Vec<Date>, Vec<bool>) {
    let mut dated = vec![false; words.len()];
    let mut dates = Vec::new();
    let number = |at: usize| words.get(at).and_then(|word| whole(&text[word.range.clone()]));
    let day = |at: usize| number(at).filter(|day| (1..=31).contains(day));
    let year = |at: usize| {
        let digits = &text[words.get(at)?.range.clone()];
        digits.parse::<u32>().ok().filter(|year| digits.len() == 4 && (1000..2100).contains(year))
    };
    let decade = |at: usize| {
        let digits = words[at].lower.strip_suffix('s').map(|word| word.trim_end_matches('\''))?;
        digits.parse::<u32>().ok().filter(|year| digits.len() == 4 && (1000..2100).contains(year) && year % 10 == 0)
    };
    let month = |at: usize| {
        let word = words.get(at).filter(|word| word.capital)?;
        let full = MONTHS.iter().position(|month| *month == word.lower);
        let short = || MONTHS.iter().position(|month| word.lower.len() == 3 && month.starts_with(&word.lower));
        full.or_else(short).map(|at| at as u32 + 1)
    };
    let hyphen = |at: usize| words.get(at + 1).is_some_and(|next| &text[words[at].range.end..next.range.start] == "-");
    let mut at = 0;
    while at < words.len() {
        let (date, length) =
            if let (Some(y), true, true) = (year(at), hyphen(at), at + 2 < words.len() && hyphen(at + 1)) {
                match (number(at + 1), day(at + 2)) {
                    (Some(m), Some(d)) if (1..=12).contains(&m) => (Some(Date::of(Some(y), m, Some(d))), 3),
                    _ => (Some(Date { year: Some(y), ..Date::default() }), 1),
                }
            } else if let Some(m) = month(at) {
                match (day(at + 1), year(at + 1)) {
                    (Some(d), _) => match year(at + 2) {
                        Some(y) => (Some(Date::of(Some(y), m, Some(d))), 3),
                        None => (Some(Date::of(None, m, Some(d))), 2),
                    },
                    (None, Some(y)) => (Some(Date::of(Some(y), m, None)), 2),
                    // "May" and "March" alone are words as often as months.
                    (None, None) if words[at].lower.len() > 5 => (Some(Date { month: Some(m), ..Date::default() }), 1),
                    (None, None) => (None, 1),
                }
            } else if let (Some(d), Some(m)) = (day(at), month(at + 1)) {
                match year(at + 2) {
                    Some(y) => (Some(Date::of(Some(y), m, Some(d))), 3),
                    None => (Some(Date::of(None, m, Some(d))), 2),
                }
            } else if let Some(date) = day_month_year(&words[at].lower) {
                (Some(date), 1)
            } else if let Some(y) = decade(at) {
                (Some(Date { year: Some(y), decade: true, ..Date::default() }), 1)
            } else {
                (year(at).map(|y| Date { year: Some(y), ..Date::default() }), 1)
            };
        if let Some(date) = date {
            dates.push(date);
            dated[at..at + length].fill(true);
        }
        at += length;
    }
    (dates, dated)
}

/// "7.2.2016" and "07.02.2016".
fn day_month_year(word: &str) -> Option<Date> {
    let parts: Vec<u32> = word.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [day, month, year] = parts[..] else { return None };
    let is_date = (1..=31).contains(&day) && (1..=12).contains(&month) && (1000..2100).contains(&year);
    is_date.then(|| Date::of(Some(year), month, Some(day)))
}

/// A whole number, without the suffix of an ordinal.
fn whole(text: &str) -> Option<u32> {
    let bare = ORDINALS.iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    bare.parse().ok()
}

/// The suffixes of ordinals in digits.
const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

/// Units that are written behind digits without a space. "m" is not one of them: it is "million" as often as "metre".
const UNITS_BEHIND: [&str; 6] = ["km", "kg", "cm", "mm", "ft", "mi"];

/// Digits with separators, without signs, suffixes and units.
fn plain(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(CURRENCIES).trim_end_matches('%');
    let bare = ORDINALS.iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    let bare = UNITS_BEHIND.iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    bare.starts_with(|c: char| c.is_ascii_digit()).then(|| bare.replace(',', "").parse().ok()).flatten()
}

fn numbers(words: &[Word], text: &str, dated: &[bool]) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if dated[at] {
            at += 1;
            continue;
        }
        let Some((value, end)) = number_at(words, text, at) else {
            at += 1;
            continue;
        };
        let slice = &text[words[at].range.clone()];
        let value = if is_negative(text, words[at].range.start) { -value } else { value };
        let next = words.get(end).filter(|next| text[words[end - 1].range.end..next.range.start].trim().len() <= 1);
        let behind = UNITS_BEHIND.iter().find(|short| end - at == 1 && slice.ends_with(**short));
        let unit = match () {
            () if slice.ends_with('%') => Some("%".to_owned()),
            () if behind.is_some() => behind.and_then(|short| unit(short)),
            () if slice.starts_with(CURRENCIES) => slice.chars().next().map(String::from),
            () if next.is_some_and(|next| matches!(next.lower.as_str(), "percent" | "percentage")) => {
                Some("%".to_owned())
            }
            () if next.is_some_and(|next| currency(&next.lower).is_some()) => {
                next.and_then(|next| currency(&next.lower)).map(str::to_owned)
            }
            () => next.filter(|next| !is_function(&next.lower) && !next.capital).and_then(|next| unit(&next.lower)),
        };
        numbers.push(Number { value, unit, at: at..end });
        at = end;
    }
    numbers
}

/// Whether a minus sign is before the number that begins at a byte.
fn is_negative(text: &str, start: usize) -> bool {
    let Some(before) = text[..start].strip_suffix(['-', '\u{2212}']) else { return false };
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(')
}

/// The sign of a currency that is written as a word.
fn currency(lower: &str) -> Option<&'static str> {
    match lower {
        "dollars" | "dollar" | "usd" => Some("$"),
        "euros" | "euro" | "eur" => Some("€"),
        _ => None,
    }
}

/// The stem of a unit, abbreviations spelled out.
fn unit(lower: &str) -> Option<String> {
    let long = UNITS.iter().find(|(short, _)| *short == lower).map_or(lower, |(_, long)| *long);
    stem(long)
}

/// The number that begins at a word and the place after it.
fn number_at(words: &[Word], text: &str, at: usize) -> Option<(f64, usize)> {
    let spelled = |at: usize| {
        let word = words.get(at)?;
        SPELLED.iter().find(|(name, _)| *name == word.lower).map(|(_, value)| *value)
    };
    let scale = |at: usize| {
        let word = words.get(at)?;
        SCALES.iter().find(|(names, _)| names.split(' ').any(|name| name == word.lower)).map(|(_, value)| *value)
    };
    let digits = plain(&text[words[at].range.clone()]);
    let mut end = at + 1;
    let mut value = match (digits, spelled(at)) {
        (Some(value), _) => value,
        // "One" alone is a pronoun more often than a number.
        (None, Some(value)) if words[at].lower != "one" || scale(at + 1).is_some() => value,
        _ => return None,
    };
    if digits.is_none()
        && (20.0..100.0).contains(&value)
        && let Some(ones) = spelled(end).filter(|ones| *ones < 10.0)
    {
        value += ones;
        end += 1;
    }
    // "12 000"
    while digits.is_some() && is_group(words, text, at, end) {
        value = value * 1000.0 + f64::from(whole(&text[words[end].range.clone()]).unwrap_or(0));
        end += 1;
    }
    while let Some(by) = scale(end) {
        value *= by;
        end += 1;
        // "two hundred and five"
        let and = usize::from(words.get(end).is_some_and(|word| word.lower == "and"));
        if let Some(more) = spelled(end + and).filter(|more| digits.is_none() && *more < by) {
            value += more;
            end += and + 1;
        }
    }
    Some((value, end))
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

/// Runs of capitalised words, without titles such as "Dr." before them. A function word is one of them if it is capitalised inside a sentence, as in "The Who" or "US",
/// and not one that titles join names with.
fn names(words: &[Word], text: &str, is_name: &dyn Fn(&str) -> bool) -> Vec<Vec<String>> {
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut open = false;
    for (at, word) in words.iter().enumerate() {
        let gap = at.checked_sub(1).map(|before| &text[words[before].range.end..word.range.start]);
        let named = word.capital
            && match gap {
                _ if is_calendar(&word.lower) => false,
                _ if word.is_function() => {
                    gap.is_some_and(|gap| gap.chars().all(joins)) && !JOINING.contains(&word.lower.as_str())
                }
                gap => gap.is_some() || is_name(&word.lower),
            };
        let touches = gap.is_some_and(|gap| gap.chars().all(|c| joins(c) || c == '.'));
        if named {
            let bare = word.lower.strip_suffix("'s").unwrap_or(&word.lower).to_owned();
            match names.last_mut() {
                Some(last) if open && touches => last.push(bare),
                _ => names.push(vec![bare]),
            }
        }
        open = named;
    }
    for name in &mut names {
        let titles = name.iter().take_while(|word| is_title(word)).count();
        name.drain(..titles.min(name.len() - 1));
    }
    names
}

/// What may be between the words of a name, besides the dot of an initial.
fn joins(c: char) -> bool {
    c.is_whitespace() || "-'".contains(c)
}

/// Function words that are capitalised in titles and headings, or always.
const JOINING: [&str; 20] = [
    "a", "an", "and", "as", "at", "by", "for", "from", "i", "i'd", "i'll", "i'm", "i've", "in", "of", "on", "or",
    "the", "to", "with",
];

/// Titles that are written before a name or left out.
const TITLES: [&str; 12] =
    ["mr", "mrs", "ms", "miss", "mx", "dr", "doctor", "prof", "professor", "sir", "madam", "mister"];

/// Whether a lower-case word is a title that a name follows.
pub(super) fn is_title(lower: &str) -> bool {
    TITLES.contains(&lower)
}

fn is_calendar(lower: &str) -> bool {
    MONTHS.contains(&lower) || weekday(lower).is_some()
}

/// The day of the week that a lower-case word names.
pub(super) fn weekday(lower: &str) -> Option<&'static str> {
    let lower = bare(lower);
    WEEKDAYS.into_iter().find(|day| lower == *day || lower.strip_suffix('s') == Some(day))
}

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

const SPELLED: [(&str, f64); 28] = [
    ("zero", 0.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("eleven", 11.0),
    ("twelve", 12.0),
    ("thirteen", 13.0),
    ("fourteen", 14.0),
    ("fifteen", 15.0),
    ("sixteen", 16.0),
    ("seventeen", 17.0),
    ("eighteen", 18.0),
    ("nineteen", 19.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fifty", 50.0),
    ("sixty", 60.0),
    ("seventy", 70.0),
    ("eighty", 80.0),
    ("ninety", 90.0),
];

const SCALES: [(&str, f64); 5] =
    [("dozen", 12.0), ("hundred", 100.0), ("thousand", 1e3), ("million m", 1e6), ("billion bn", 1e9)];

/// Whether a stem is that of a unit of measurement, and not of what is counted.
pub(super) fn is_measure(found: &str) -> bool {
    MEASURES.split(' ').any(|word| stem(word).is_some_and(|stem| stem == found))
}

const MEASURES: &str = "kilometre metre centimetre millimetre mile foot yard inch kilogram gram pound ounce ton tonne litre \
gallon acre hectare second minute hour day week month year century degree percent dollar euro pound";

const UNITS: [(&str, &str); 14] = [
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
    fn dates_are_read_in_any_order_and_may_be_partial() {
        let full = Date::of(Some(2016), 2, Some(7));
        for text in [
            "on February 7, 2016",
            "on 7 February 2016",
            "on 2016-02-07",
            "on Feb 7 2016",
            "am 7.2.2016",
            "on 07.02.2016",
        ] {
            assert_eq!(read(text).dates, [full], "{text}");
            assert!(read(text).numbers.is_empty(), "{text}");
        }
        let year = read("in 2016").dates[0];
        assert!(full.bears_out(&year) && !year.bears_out(&full));
        assert!(!full.bears_out(&read("in 2015").dates[0]));
        assert!(!full.conflicts(&year) && full.conflicts(&read("in 2015").dates[0]));
        let decade = read("in the 2010s").dates[0];
        assert!(full.bears_out(&decade) && !decade.bears_out(&year) && !decade.bears_out(&read("in 2010").dates[0]));
        assert!(!decade.conflicts(&full) && decade.conflicts(&read("in the 1990s").dates[0]));
        assert!(read("You may go and march.").dates.is_empty());
    }

    #[test]
    fn names_are_capitalised_runs() {
        let names = read("Yesterday J. R. Ewing met the Duke of York.").names;
        assert_eq!(names, [vec!["yesterday", "j", "r", "ewing"], vec!["duke"], vec!["york"]]);
        assert_eq!(read("It was sung by The Who, and it sold well.").names, [vec!["who"]]);
        assert_eq!(read("The US Army left.").names, [vec!["us", "army"]]);
        assert_eq!(read("She saw Dr. Ann Lee and the Miss.").names, [vec!["ann", "lee"], vec!["miss"]]);
        let monday = read("She came on Monday.");
        assert_eq!((monday.names.len(), &monday.weekdays[..]), (0, &["monday".to_owned()][..]));
        assert!(read("He said: \"They are here.\" (However, I was not.)").names.is_empty());
    }
}
