//! WhatsApp's export of a chat, a text file. A message starts with its time as the phone writes it:
//!
//! ```text
//! [12/05/2024, 10:02:33] Ann: Hello.
//! 12.05.24, 10:02 - Ann: Hello.
//! ```
//!
//! Lines without a time continue the message. The speaker of what WhatsApp itself reports is `WhatsApp`.

use super::layout::{Said, by_day, laid_out};
use crate::encoding::Decoded;
use crate::limit::RECORDS;
use crate::{Cause, Kind, Limit, Source};

/// Marks of the direction of writing, which WhatsApp puts before names and dates.
const DIRECTIONS: [char; 4] = ['\u{200e}', '\u{200f}', '\u{feff}', '\u{202a}'];

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
    laid_out(path, Kind::WhatsApp, None, by_day(all)).map(Some)
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
    let Some((date, time)) = text.split_once([',', ' ']) else { return false };
    let time = time.trim_start();
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
        check("12.05.24 - a date", None);
        check("[sic] 1 - 2", None);
        check("1.2.3, 4 - x", None);
        check("", None);
    }
}
