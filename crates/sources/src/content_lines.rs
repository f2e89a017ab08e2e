//! The lines of calendars and contacts (RFC 5545, RFC 6350): `DTSTART;TZID=Europe/Zurich:20240501T100000`. A line that
//! starts with white space continues the one before it.

use std::mem;

use encoding_rs::{Encoding, UTF_8};
use mail_parser::decoders::quoted_printable::quoted_printable_decode;

use crate::Limit;
use crate::limit::{RECORDS, check_text};
use crate::source::Part;

/// A property of an entry.
pub(crate) struct Property<'a> {
    /// In capitals.
    pub name: String,
    parameters: &'a str,
    /// As it is written.
    pub value: &'a str,
}

impl<'a> Property<'a> {
    fn new(line: &'a str) -> Option<Self> {
        let mut is_quoted = false;
        let colon = line.find(|c: char| {
            is_quoted ^= c == '"';
            c == ':' && !is_quoted
        })?;
        let (head, value) = (&line[..colon], &line[colon + 1..]);
        let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
        // Fields of a contact can be in groups: `item1.TEL`.
        let name = name.rsplit('.').next().unwrap_or_default().to_ascii_uppercase();
        Some(Property { name, parameters, value })
    }

    /// The parameters: their names, which the oldest contacts leave out, and values.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let parameters = self.parameters.split(';').filter(|parameter| !parameter.is_empty());
        parameters.map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
            (name, value.trim_matches('"'))
        })
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value without escapes, its parts at a separator joined by commas.
    pub fn text(&self, separator: Option<char>) -> String {
        let decoded = self.decoded();
        let mut text = String::new();
        let mut letters = decoded.as_deref().unwrap_or(self.value).chars();
        let mut is_separated = false;
        while let Some(letter) = letters.next() {
            if Some(letter) == separator {
                is_separated = true;
                continue;
            }
            if mem::take(&mut is_separated) && !text.is_empty() {
                text.push_str(", ");
            }
            match letter {
                '\\' => match letters.next() {
                    Some('n' | 'N') => text.push('\n'),
                    escaped => text.extend(escaped),
                },
                '\r' => {}
                letter => text.push(letter),
            }
        }
        text.trim().to_owned()
    }

    /// The value of a quoted-printable property.
    fn decoded(&self) -> Option<String> {
        if !is_quoted_printable(self.parameters) {
            return None;
        }
        let bytes = quoted_printable_decode(self.value.as_bytes())?;
        let encoding = self.parameter("CHARSET").and_then(|name| Encoding::for_label(name.as_bytes()));
        Some(encoding.unwrap_or(UTF_8).decode(&bytes).0.into_owned())
    }
}

fn is_quoted_printable(parameters: &str) -> bool {
    parameters.split([';', '=']).any(|word| word.eq_ignore_ascii_case("quoted-printable"))
}

/// The entries of these types in a text, in order, each with the lines that `show` makes of its properties, sorted by
/// their ranks. A line `# Title` is also the entry's title, `Start: 2024-05-01` its time.
///
/// # Errors
/// [`Limit::Records`], also for the properties of an entry; [`Limit::TextBytes`].
pub(crate) fn entries(
    text: &str,
    types: &[&str],
    show: impl Fn(&Property<'_>) -> Option<(usize, String)>,
) -> Result<Vec<Part>, Limit> {
    let (mut entries, mut length) = (Vec::new(), 0);
    // The lines of the open entry, and the number of components that are open in it, such as alarms.
    let mut open: Option<(Vec<(usize, String)>, usize)> = None;
    each_line(text, |line| {
        let Some(property) = Property::new(line) else { return Ok(()) };
        match (&*property.name, &mut open) {
            ("BEGIN", None) if types.iter().any(|name| property.value.trim().eq_ignore_ascii_case(name)) => {
                open = Some((Vec::new(), 0));
            }
            ("BEGIN", Some((_, inner))) => *inner += 1,
            ("END", Some((_, inner))) if *inner > 0 => *inner -= 1,
            ("END", Some((lines, _))) => {
                let part = part(mem::take(lines));
                open = None;
                length += part.text.len();
                check_text(length)?;
                entries.push(part);
            }
            (_, Some((lines, 0))) => lines.extend(show(&property)),
            _ => {}
        }
        let lines = open.as_ref().map_or(0, |(lines, _)| lines.len());
        if lines.max(entries.len()) > RECORDS { Err(Limit::Records(RECORDS)) } else { Ok(()) }
    })?;
    // A file that was cut short ends in an entry.
    if let Some((lines, _)) = open {
        entries.push(part(lines));
    }
    Ok(entries)
}

fn part(mut lines: Vec<(usize, String)>) -> Part {
    lines.sort_by_key(|(rank, _)| *rank);
    let found = |mark: &str| lines.iter().find_map(|(_, line)| line.strip_prefix(mark)).map(str::to_owned);
    let (title, time) = (found("# "), found("Start: "));
    let mut text = String::with_capacity(lines.iter().map(|(_, line)| line.len() + 1).sum());
    for (_, line) in lines {
        text.extend([if text.is_empty() { "" } else { "\n" }, &line]);
    }
    Part { title, time, text }
}

/// Calls `each` with the lines, each with those that continue it.
fn each_line(text: &str, mut each: impl FnMut(&str) -> Result<(), Limit>) -> Result<(), Limit> {
    let mut whole = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        // Quoted-printable lines of the oldest contacts continue after `=`.
        let head = |whole: &str| is_quoted_printable(whole.split(':').next().unwrap_or_default());
        if let Some(more) = line.strip_prefix([' ', '\t']) {
            whole.push_str(more);
        } else if whole.ends_with('=') && head(&whole) {
            whole.pop();
            whole.push_str(line);
        } else {
            each(&mem::replace(&mut whole, line.to_owned()))?;
        }
    }
    each(&whole)
}
