//! How entries of calendars are repeated, in words (iCalendar, RFC 5545, 3.3.10): `every 2 weeks on Monday, 10 times`.

const DAYS: [(&str, &str); 7] = [
    ("MO", "Monday"),
    ("TU", "Tuesday"),
    ("WE", "Wednesday"),
    ("TH", "Thursday"),
    ("FR", "Friday"),
    ("SA", "Saturday"),
    ("SU", "Sunday"),
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A rule in words, with times as `time` writes them; `None` if it has a part that has no words here.
pub(crate) fn in_words(rule: &str, time: impl Fn(&str) -> String) -> Option<String> {
    let (mut unit, mut interval) = (None, 1);
    let (mut days, mut months, mut end) = (String::new(), String::new(), String::new());
    for part in rule.trim().trim_end_matches(';').split(';') {
        let (name, value) = part.split_once('=')?;
        match &*name.to_ascii_uppercase() {
            "FREQ" => unit = Some(unit_of(value)?),
            "INTERVAL" => interval = value.parse::<u32>().ok()?,
            "BYDAY" => days.extend([" on ", &listed(value, day)?]),
            "BYMONTHDAY" => days.extend([" on ", &listed(value, day_of_month)?]),
            "BYMONTH" => months = format!(" in {}", listed(value, month)?),
            "COUNT" => end = format!(", {} times", value.parse::<u32>().ok()?),
            "UNTIL" => end = format!(", until {}", time(value)),
            // On which day weeks start.
            "WKST" => {}
            _ => return None,
        }
    }
    let unit = unit?;
    let every = if interval == 1 { format!("every {unit}") } else { format!("every {interval} {unit}s") };
    Some(format!("{every}{days}{months}{end}"))
}

fn unit_of(frequency: &str) -> Option<&'static str> {
    Some(match &*frequency.to_ascii_uppercase() {
        "SECONDLY" => "second",
        "MINUTELY" => "minute",
        "HOURLY" => "hour",
        "DAILY" => "day",
        "WEEKLY" => "week",
        "MONTHLY" => "month",
        "YEARLY" => "year",
        _ => return None,
    })
}

/// The words for the parts of a list; `None` for a list that is longer than one of days of the year.
fn listed(list: &str, word: impl Fn(&str) -> Option<String>) -> Option<String> {
    const MAX_PARTS: usize = 366;
    let words = list.split(',').take(MAX_PARTS + 1).map(|part| word(part.trim())).collect::<Option<Vec<String>>>()?;
    (words.len() <= MAX_PARTS).then(|| words.join(", "))
}

/// `Monday` for `MO`, `the last Friday` for `-1FR`.
fn day(part: &str) -> Option<String> {
    let (number, name) = part.split_at_checked(part.len().checked_sub(2)?)?;
    let (_, day) = DAYS.iter().find(|(short, _)| short.eq_ignore_ascii_case(name))?;
    let place = match number.trim_start_matches('+') {
        "" => return Some((*day).to_owned()),
        "1" => "first",
        "2" => "second",
        "3" => "third",
        "4" => "fourth",
        "5" => "fifth",
        "-1" => "last",
        "-2" => "second to last",
        _ => return None,
    };
    Some(format!("the {place} {day}"))
}

/// `day 15`, or `the last day` for -1.
fn day_of_month(part: &str) -> Option<String> {
    match part.parse::<i32>().ok()? {
        -1 => Some("the last day".to_owned()),
        number @ 1..=31 => Some(format!("day {number}")),
        _ => None,
    }
}

fn month(part: &str) -> Option<String> {
    let number: usize = part.parse().ok()?;
    MONTHS.get(number.checked_sub(1)?).map(|month| (*month).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_put_into_words() {
        let check = |rule: &str, expect: &str| {
            let words = in_words(rule, |time| format!("({time})"));
            assert_eq!(words.as_deref(), Some(expect), "{rule}");
        };
        check("FREQ=YEARLY", "every year");
        check("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;COUNT=10;WKST=MO", "every 2 weeks on Monday, Wednesday, 10 times");
        check("freq=monthly;byday=-1FR;until=20240630", "every month on the last Friday, until (20240630)");
        check("FREQ=MONTHLY;BYMONTHDAY=1,15,-1;", "every month on day 1, day 15, the last day");
        check("FREQ=YEARLY;BYMONTH=10;BYDAY=+1SU", "every year on the first Sunday in October");
    }

    #[test]
    fn other_rules_have_no_words() {
        let long = format!("FREQ=YEARLY;BYDAY={}", "MO,".repeat(367));
        let rules = [
            "",
            "INTERVAL=2",
            "FREQ=FORTNIGHTLY",
            "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1",
            "FREQ=MONTHLY;BYDAY=9MO",
            "FREQ=MONTHLY;BYDAY=é",
            "FREQ=YEARLY;BYMONTH=0",
            "FREQ=YEARLY;BYMONTHDAY=-3",
            &long,
        ];
        for rule in rules {
            assert_eq!(in_words(rule, str::to_owned), None, "{rule}");
        }
    }
}
