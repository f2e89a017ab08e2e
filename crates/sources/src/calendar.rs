//! Calendars (iCalendar, RFC 5545): events, tasks and journal entries, one section each. Left out: alarms, time zones,
//! attached files, and the hours in which people are free.

use crate::content_lines::{self, Property};
use crate::encoding::Decoded;
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source};

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
        "RRULE" => (3, format!("Repeats: {}", property.value)),
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
    let value = property.value.trim();
    let digits = |start: usize, end: usize| {
        value.get(start..end).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (Some(year), Some(month), Some(day)) = (digits(0, 4), digits(4, 6), digits(6, 8)) else {
        return value.to_owned();
    };
    let date = format!("{year}-{month}-{day}");
    let (Some("T"), Some(hour), Some(minute)) = (value.get(8..9), digits(9, 11), digits(11, 13)) else { return date };
    let zone = match property.parameter("TZID") {
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
