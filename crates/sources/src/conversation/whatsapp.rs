//! WhatsApp's export of a chat, a text file. A message starts with its time as the phone writes it:
//!
//! ```text
//! [12/05/2024, 10:02:33] Ann: Hello.
//! 12.05.24, 10:02 - Ann: Hello.
//! ```
//!
//! Dates become ISO dates if the chat tells the order of day and month ([`Order::of`]), and stay as they are if not. Lines without
//! a time continue the message. The speaker of what WhatsApp itself reports is `WhatsApp`.

use super::layout::{Said, by_day, laid_out};
use crate::encoding::Decoded;
use crate::limit::RECORDS;
use crate::{Cause, Kind, Limit, Source};

/// Marks of the direction of writing, which WhatsApp puts around names, numbers and dates.
const DIRECTIONS: [char; 7] = ['\u{200e}', '\u{200f}', '\u{feff}', '\u{202a}', '\u{202c}', '\u{2068}', '\u{2069}'];

/// A chat; `None` if the first line is no message, so that the file is another text.
pub(crate) fn source(path: &str, file: &Decoded) -> Result<Option<Source>, Cause> {
    let mut all: Vec<(String, Said)> = Vec::new();
    for line in file.text.lines() {
        if let Some((time, message)) = split_time(line) {
            if all.len() == RECORDS {
                return Err(Limit::Records(RECORDS).into());
            }
            let (speaker, text) = message.split_once(": ").unwrap_or(("WhatsApp", message));
            let day = time.split([',', ' ']).next().unwrap_or(time).to_owned();
            let [speaker, text] = [speaker, text].map(|part| part.trim_matches(DIRECTIONS).to_owned());
            let id = (all.len() + 1).to_string();
            all.push((day, Said { id, speaker, text, time: Some(time.replace('\u{202f}', " ")) }));
        } else if let Some((_, said)) = all.last_mut() {
            said.text.push('\n');
            said.text.push_str(line);
        } else if !line.trim_matches(DIRECTIONS).trim().is_empty() {
            return Ok(None);
        }
    }
    let mut days: Vec<&str> = all.iter().map(|(day, _)| day.as_str()).collect();
    days.dedup();
    if let Some(order) = Order::of(&days) {
        for (day, said) in &mut all {
            let Some(iso) = order.iso(day) else { continue };
            said.time = said.time.as_ref().map(|time| format!("{iso}{}", time[day.len()..].trim_start_matches(',')));
            *day = iso;
        }
    }
    laid_out(path, Kind::WhatsApp, None, by_day(all)?).map(Some)
}

/// The order of the numbers of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Year,
    Day,
    Month,
}

impl Order {
    /// The order of a chat's dates: the one by which every date exists and none is before the one before it. `None` if there are
    /// several, as in a chat of one day, 5/6/24.
    fn of(days: &[&str]) -> Option<Order> {
        let dates = |order: Order| days.iter().map(|day| order.iso(day)).collect::<Option<Vec<_>>>();
        let mut read: Vec<(Order, Vec<String>)> = [Order::Year, Order::Day, Order::Month]
            .into_iter()
            .filter_map(|order| Some((order, dates(order)?)))
            .collect();
        if read.len() > 1 {
            read.retain(|(_, dates)| dates.is_sorted());
        }
        let (order, first) = read.first()?;
        read.iter().all(|(_, dates)| dates == first).then_some(*order)
    }

    /// A date as `2024-05-12`; `None` if it does not exist in this order. Dates with dots have the day first.
    fn iso(self, date: &str) -> Option<String> {
        let date = date.trim_end_matches('.');
        let numbers: Vec<&str> = date.split(['/', '.', '-']).collect();
        let [first, second, third] = numbers[..] else { return None };
        let (year, month, day) = match self {
            Order::Year => (first, second, third),
            Order::Day => (third, second, first),
            Order::Month if date.contains('.') => return None,
            Order::Month => (third, first, second),
        };
        let year: u32 = match (year.len(), self) {
            (4, _) => year.parse().ok()?,
            (2, Order::Day | Order::Month) => 2000 + year.parse::<u32>().ok()?,
            _ => return None,
        };
        let number = |text: &str, most: u32| text.parse::<u32>().ok().filter(|number| (1..=most).contains(number));
        Some(format!("{year:04}-{:02}-{:02}", number(month, 12)?, number(day, 31)?))
    }
}

/// The time at the start of a line, and what follows it.
fn split_time(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(DIRECTIONS);
    let (time, message) = match line.strip_prefix('[') {
        Some(rest) => rest.split_once("] ")?,
        None => line.split_once(" - ")?,
    };
    is_time(time).then_some((time, message))
}

/// Whether a text is a date and a time: `12/05/2024, 10:02:33 AM`.
fn is_time(text: &str) -> bool {
    const MAX_BYTES: usize = 64;
    const MAX_WORD: usize = 3;
    if text.len() > MAX_BYTES {
        return false;
    }
    let Some((date, time)) = text.split_once([',', ' ']) else { return false };
    // Some languages have a word before the time: `à 10:02`, `klo 10.02`, `下午10:02`.
    let time = time.trim_start();
    let digits = time.trim_start_matches(char::is_alphabetic);
    let is_short = time[..time.len() - digits.len()].chars().count() <= MAX_WORD;
    let time = if is_short { digits.trim_start() } else { time };
    let numbers: Vec<&str> = date.trim_end_matches('.').split(['/', '.', '-']).collect();
    let is_number = |number: &&str| (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let hours = time.split([':', '.']).next().unwrap_or_default();
    numbers.len() == 3 && numbers.iter().all(is_number) && is_number(&hours) && time.len() > hours.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_recognised_as_phones_write_them() {
        let check = |line: &str, expect: Option<(&str, &str)>| assert_eq!(split_time(line), expect, "{line}");
        check("[12/05/2024, 10:02:33] Ann: Hi", Some(("12/05/2024, 10:02:33", "Ann: Hi")));
        check("\u{200e}[2024-05-12, 10:02:33 AM] Ann: Hi", Some(("2024-05-12, 10:02:33 AM", "Ann: Hi")));
        check("12.05.24, 10:02 - Ann: Hi - there", Some(("12.05.24, 10:02", "Ann: Hi - there")));
        check("5/12/24, 10:02\u{202f}PM - x", Some(("5/12/24, 10:02\u{202f}PM", "x")));
        check("12/05/2024 à 10:02 - Ann: Hi", Some(("12/05/2024 à 10:02", "Ann: Hi")));
        check("12.5.2024 klo 10.02 - Ann: Hi", Some(("12.5.2024 klo 10.02", "Ann: Hi")));
        check("[2024/5/12 下午10:02:33] Ann: Hi", Some(("2024/5/12 下午10:02:33", "Ann: Hi")));
        check("12.05.24 - a date", None);
        check("12.05.24 from 10:02 - a visit", None);
        check("[sic] 1 - 2", None);
        // The header of each day repeats its date.
        check(&format!("1.1.{}, 10:02 - Ann: Hi", "1".repeat(64)), None);
        check("1.2.3, 4 - x", None);
        check("", None);
    }

    #[test]
    fn the_chat_tells_the_order_of_its_dates() {
        let check = |days: &[&str], expect: Option<&str>| {
            let first = Order::of(days).and_then(|order| order.iso(days[0]));
            assert_eq!(first.as_deref(), expect, "{days:?}");
        };
        check(&["2024-05-12"], Some("2024-05-12"));
        check(&["12/05/2024", "13/05/2024"], Some("2024-05-12"));
        check(&["5/12/24", "5/13/24"], Some("2024-05-12"));
        check(&["06.05.24"], Some("2024-05-06"));
        check(&["05/06/24", "06/06/24", "01/07/24"], Some("2024-06-05"));
        check(&["05/05/24"], Some("2024-05-05"));
        check(&["05/06/24"], None);
        check(&["13/05/24", "05/13/24"], None);
        check(&["1/2/3"], None);
    }
}
