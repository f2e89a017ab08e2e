//! Values that a statement commits itself to: numbers with units, dates, names.

use super::dates::{Date, dates};
use super::features::MONTHS;
use super::numbers::{Number, is_equal, is_rank, numbers};
use super::words::{CURRENCIES, Word, bare, is_contraction, words};

/// All values of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub numbers: Vec<Number>,
    /// With the place of the first word of those that the text gives, `None` of relative times.
    pub dates: Vec<(Date, Option<usize>)>,
    /// Whether each word of the text is of a date.
    pub dated: Vec<bool>,
    /// Lower-case words with digits that are of no number and no date: "b52", "1.2.3".
    pub codes: Vec<String>,
    /// Lower-case names of days of the week.
    pub weekdays: Vec<String>,
    /// Lower-case words of each capitalised run.
    pub names: Vec<Vec<String>>,
}

impl Values {
    /// Reads the values of a sentence. `is_name` tells whether a lower-case word that begins the text is a name.
    pub fn read(text: &str, is_name: &dyn Fn(&str) -> bool) -> Values {
        let words = words(text);
        let (dates, dated) = dates_and_places(&words, text);
        let weekdays = words.iter().filter_map(|word| weekday(&word.lower));
        let weekdays = weekdays.map(str::to_owned).collect();
        let (numbers, names) = (numbers(&words, text, &dated), names(&words, text, is_name));
        let is_code = |at: usize, word: &Word| {
            word.lower.contains(char::is_numeric) && !dated[at] && !numbers.iter().any(|number| number.at.contains(&at))
        };
        let codes = words.iter().enumerate().filter(|(at, word)| is_code(*at, word));
        let codes = codes.map(|(_, word)| bare(&word.lower).to_owned()).collect();
        Values { numbers, dates, dated, codes, weekdays, names }
    }

    /// Whether a number of the text has the value and the unit of another.
    pub fn counts(&self, number: &Number) -> bool {
        self.numbers.iter().any(|own| is_equal(own.value, number.value) && own.unit == number.unit)
    }
}

/// Dates with the places of their first words, and whether each word is of a date.
fn dates_and_places(words: &[Word], text: &str) -> (Vec<(Date, Option<usize>)>, Vec<bool>) {
    let found = dates(words, text);
    let dated = (0..words.len()).map(|at| found.iter().any(|(_, places)| places.contains(&at))).collect();
    (found.into_iter().map(|(date, places)| (date, Some(places.start))).collect(), dated)
}

/// The value of a text that states a number of nothing, or of years of age, and no more: "22", "twenty-two years old".
pub(super) fn only_number(text: &str) -> Option<f64> {
    let words = words(text);
    let (_, dated) = dates_and_places(&words, text);
    let [number] = &numbers(&words, text, &dated)[..] else { return None };
    let rest = words.iter().enumerate().filter(|(at, _)| !number.at.contains(at));
    let is_age = |lower: &str| matches!(lower, "year" | "years" | "old" | "of" | "age");
    let is_plain = !text.contains(CURRENCIES) && !text.contains('%') && !number.ordinal;
    (is_plain && rest.into_iter().all(|(_, word)| is_age(&word.lower))).then_some(number.value)
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
                None if word.number || is_rank(&word.lower) => false,
                _ if word.is_function() || is_contraction(&word.lower) => {
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
    MONTHS.contains(&bare(lower)) || weekday(lower).is_some()
}

/// The day of the week that a lower-case word names.
pub(super) fn weekday(lower: &str) -> Option<&'static str> {
    let lower = bare(lower);
    WEEKDAYS.into_iter().find(|day| lower == *day || lower.strip_suffix('s') == Some(day))
}

/// From Monday, which the number of a day counts from.
pub(super) const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Values {
        Values::read(text, &|_| true)
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
        assert!(read("Twenty men came.").names.is_empty() && read("They're poor.").names.is_empty());
    }
}
