//! Calendars (iCalendar, RFC 5545): events, tasks and journal entries, one section each, with the words of the rules by which
//! they are repeated and the times that are exceptions. Left out: alarms, time zones, attached files, and the hours in which people
//! are free.

use crate::content_lines::{self, Property};
use crate::encoding::Decoded;
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source, recurrence};

/// A `.ics` file.
pub(crate) fn source(path: &str, file: &Decoded) -> Result<Source, Cause> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if !text.get(.."BEGIN:".len()).is_some_and(|start| start.eq_ignore_ascii_case("BEGIN:")) {
        return Err(Cause::damaged(Kind::Calendar, "it does not start with BEGIN:VCALENDAR"));
    }
    Source::joined(path, Kind::Calendar, None, entries(text)?)
}

/// The entries of a calendar.
///
/// # Errors
/// [`Limit::Records`], [`Limit::TextBytes`].
pub(crate) fn entries(text: &str) -> Result<Vec<Part>, Limit> {
    content_lines::entries(text, &["VEVENT", "VTODO", "VJOURNAL"], shown)
}

/// A property as a line of text, and its rank among the others.
fn shown(property: &Property<'_>) -> Option<(usize, String)> {
    let text = || property.text(None);
    let (rank, line) = match &*property.name {
        "SUMMARY" => (0, format!("# {}", text().split_whitespace().collect::<Vec<_>>().join(" "))),
        "DTSTART" => (1, format!("Start: {}", time(property))),
        // A day on which an entry ends is not part of it.
        "DTEND" if !property.value.contains('T') => (2, format!("End: before {}", time(property))),
        "DTEND" => (2, format!("End: {}", time(property))),
        "DURATION" => (2, format!("Duration: {}", text())),
        "DUE" => (2, format!("Due: {}", time(property))),
        "COMPLETED" => (2, format!("Completed: {}", time(property))),
        "RRULE" => {
            let words = recurrence::in_words(property.value, |until| time_of(until, None));
            (3, format!("Repeats: {}", words.as_deref().unwrap_or(property.value)))
        }
        "EXDATE" => (3, format!("Except: {}", times(property))),
        "RDATE" => (3, format!("Also: {}", times(property))),
        // One of the times of an entry that is repeated.
        "RECURRENCE-ID" => (3, format!("In place of: {}", time(property))),
        "LOCATION" => (4, format!("Place: {}", text())),
        "ORGANIZER" => (5, format!("Organizer: {}", person(property))),
        "ATTENDEE" => (6, format!("Attendee: {}", person(property))),
        "STATUS" => (7, format!("Status: {}", text())),
        "CATEGORIES" => (8, format!("Categories: {}", text())),
        "URL" => (9, format!("URL: {}", property.value)),
        "DESCRIPTION" | "COMMENT" => (10, format!("\n{}", text())),
        _ => return None,
    };
    (!property.value.trim().is_empty()).then_some((rank, line))
}

/// A time: `2024-05-01 10:00 UTC`, `2024-05-01 10:00 (Europe/Zurich)`, `2024-05-01`.
fn time(property: &Property<'_>) -> String {
    time_of(property.value, property.parameter("TZID"))
}

/// The times of a list; a list that is too long for one of times as it is.
fn times(property: &Property<'_>) -> String {
    const MAX_BYTES: usize = 1 << 16;
    if property.value.len() > MAX_BYTES {
        return property.value.to_owned();
    }
    let times = property.value.split(',').map(|value| time_of(value, property.parameter("TZID")));
    times.collect::<Vec<String>>().join(", ")
}

/// A time of a time zone as text; anything else as it is.
fn time_of(value: &str, zone: Option<&str>) -> String {
    let value = value.trim();
    let digits = |start: usize, end: usize| {
        value.get(start..end).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (Some(year), Some(month), Some(day)) = (digits(0, 4), digits(4, 6), digits(6, 8)) else {
        return value.to_owned();
    };
    let date = format!("{year}-{month}-{day}");
    let (Some("T"), Some(hour), Some(minute)) = (value.get(8..9), digits(9, 11), digits(11, 13)) else { return date };
    let zone = match zone {
        _ if value.ends_with('Z') => " UTC".to_owned(),
        Some(zone) => format!(" ({zone})"),
        None => String::new(),
    };
    format!("{date} {hour}:{minute}{zone}")
}

/// A person: `Ann <ann@example.org> (ACCEPTED)`.
fn person(property: &Property<'_>) -> String {
    let value = property.value.trim();
    let is_address = value.get(.."mailto:".len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
    let address = if is_address { &value["mailto:".len()..] } else { value };
    let person = match property.parameter("CN") {
        Some(name) if !name.is_empty() && name != address => format!("{name} <{address}>"),
        _ => address.to_owned(),
    };
    match property.parameter("PARTSTAT") {
        Some(answer) if !answer.eq_ignore_ascii_case("NEEDS-ACTION") => format!("{person} ({answer})"),
        _ => person,
    }
}
