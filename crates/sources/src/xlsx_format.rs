//! How the numbers of Excel's workbooks are shown: dates as dates, percentages, amounts with their currency, and numbers of a
//! fixed length with their leading zeros; other numbers with all their digits, whatever their format rounds to.

use crate::dates;
use crate::rows::is_currency;

/// How a number is shown.
#[derive(Clone, Default)]
pub(crate) struct Format {
    has_date: bool,
    time: Time,
    /// Whether hours count beyond a day.
    is_duration: bool,
    is_percent: bool,
    currency: Option<Currency>,
    /// The fewest digits of a number that is not negative and has no fraction.
    min_digits: usize,
}

/// How much of the time of day a number shows.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Time {
    #[default]
    Nothing,
    Minutes,
    Seconds,
    Milliseconds,
}

/// `€` or `CHF`, before the number or after it.
#[derive(Clone)]
struct Currency {
    sign: String,
    is_before: bool,
}

impl Format {
    /// The formats that workbooks use without defining them (ECMA-376, 18.8.30). The currency of the formats of amounts is
    /// that of the computer, so they show none.
    pub fn built_in(id: usize) -> Format {
        Format::of(match id {
            9 | 10 => "0%",
            14..=17 | 27..=31 | 34..=36 | 50..=58 => "d",
            18 | 20 | 32 => "h:mm",
            19 | 21 | 33 => "h:mm:ss",
            22 => "d h:mm",
            45 => "mm:ss",
            47 => "mm:ss.0",
            46 => "[h]:mm:ss",
            _ => "",
        })
    }

    /// What a format's code shows, by its first section: letters outside quotes, brackets and escapes, and signs of currencies
    /// anywhere. A format that is chosen by the value, `[<1]0%;0`, shows numbers as they are.
    pub fn of(code: &str) -> Format {
        const MAX_DIGITS: usize = 20;
        let mut format = Format::default();
        let first = code.split(';').next().unwrap_or_default();
        if !first.is_empty() && first.len() <= MAX_DIGITS && first.bytes().all(|byte| byte == b'0') {
            format.min_digits = first.len();
        }
        let mut letters = code.chars();
        let (mut has_month_or_minute, mut has_digit) = (false, false);
        while let Some(letter) = letters.next() {
            let mut word = String::new();
            match letter.to_ascii_lowercase() {
                ';' => break,
                '\\' => word.extend(letters.next()),
                '_' | '*' => drop(letters.next()),
                '"' => word.extend(letters.by_ref().take_while(|c| *c != '"')),
                '[' => {
                    let inside: String = letters.by_ref().take_while(|c| *c != ']').collect();
                    if let Some(sign) = inside.strip_prefix('$') {
                        // A code of a language follows: `[$€-407]`, or alone `[$-407]`.
                        word.push_str(sign.split('-').next().unwrap_or_default());
                    } else if inside.starts_with(['<', '>', '=']) {
                        return Format::default();
                    } else if let Some(time) = elapsed(&inside) {
                        format.time = format.time.max(time);
                        format.is_duration = true;
                    }
                }
                '0' | '#' | '?' => has_digit = true,
                'y' | 'd' => format.has_date = true,
                'h' => format.time = format.time.max(Time::Minutes),
                's' => {
                    let rest = letters.as_str();
                    let has_fraction = rest.strip_prefix(['s', 'S']).unwrap_or(rest).starts_with(".0");
                    let time = if has_fraction { Time::Milliseconds } else { Time::Seconds };
                    format.time = format.time.max(time);
                }
                'm' => has_month_or_minute = true,
                '%' => format.is_percent = true,
                // The number as it is, with a word such as `General`.
                'g' if letters.as_str().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("eneral")) => {
                    letters.by_ref().nth("eneral".len() - 1);
                    has_digit = true;
                }
                _ => word.push(letter),
            }
            if format.currency.is_none() && is_currency(word.trim()) {
                format.currency = Some(Currency { sign: word.trim().to_owned(), is_before: !has_digit });
            }
        }
        format.has_date |= has_month_or_minute && format.time == Time::Nothing;
        format
    }

    /// The text of a number; `first_day` is the number of 1970-01-01.
    pub fn show(&self, value: &str, first_day: i64) -> String {
        const MAX_DAYS: f64 = 3_000_000.0;
        let Ok(number) = value.parse::<f64>() else { return value.to_owned() };
        if (self.has_date || self.time > Time::Nothing) && (0.0..MAX_DAYS).contains(&number) {
            return self.date(number, first_day);
        }
        // Excel computes with 17 digits and shows 15.
        let rounded = |number: f64| format!("{number:.14e}").parse().unwrap_or(number);
        if self.is_percent {
            return format!("{}%", rounded(number * 100.0));
        }
        let mut shown = rounded(number).to_string();
        if shown.bytes().all(|byte| byte.is_ascii_digit()) {
            shown = format!("{shown:0>width$}", width = self.min_digits);
        }
        match &self.currency {
            Some(Currency { sign, is_before: true }) if sign.starts_with(char::is_alphabetic) => {
                format!("{sign} {shown}")
            }
            Some(Currency { sign, is_before: true }) => match shown.strip_prefix('-') {
                Some(amount) => format!("-{sign}{amount}"),
                None => format!("{sign}{shown}"),
            },
            Some(Currency { sign, .. }) => format!("{shown} {sign}"),
            None => shown,
        }
    }

    fn date(&self, number: f64, first_day: i64) -> String {
        let milliseconds = match self.time {
            Time::Milliseconds => (number * 86_400_000.0).round() as i64,
            _ => (number * 86_400.0).round() as i64 * 1000,
        };
        let (seconds, milliseconds) = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000));
        let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let mut time = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
        if self.time >= Time::Seconds {
            time = format!("{time}:{:02}", second % 60);
        }
        if milliseconds > 0 {
            time.push_str(format!(".{milliseconds:03}").trim_end_matches('0'));
        }
        if !self.has_date {
            let hours = second / 3600 + if self.is_duration { 24 * day } else { 0 };
            return format!("{hours:02}{}", &time[2..]);
        }
        // Excel has a 29 February 1900, as Lotus 1-2-3 had.
        day += i64::from(first_day == 25_569 && day < 60);
        let date = dates::date(day - first_day);
        if self.time == Time::Nothing { date } else { format!("{date} {time}") }
    }
}

/// What an elapsed time shows whose largest unit is in brackets: `h`, `mm`, `ss`.
fn elapsed(unit: &str) -> Option<Time> {
    let letter = unit.chars().next()?.to_ascii_lowercase();
    let is_unit = matches!(letter, 'h' | 'm' | 's') && unit.chars().all(|c| c.to_ascii_lowercase() == letter);
    is_unit.then_some(if letter == 's' { Time::Seconds } else { Time::Minutes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, value: &str, expect: &str) {
        assert_eq!(Format::of(code).show(value, 25_569), expect, "{value} as {code}");
    }

    #[test]
    fn numbers_are_shown_by_their_formats() {
        check("General", "45413.5", "45413.5");
        check("0.00", "0.30000000000000004", "0.3");
        check("yyyy\\-mm\\-dd", "45413", "2024-05-01");
        check("[$-407]d. mmmm yyyy;@", "45413", "2024-05-01");
        check("dd/mm/yy hh:mm", "45413.41806", "2024-05-01 10:02");
        check("h:mm:ss AM/PM", "0.5", "12:00:00");
        check("[h]:mm", "1.5", "36:00");
        check("[h]:mm", "0.5", "12:00");
        check("hh:mm", "45413.41806", "10:02");
        check("mmm", "45413", "2024-05-01");
        check("mm:ss", "0.001", "00:01:26");
        check("0%", "0.57", "57%");
        check("\"d\"0", "12", "12");
        check("d", "1", "1900-01-01");
        check("d", "61", "1900-03-01");
        check("d", "-1", "-1");
        check("[$-411]ggge\"年\"m\"月\"d\"日\"", "45413", "2024-05-01");
        check("GENERAL", "45413", "45413");
        check("[ss]", "0.001", "00:01:26");
        check("[]0", "0.5", "0.5");
        check("mm:ss.00", "0.00100001", "00:01:26.401");
        check("mm:ss.0;@", "0.5", "12:00:00");
        check("0.00E+00", "12345.6", "12345.6");
        check("# ?/?", "0.5", "0.5");
        check("[Red]0.0%", "0.125", "12.5%");
        check("0\\;\";\"%", "0.5", "50%");
        check("0;-0%", "-0.5", "-0.5");
        assert_eq!(Format::built_in(20).show("0.50012", 25_569), "12:00");
        assert_eq!(Format::built_in(21).show("0.50012", 25_569), "12:00:10");
        assert_eq!(Format::built_in(47).show("0.00100001", 25_569), "00:01:26.401");
        assert_eq!(Format::built_in(14).show("45413", 24_107), "2028-05-02");
        assert_eq!(Format::built_in(46).show("1.5", 25_569), "36:00:00");
    }

    #[test]
    fn a_format_that_is_chosen_by_the_value_shows_numbers_as_they_are() {
        for (code, value) in [("[<1]0%;0", "5"), ("[>=1000]0.0,\"K\";0", "1500"), ("[=0]\"-\";0%", "0.5")] {
            assert_eq!(Format::of(code).show(value, 25_569), value, "{value} as {code}");
        }
    }

    #[test]
    fn amounts_have_their_currency() {
        check("#,##0.00\\ \"€\"", "1234.5", "1234.5 €");
        check("#,##0.00\\ [$€-407];[Red]-#,##0.00\\ [$€-407]", "-12", "-12 €");
        check("#,##0.00 €", "3", "3 €");
        check("General\\ \"€\"", "3", "3 €");
        check("\"$\"#,##0.00_);\\(\"$\"#,##0.00\\)", "1234.5", "$1234.5");
        check("[$$-409]#,##0", "-7", "-$7");
        check("_-* #,##0.00\\ _€_-", "7", "7");
        check("_([$CHF-807]* #,##0.00_)", "7", "CHF 7");
        check("[$CHF] 0", "-7", "CHF -7");
        check("#,##0.00 \"kr\"", "7", "7 kr");
        check("\"Fr.\" 0.00", "7", "Fr. 7");
        check("0 \"kg\"", "7", "7");
        check("[$-409]dd\\-mmm\\-yy", "45413", "2024-05-01");
        check("\"EUR\" 0%", "0.5", "50%");
    }

    #[test]
    fn numbers_of_a_fixed_length_keep_their_leading_zeros() {
        check("00000", "1234", "01234");
        check("00000;@", "123456", "123456");
        check("000", "1.5", "1.5");
        check("000", "-1", "-1");
        check("0", "7", "7");
        check("#000", "7", "7");
        check(&"0".repeat(1000), "7", "7");
    }
}
