//! Dates that a text states.

use std::ops::Range;

use super::features::MONTHS;
use super::numbers::whole;
use super::words::{Word, bare, words};

/// A date; parts that are not given are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Date {
    pub year: Option<u32>,
    pub month: Option<u32>,
    pub day: Option<u32>,
    /// The year is the first of a decade, and all of it is meant.
    pub decade: bool,
}

impl Date {
    pub fn of(year: Option<u32>, month: u32, day: Option<u32>) -> Date {
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

/// The dates that a text states.
pub(super) fn dates_of(text: &str) -> Vec<Date> {
    dates(&words(text), text).into_iter().map(|(date, _)| date).collect()
}

/// Dates with the places of their words.
pub(super) fn dates(words: &[Word], text: &str) -> Vec<(Date, Range<usize>)> {
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
        let full = MONTHS.iter().position(|month| *month == bare(&word.lower));
        let is_short = word.lower.len() == 3 || word.lower == "sept";
        let short = || MONTHS.iter().position(|month| is_short && month.starts_with(&word.lower));
        full.or_else(short).map(|at| at as u32 + 1)
    };
    // "had 1200 weavers" has a number, and "in 1200 wars began" a year.
    let counts = |at: usize| {
        let is_before_year = at.checked_sub(1).is_some_and(|at| BEFORE_YEAR.contains(&words[at].lower.as_str()));
        let is_plural = |next: &Word| next.stem.is_some() && !next.capital && next.lower.ends_with('s');
        !is_before_year && words.get(at + 1).is_some_and(is_plural)
    };
    // "the 3rd of May", "May of 1987"
    let behind_of = |at: usize| at + usize::from(words.get(at).is_some_and(|word| word.lower == "of"));
    let is_full = |at: usize| MONTHS.contains(&bare(&words[at].lower));
    let is_in = |at: usize| is_full(at) && at.checked_sub(1).is_some_and(|at| IN.contains(&words[at].lower.as_str()));
    let hyphen = |at: usize| words.get(at + 1).is_some_and(|next| &text[words[at].range.end..next.range.start] == "-");
    let mut at = 0;
    while at < words.len() {
        let (date, length) = if let (Some(y), true, true) =
            (year(at), hyphen(at), at + 2 < words.len() && hyphen(at + 1))
        {
            match (number(at + 1), day(at + 2)) {
                (Some(m), Some(d)) if (1..=12).contains(&m) => (Some(Date::of(Some(y), m, Some(d))), 3),
                _ => (Some(Date { year: Some(y), ..Date::default() }), 1),
            }
        } else if let Some(m) = month(at) {
            let year_at = behind_of(at + 1);
            match (day(at + 1), year(year_at)) {
                (Some(d), _) => match year(at + 2) {
                    Some(y) => (Some(Date::of(Some(y), m, Some(d))), 3),
                    None => (Some(Date::of(None, m, Some(d))), 2),
                },
                (None, Some(y)) => (Some(Date::of(Some(y), m, None)), year_at + 1 - at),
                // "May" and "March" alone are words as often as months, and "Jan" is a name.
                (None, None) if is_in(at) || !matches!(words[at].lower.as_str(), "may" | "march") && is_full(at) => {
                    (Some(Date { month: Some(m), ..Date::default() }), 1)
                }
                (None, None) => (None, 1),
            }
        } else if let (Some(d), Some(m)) = (day(at), month(behind_of(at + 1))) {
            let month_at = behind_of(at + 1);
            match year(month_at + 1) {
                Some(y) => (Some(Date::of(Some(y), m, Some(d))), month_at + 2 - at),
                None => (Some(Date::of(None, m, Some(d))), month_at + 1 - at),
            }
        } else if let Some(date) = day_month_year(&words[at].lower) {
            (Some(date), 1)
        } else if let Some(y) = decade(at) {
            (Some(Date { year: Some(y), decade: true, ..Date::default() }), 1)
        } else {
            (year(at).filter(|_| !counts(at)).map(|y| Date { year: Some(y), ..Date::default() }), 1)
        };
        if let Some(date) = date {
            dates.push((date, at..at + length));
        }
        at += length;
    }
    dates
}

/// Words before a year, whatever follows it.
const BEFORE_YEAR: [&str; 17] = [
    "after", "and", "around", "before", "between", "by", "during", "early", "from", "in", "late", "of", "or", "since",
    "the", "to", "until",
];

/// Words before the name of a month.
const IN: [&str; 5] = ["during", "in", "last", "since", "until"];

/// "7.2.2016" and "07.02.2016".
fn day_month_year(word: &str) -> Option<Date> {
    let parts: Vec<u32> = word.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [day, month, year] = parts[..] else { return None };
    let is_date = (1..=31).contains(&day) && (1..=12).contains(&month) && (1000..2100).contains(&year);
    is_date.then(|| Date::of(Some(year), month, Some(day)))
}

#[cfg(test)]
mod tests {
    use super::super::values::Values;
    use super::*;

    fn date(text: &str) -> Date {
        dates_of(text)[0]
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
            "on the 7th of February 2016",
        ] {
            assert_eq!(dates_of(text), [full], "{text}");
            assert!(Values::read(text, &|_| true).numbers.is_empty(), "{text}");
        }
        assert!(dates_of("The firm had 1200 weavers.").is_empty() && dates_of("In 1200 wars began.").len() == 1);
        let year = date("in 2016");
        assert!(full.bears_out(&year) && !year.bears_out(&full));
        assert!(!full.bears_out(&date("in 2015")));
        assert!(!full.conflicts(&year) && full.conflicts(&date("in 2015")));
        let decade = date("in the 2010s");
        assert!(full.bears_out(&decade) && !decade.bears_out(&year) && !decade.bears_out(&date("in 2010")));
        assert!(!decade.conflicts(&full) && decade.conflicts(&date("in the 1990s")));
        assert!(dates_of("You may go and march.").is_empty());
    }

    #[test]
    fn a_month_alone_is_a_date_where_it_is_no_other_word() {
        let month = |text: &str| dates_of(text).first().and_then(|date| date.month);
        assert_eq!((month("It rained in May."), month("It rained in July.")), (Some(5), Some(7)));
        assert_eq!((month("June was wet."), date("in May of 1987")), (Some(6), Date::of(Some(1987), 5, None)));
        assert_eq!((month("May he live!"), month("He met Jan in Rome.")), (None, None));
        assert_eq!(date("Sept. 5, 1987"), Date::of(Some(1987), 9, Some(5)));
    }
}
