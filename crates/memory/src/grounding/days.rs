//! Days of the week as texts give them: "Saturday", "Sat", "Monday to Friday", "daily".

use super::values::{WEEKDAYS, weekday};
use super::words::{Word, words};

/// Whether a text gives a day of the week, whose full name is in lower case, by its name or as one of several days.
pub(super) fn covers(text: &str, day: &str) -> bool {
    let Some(asked) = WEEKDAYS.iter().position(|name| *name == day) else { return false };
    let words = words(text);
    let given: Vec<(&Word, usize)> = words.iter().filter_map(|word| Some((word, day_of(word)?))).collect();
    let is_between = |pair: &[(&Word, usize)]| {
        let [(first, from), (last, to)] = pair else { return false };
        let between = text[first.range.end..last.range.start].trim();
        RANGE.contains(&between) && (asked + 7 - from) % 7 <= (to + 7 - from) % 7
    };
    let is_every = |pair: &[Word]| pair[0].lower == "every" && pair[1].lower == "day";
    given.iter().any(|(_, given)| *given == asked)
        || given.windows(2).any(is_between)
        || words.iter().any(|word| is_among(&word.lower, asked))
        || words.windows(2).any(is_every)
}

/// The day that a word names, from 0 for Monday, also as "Sat" or "Thurs".
fn day_of(word: &Word) -> Option<usize> {
    let is_short = |name: &str| word.capital && word.lower.len() >= SHORT && name.starts_with(&word.lower);
    WEEKDAYS.iter().position(|name| weekday(&word.lower) == Some(*name) || is_short(name))
}

/// Whether a day is one of those that a word names together.
fn is_among(lower: &str, day: usize) -> bool {
    match lower {
        "daily" => true,
        "weekday" | "weekdays" => day < SATURDAY,
        "weekend" | "weekends" => day >= SATURDAY,
        _ => false,
    }
}

/// The shortest form of a name, in bytes.
const SHORT: usize = 3;

const SATURDAY: usize = 5;

/// What is between the first and the last of several days.
const RANGE: [&str; 7] = ["-", "–", "—", "to", "till", "until", "through"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_given_by_its_name_or_with_others() {
        for (text, days) in [
            ("Closed on Sundays.", "sunday"),
            ("Mon–Wed: 9 to 5, Fri. 9 to 1", "monday tuesday wednesday friday"),
            ("Open Saturday to Monday", "monday saturday sunday"),
            ("Tues and Thurs", "tuesday thursday"),
            ("We are open on weekdays.", "monday tuesday wednesday thursday friday"),
            ("Only at the weekend", "saturday sunday"),
            ("It runs every day.", "monday tuesday wednesday thursday friday saturday sunday"),
            ("He sat in the sun.", ""),
        ] {
            let covered: Vec<&str> = WEEKDAYS.into_iter().filter(|day| covers(text, day)).collect();
            assert_eq!(covered.join(" "), days, "{text}");
        }
    }
}
