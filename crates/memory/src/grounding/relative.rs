//! Times that a text gives by the day on which it was written: "yesterday", "last week", "two months ago".

use std::ops::{Range, RangeInclusive};

use calls::number_words;
use chrono::{Datelike, Days, Months, NaiveDate, Weekday};

use super::dates::{Date, dates_of};
use super::features::MONTHS;
use super::question::FORMS_OF_BE;
use super::words::{Word, is_function, is_past, words};

/// A time relative to the day of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relative {
    /// Bytes of its words.
    pub range: Range<usize>,
    /// The time itself: "5 July 2023", "the week before 9 June 2023", "June 2023".
    pub text: String,
    /// The date in it.
    pub date: Date,
}

/// The day of a heading or a time stamp that states one whole date.
pub(crate) fn day_of(time: &str) -> Option<NaiveDate> {
    let iso = time.get(..10).and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok());
    iso.or_else(|| match dates_of(time)[..] {
        [Date { year: Some(year), month: Some(month), day: Some(day), .. }] => {
            NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
        }
        _ => None,
    })
}

/// The time that an answer to "when" means which is in a text of this day: of a relative time alone, or of a statement with one and no
/// other time ("The opening is tomorrow").
pub(crate) fn resolved(answer: &str, day: NaiveDate) -> Option<String> {
    let [Relative { range, text, .. }] = &relatives(answer, day)[..] else { return None };
    let is_outside = |word: &&Word| !range.contains(&word.range.start);
    let words = words(answer);
    let is_alone = words.iter().filter(is_outside).all(|word| is_function(&word.lower));
    (is_alone || is_timed_statement(&words) && dates_of(answer).is_empty()).then(|| text.clone())
}

/// Whether a text has a verb whose time no other clause gives, and no negation: not "I left before we met yesterday".
fn is_timed_statement(words: &[Word]) -> bool {
    let is_verb = |lower: &str| FORMS_OF_BE.contains(&lower) || is_past(lower);
    let is_other = |lower: &str| NOT_PLAIN.split_ascii_whitespace().any(|word| word == lower) || lower.ends_with("n't");
    words.iter().any(|word| is_verb(&word.lower)) && !words.iter().any(|word| is_other(&word.lower))
}

/// Words that begin another clause, or negate.
const NOT_PLAIN: &str = "after because before if no not never once since than though until when where which while who";

/// All relative times of a text that was written on this day.
pub(super) fn relatives(text: &str, day: NaiveDate) -> Vec<Relative> {
    let words = words(text);
    let (mut found, mut at) = (Vec::new(), 0);
    let is_run = |run: &[Word]| {
        run.windows(2).all(|pair| text[pair[0].range.end..pair[1].range.start].chars().all(char::is_whitespace))
    };
    while at < words.len() {
        match relative(&words, at, day).filter(|(length, _)| is_run(&words[at..at + length])) {
            Some((length, (text, date))) => {
                let range = words[at].range.start..words[at + length - 1].range.end;
                found.push(Relative { range, text, date });
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// The relative time that begins at a word, and its words.
fn relative(words: &[Word], at: usize, day: NaiveDate) -> Option<(usize, (String, Date))> {
    let word = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let in_days = |count: i64| shifted(day, Unit::Day, count);
    match (word(at), word(at + 1)) {
        ("day", "before") if word(at + 2) == "yesterday" => Some((3, in_days(-2)?)),
        ("day", "after") if word(at + 2) == "tomorrow" => Some((3, in_days(2)?)),
        ("yesterday" | "tomorrow", next) => {
            let length = 1 + usize::from(PARTS_OF_DAY.contains(&next));
            Some((length, in_days(if word(at) == "yesterday" { -1 } else { 1 })?))
        }
        ("today" | "tonight", _) => Some((1, in_days(0)?)),
        ("this", next) if PARTS_OF_DAY.contains(&next) => Some((2, in_days(0)?)),
        ("last", "night") => Some((2, in_days(-1)?)),
        // "The last week" is a stretch of time up to now.
        (which @ ("last" | "this" | "next"), next) if at == 0 || !STRETCHES.contains(&word(at - 1)) => {
            let turn = match which {
                "last" => -1,
                "this" => 0,
                _ => 1,
            };
            Some((2, turned(day, next, turn)?))
        }
        _ => ago(words, at, day),
    }
}

/// "three weeks ago", "a few days ago".
fn ago(words: &[Word], at: usize, day: NaiveDate) -> Option<(usize, (String, Date))> {
    let word = |at: usize| words.get(at).map_or("", |word| word.lower.as_str());
    let vague = VAGUE.iter().find(|run| run.iter().enumerate().all(|(offset, part)| word(at + offset) == *part));
    let counted = number_words::value(word(at)).filter(|count| (1..=12).contains(count)).map(i64::from);
    let count = counted.or_else(|| word(at).parse().ok()).or_else(|| matches!(word(at), "a" | "an").then_some(1));
    let length = vague.map_or(1, |run| run.len());
    let unit = Unit::of(word(at + length))?;
    if word(at + length + 1) != "ago" {
        return None;
    }
    let time = match (vague, count) {
        (Some(run), _) => before(day, &format!("{} {}", run.join(" "), word(at + length))),
        (None, Some(count)) => match unit {
            Unit::Week if count > 1 => before(day, &format!("{} {}", word(at), word(at + length))),
            unit => shifted(day, unit, -count)?,
        },
        (None, None) => return None,
    };
    Some((length + 2, time))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    fn of(word: &str) -> Option<Unit> {
        match word.strip_suffix('s').unwrap_or(word) {
            "day" => Some(Unit::Day),
            "week" => Some(Unit::Week),
            "month" => Some(Unit::Month),
            "year" => Some(Unit::Year),
            _ => None,
        }
    }
}

/// The unit of time that is this many units after the day's own.
fn shifted(day: NaiveDate, unit: Unit, count: i64) -> Option<(String, Date)> {
    let steps = u32::try_from(count.unsigned_abs()).ok()?;
    let months = |steps: u32| {
        let months = Months::new(steps);
        if count < 0 { day.checked_sub_months(months) } else { day.checked_add_months(months) }
    };
    match unit {
        Unit::Day => {
            let days = Days::new(u64::from(steps));
            let day = if count < 0 { day.checked_sub_days(days) } else { day.checked_add_days(days) }?;
            Some((long(day), full(day)))
        }
        Unit::Week => Some(beside(day, "week", count.signum())),
        Unit::Month => {
            let day = months(steps)?;
            let text = format!("{} {}", month(day), day.year());
            Some((text, Date { day: None, ..full(day) }))
        }
        Unit::Year => {
            let year = months(steps.checked_mul(12)?)?.year();
            Some((year.to_string(), Date { year: u32::try_from(year).ok(), ..Date::default() }))
        }
    }
}

/// "last week", "this month", "next summer", "last Friday": `turn` is -1, 0 or 1.
fn turned(day: NaiveDate, unit: &str, turn: i64) -> Option<(String, Date)> {
    match unit {
        "weekend" => Some(beside(day, unit, turn)),
        "week" | "month" | "year" => shifted(day, Unit::of(unit)?, turn),
        _ if SEASONS.iter().any(|(season, _)| *season == unit) => season(day, unit, turn),
        _ if turn != 0 && unit.parse::<Weekday>().is_ok() && unit.ends_with("day") => {
            Some(beside(day, &capitalised(unit), turn))
        }
        _ => None,
    }
}

/// "summer 2022", "winter 2022/23".
fn season(day: NaiveDate, name: &str, turn: i64) -> Option<(String, Date)> {
    let (_, months) = SEASONS.into_iter().find(|(season, _)| *season == name)?;
    // From autumn on a winter is that of the next year, whose month 0 is December.
    let is_of_next = name == "winter" && day.month() >= 9;
    let month = i64::from(day.month()) - if is_of_next { 12 } else { 0 };
    let own = i64::from(day.year()) + i64::from(is_of_next);
    let year = match turn {
        -1 if month <= *months.end() => own - 1,
        1 if month >= *months.start() => own + 1,
        _ => own,
    };
    let text =
        if name == "winter" { format!("winter {}/{:02}", year - 1, year % 100) } else { format!("{name} {year}") };
    Some((text, Date { year: u32::try_from(year).ok(), ..Date::default() }))
}

/// "the week before 9 June 2023".
fn beside(day: NaiveDate, unit: &str, turn: i64) -> (String, Date) {
    let side = match turn {
        ..0 => "before",
        0 => "of",
        1.. => "after",
    };
    (format!("the {unit} {side} {}", long(day)), full(day))
}

/// "a few days before 9 June 2023".
fn before(day: NaiveDate, time: &str) -> (String, Date) {
    (format!("{time} before {}", long(day)), full(day))
}

/// "9 June 2023".
pub(super) fn long(day: NaiveDate) -> String {
    format!("{} {} {}", day.day(), month(day), day.year())
}

fn month(day: NaiveDate) -> String {
    capitalised(MONTHS[day.month0() as usize])
}

fn capitalised(lower: &str) -> String {
    lower[..1].to_uppercase() + &lower[1..]
}

pub(super) fn full(day: NaiveDate) -> Date {
    let year = u32::try_from(day.year()).ok();
    Date { year, month: Some(day.month()), day: Some(day.day()), decade: false }
}

const PARTS_OF_DAY: [&str; 5] = ["morning", "afternoon", "evening", "night", "noon"];

/// Words before "last" or "next" that make it a stretch of time.
const STRETCHES: [&str; 7] = ["the", "these", "those", "my", "our", "their", "every"];

const VAGUE: [&[&str]; 6] =
    [&["a", "few"], &["a", "couple", "of"], &["a", "couple"], &["couple", "of"], &["several"], &["some"]];

/// Seasons of the northern half of the earth with their months.
const SEASONS: [(&str, RangeInclusive<i64>); 5] =
    [("spring", 3..=5), ("summer", 6..=8), ("fall", 9..=11), ("autumn", 9..=11), ("winter", 0..=2)];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Vec<String> {
        let day = day_of("1:56 pm on 9 June, 2023").expect("it has a date");
        relatives(text, day).into_iter().map(|relative| relative.text).collect()
    }

    #[test]
    fn the_day_is_read_from_a_time_stamp_or_a_heading() {
        let day = NaiveDate::from_ymd_opt(2024, 5, 1);
        for time in
            ["2024-05-01 10:02", "2024-05-01T10:02:00Z", "10:02 am on 1 May, 2024", "Wed, 1 May 2024 10:02:00 +0200"]
        {
            assert_eq!(day_of(time), day, "{time}");
        }
        for time in ["", "May 2024", "session 1", "1 May to 3 May 2024", "31 February 2024"] {
            assert_eq!(day_of(time), None, "{time}");
        }
    }

    #[test]
    fn a_relative_time_is_resolved_by_the_day_of_the_text() {
        for (text, want) in [
            ("I met her yesterday.", "8 June 2023"),
            ("The day before yesterday it rained.", "7 June 2023"),
            ("We leave tomorrow morning!", "10 June 2023"),
            ("It was fun last night", "8 June 2023"),
            ("Tonight we dance.", "9 June 2023"),
            ("Last week I gave a talk.", "the week before 9 June 2023"),
            ("See you next weekend.", "the weekend after 9 June 2023"),
            ("I ran last Friday", "the Friday before 9 June 2023"),
            ("This month I am off.", "June 2023"),
            ("I start next month.", "July 2023"),
            ("I went there last year.", "2022"),
            ("We camped last summer.", "summer 2022"),
            ("I ski next winter.", "winter 2023/24"),
            ("I skied last winter.", "winter 2022/23"),
            ("This summer we swim.", "summer 2023"),
            ("That was two days ago.", "7 June 2023"),
            ("I moved a week ago.", "the week before 9 June 2023"),
            ("I moved three weeks ago.", "three weeks before 9 June 2023"),
            ("He died 6 months ago.", "December 2022"),
            ("It began ten years ago.", "2013"),
            ("I came a few days ago.", "a few days before 9 June 2023"),
        ] {
            assert_eq!(at(text), [want], "{text}");
        }
        assert_eq!(at("Yesterday I ran, and last month I swam."), ["8 June 2023", "May 2023"]);
    }

    #[test]
    fn stretches_of_time_and_other_words_are_none() {
        for text in ["The last week was hard.", "At last, night fell.", "this is it", "some years", "a month of rain"] {
            assert_eq!(at(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_answer_is_resolved_if_it_is_nothing_else() {
        let day = day_of("9 June 2023").expect("it has a date");
        assert_eq!(resolved("Yesterday", day).as_deref(), Some("8 June 2023"));
        assert_eq!(resolved("just last week", day).as_deref(), Some("the week before 9 June 2023"));
        assert_eq!(resolved("yesterday at the beach", day), None);
        assert_eq!(resolved("June 2021", day), None);
    }

    #[test]
    fn a_statement_with_one_time_is_resolved() {
        let day = day_of("9 June 2023").expect("it has a date");
        assert_eq!(resolved("The official opening is tomorrow", day).as_deref(), Some("10 June 2023"));
        assert_eq!(resolved("I sold my boat last month", day).as_deref(), Some("May 2023"));
        for text in [
            "I sold my boat after we met yesterday",
            "My boat was not sold yesterday",
            "I was ill yesterday and sailed last week",
            "It was yesterday or on 5 May 2023",
        ] {
            assert_eq!(resolved(text, day), None, "{text}");
        }
    }
}
